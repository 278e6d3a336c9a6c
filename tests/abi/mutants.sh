#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests the checks of this folder: each passes a small good tree, and fails for the right reason after one
# change of it. Usage: mutants.sh
. "$(dirname "$0")/common.sh"
here=$(cd "$(dirname "$0")" && pwd)
need gcc gcc
need g++ g++

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
spdx='/* SPDX-License-Identifier: Apache-2.0 */'
n=0

# put FILE: the standard input, below the licence line
put()
{
	mkdir -p "$tree/$(dirname "$1")"
	{ echo "$spdx"; cat; } >"$tree/$1"
}

# A tree that every check likes.
good()
{
	tree=$tmp/tree
	rm -rf "$tree"
	put include/kvlane/kvlane.h <<-'END'
		#ifndef KVLANE_H
		#define KVLANE_H
		#include <stddef.h>
		#define KVL_API __attribute__((visibility("default")))
		#define KVL_CHECK __attribute__((warn_unused_result))
		/* KVL_API int kvl_comment(void); */
		KVL_API KVL_CHECK int kvl_open(size_t n);
		KVL_API const char
		*kvl_name(void);
		#endif
	END
	put src/shared/word.h <<-'END'
		#ifndef KVLI_WORD_H
		#define KVLI_WORD_H
		static inline int word_load(const int *w)
		{
			return __atomic_load_n(w, __ATOMIC_ACQUIRE);
		}
		#endif
	END
	put src/base/error.h <<-'END'
		int kvli_fail(int code);
	END
	put src/wire/wire.h <<-'END'
		struct kvli_wire;
	END
	put src/wire/local/local.h <<-'END'
		struct kvli_local;
	END
	put src/wire/sim/sim.c <<-'END'
		#include "base/error.h"
		#include "shared/word.h"
		#include "wire/wire.h"
	END
	put src/agent/agent.c <<-'END'
		/* printf("a comment may say it"); */
		#include "base/error.h"
		#include "kvlane/kvlane.h"
		#include "shared/word.h"
		#include "wire/wire.h"
		int kvl_open(size_t n)
		{
			return "usleep(1)"[n] ? 1 : '"';
		}
		const char *kvl_name(void)
		{
			return "volatile";
		}
	END
	put examples/example.c <<-'END'
		#include <kvlane/kvlane.h>
		#include <stdio.h>
	END
}

# lines N TEXT: the line N times
lines()
{
	local i
	for ((i = 0; i < $1; i++)); do
		echo "$2"
	done
}

# build [FLAG...]: the tree's library
build()
{
	gcc -shared -fPIC -fvisibility=hidden -I"$tree/src" -I"$tree/include" -o "$tree/lib.so" \
		"$tree/src/agent/agent.c" "$@"
}

check()
{
	case $1 in
	symbols) build && bash "$here/symbols.sh" "$tree/include" "$tree/lib.so" ;;
	needed) build -Wl,--no-as-needed ${libraries:-} && bash "$here/needed.sh" "$tree/lib.so" ;;
	*) bash "$here/$1.sh" "$tree" ;;
	esac
}

passes()
{
	local rc=0
	n=$((n + 1))
	check "$1" >"$tmp/out" 2>&1 || rc=$?
	[ $rc = 0 ] || [ $rc = 77 ] || finding "$1 refuses the good tree: $(cat "$tmp/out")"
}

# fails CHECK WORDS: with just these findings
fails()
{
	local rc=0
	n=$((n + 1))
	check "$1" >"$tmp/out" 2>&1 || rc=$?
	case $rc in
	1) grep -qF -e "$2" "$tmp/out" || finding "$1 fails without saying \"$2\": $(cat "$tmp/out")" ;;
	77) ;;
	*) finding "$1 does not see: $2" ;;
	esac
	good
}

good
for name in include_direction forbidden style function_length headers_alone symbols needed; do
	passes $name
done

