#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every header compiles as the only thing of its file, and twice: all as C11; the public ones and those that
# CPU and GPU share as C++17 too. With NVCC in the environment: the shared ones by nvcc instead.
# Usage: headers_alone.sh ROOT [CC [CXX]]
. "$(dirname "$0")/common.sh"
cd "$1"
cc=${2:-gcc}
cxx=${3:-g++}

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
warnings=(-Wall -Wextra -Wpointer-arith -Wcast-qual -Wvla -Werror)
n=0

# Functions that the including file defines first: their prototypes are in the header's first comment.
hooks()
{
	echo '#include <stdint.h>'
	sed -n -E '/\*\//q; s/^ \*\t(.*_hook_.*\);).*/\1/p' "$1" | while read -r hook; do
		grep -oE 'struct [a-z_]+' <<<"$hook" | sed 's/$/;/'
		echo "$hook"
	done
}

# compile HEADER SUFFIX COMMAND...
compile()
{
	local header=$1 name=${1#include/} unit=$tmp/unit.$2
	name=${name#src/}
	shift 2
	{
		sed 1d "$header" | hooks /dev/stdin
		printf '#include "%s"\n#include "%s"\nint unit_is_not_empty;\n' "$name" "$name"
	} >"$unit"
	n=$((n + 1))
	"$@" "$unit" >"$tmp/out" 2>&1 ||
		finding "$header does not compile alone: $*"$'\n'"$(head -n 5 "$tmp/out")"
}

headers()
{
	local path
	for path; do
		[ ! -e "$path" ] || find "$path" -name '*.h'
	done | LC_ALL=C sort
}
shared=(src/shared src/lane/core.h src/lane/step.h)

if [ -n "${NVCC:-}" ]; then
	while read -r header; do
		compile "$header" cu "$NVCC" -std=c++17 -arch=sm_90 -Isrc -Iinclude -Werror all-warnings \
			-c -o "$tmp/unit.o"
	done < <(headers "${shared[@]}")
	[ $n -gt 0 ] || finding "no shared header found"
	finish "$n headers compile alone under nvcc"
	exit
fi

need "$cxx" g++
while read -r header; do
	compile "$header" c "$cc" -std=c11 -Iinclude "${warnings[@]}" -Wshadow -fsyntax-only
done < <(headers include)
while read -r header; do
	compile "$header" c "$cc" -std=gnu11 -D_GNU_SOURCE -Isrc -Iinclude "${warnings[@]}" -Wshadow \
		-fsyntax-only
done < <(headers src)
while read -r header; do
	compile "$header" cc "$cxx" -std=c++17 -Isrc -Iinclude "${warnings[@]}" -fsyntax-only
done < <(headers include "${shared[@]}")
[ $n -gt 0 ] || finding "no header found"
finish "$n times a header alone"
