#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the code may not say, comments and literals aside. Usage: forbidden.sh ROOT
. "$(dirname "$0")/common.sh"
cd "$1"

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
while read -r file; do
	mkdir -p "$tmp/$(dirname "$file")"
	code "$file" >"$tmp/$file"
done < <(sources include src tools examples tests)

# forbid PATTERN WHY [--except FILE] DIR...: an extended regular expression from the start of a word
forbid()
{
	local pattern=$1 why=$2 except='^$' dir dirs=()
	shift 2
	if [ "$1" = --except ]; then
		except="^$2:"
		shift 2
	fi
	for dir; do
		[ ! -d "$tmp/$dir" ] || dirs+=("$dir")
	done
	[ ${#dirs[@]} -gt 0 ] || return 0
	while read -r hit; do
		finding "$hit: $why"
	done < <(cd "$tmp" && grep -rnoE "\b($pattern)" "${dirs[@]}" | grep -vE "$except" || true)
}

all=(include src tools examples tests)

# Ordered access goes through shared/word.h, which names its order and has a row in docs/memory-order.md.
forbid '__atomic_|__sync_|__c11_atomic_|atomic_|(volatile|__volatile__|_Atomic)\b|stdatomic\.h' \
	'only src/shared/word.h touches shared words' --except src/shared/word.h include src

# The library tells by codes and details; it neither prints nor ends the process of its caller.
forbid '(v?[fd]?printf|f?puts|putchar|perror|v?syslog|v?warnx?|v?errx?) *\(' 'the library does not print' src
forbid '(exit|_exit|_Exit|quick_exit|abort|assert|raise) *\(' 'the library does not end the process' src
forbid '(system|popen|v?fork|signal|sigaction) *\(' 'the library starts no process and takes no signal' src

# Bounded by construction.
forbid '(strcpy|strcat|stpcpy|v?sprintf|gets|alloca|strtok|s?rand|ato[il]) *\(' 'use the bounded call' \
	"${all[@]}"

# Waits are for events, with a deadline.
forbid '(sleep|usleep) *\(' 'wait for the event instead' "${all[@]}"
forbid '(nanosleep|clock_nanosleep|thrd_sleep) *\(' 'wait for the event instead' examples tests

n=$(find "$tmp" -type f | wc -l)
[ "$n" -gt 0 ] || finding "no file found"
finish "no forbidden word in $n files"