# include_direction LINE FILE WORDS
direction()
{
	echo "$1" >>"$tree/$2"
	fails include_direction "$3"
}
direction '#include "wire/local/local.h"' src/wire/sim/sim.c 'wire/sim does not see wire/local'
direction '#include "../local/local.h"' src/wire/sim/sim.c '"../local/local.h": say it from src/'
direction '#include "wire/local/local.h"' src/agent/agent.c 'agent does not see wire/local'
direction '#include "wire/wire.h"' src/base/error.h 'base does not see wire'
direction '#include "base/error.h"' src/shared/word.h 'shared does not see base'
direction '  #  include "base/missing.h"' src/agent/agent.c '"base/missing.h": no such file'
direction '#include <jansson.h>' src/agent/agent.c 'the library needs libc alone'
direction '#include <rdma/fabric.h>' src/agent/agent.c 'only for src/wire/fabric'
direction '#include <cuda.h>' src/agent/agent.c 'only for src/cuda'
direction '#include "../src/base/error.h"' examples/example.c 'only include/kvlane and the own folder'
direction '#include <unistd.h>' include/kvlane/kvlane.h 'public headers include'
put src/new/new.c <<<'#include "base/error.h"'
fails include_direction 'folder new has no row'

# word CODE FILE WORDS
word()
{
	echo "$1" >>"$tree/$2"
	fails forbidden "$3"
}
word 'int f(int *w) { return __atomic_load_n(w, 0); }' src/agent/agent.c 'only src/shared/word.h'
word 'volatile int v;' src/base/error.h 'only src/shared/word.h'
word '/* a */ _Atomic int v; /* b */' include/kvlane/kvlane.h 'only src/shared/word.h'
word 'void f(void) { printf("x"); }' src/agent/agent.c 'the library does not print'
word 'void f(void) { fprintf (stderr, "x"); }' src/agent/agent.c 'the library does not print'
word 'void f(void) { abort(); }' src/agent/agent.c 'the library does not end the process'
word 'void f(void) { assert(1); }' src/agent/agent.c 'the library does not end the process'
word 'void f(void) { sprintf(b, "x"); }' examples/example.c 'use the bounded call'
word 'void f(void) { char *p = alloca(9); }' src/agent/agent.c 'use the bounded call'
word "void f(void) { g('\"'); usleep(9); }" examples/example.c 'wait for the event'
word 'void f(void) { nanosleep(&t, 0); }' examples/example.c 'wait for the event'

sed -i 1d "$tree/src/wire/wire.h"
fails style 'no SPDX-License-Identifier'
printf '\t\t\t\t\t\t\t\t\t\t\t\t\t/* 7890123456789 */\n' >>"$tree/src/wire/wire.h"
fails style '123 columns'
printf 'struct a; \n' >>"$tree/src/wire/wire.h"
fails style 'blanks at the end'
lines 601 'struct a;' >>"$tree/src/wire/wire.h"
fails style 'more than 600'
printf '/* %s: more */\n' TO''DO >>"$tree/src/wire/wire.h"
fails style 'unfinished'

{ echo 'void long_one(void)'; echo '{'; lines 98 '	;'; echo '}'; } >>"$tree/src/agent/agent.c"
fails function_length 'long_one has 101 lines'

echo 'size_t kvli_size(void);' >>"$tree/src/base/error.h"
fails headers_alone 'src/base/error.h does not compile alone'
echo 'enum { KVLI_TWICE };' >>"$tree/src/base/error.h"
fails headers_alone 'src/base/error.h does not compile alone'
echo 'static inline int *f(void *p) { return p; }' >>"$tree/src/shared/word.h"
fails headers_alone 'src/shared/word.h does not compile alone: g++'
sed -i 's/^#endif/int kvl_new(int new);\n#endif/' "$tree/include/kvlane/kvlane.h"
fails headers_alone 'include/kvlane/kvlane.h does not compile alone: g++'

sed -i 's/^#endif/KVL_API int kvl_forgotten(void);\n#endif/' "$tree/include/kvlane/kvlane.h"
fails symbols 'kvl_forgotten is declared KVL_API but not exported'
echo 'KVL_API int kvl_undeclared(void) { return 0; }' >>"$tree/src/agent/agent.c"
fails symbols 'kvl_undeclared is exported but not declared'
echo 'KVL_API int stray = 1;' >>"$tree/src/agent/agent.c"
fails symbols 'stray is exported but not declared'

libraries=-lm
fails needed 'needs libm.so'

finish "$n runs of the checks, on the good tree and on what each must refuse"
