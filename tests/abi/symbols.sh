#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The library exports what the headers declare KVL_API, all of it, and nothing else; the global names of the
# static one can not clash with a program's: they are kvl_ or kvli_. Usage: symbols.sh INCLUDE LIB.so [LIB.a]
. "$(dirname "$0")/common.sh"
include=$1 library=$2 archive=${3:-}
need nm binutils

# By the preprocessor, so that comments, #if and the macro itself do not count.
declared=$(for header in "$include"/kvlane/*.h; do
	sed 's/^#define KVL_API .*/#define KVL_API kvl_api_mark/' "$header"
done | ${CC:-gcc} -E -P -w -I"$include" - | tr '\n' ' ' | tr ';{}' '\n\n\n' |
	sed -n -E 's/__attribute__ *\(\([^()]*(\([^()]*\))?[^()]*\)\)//g
		s/.*kvl_api_mark[^(]*[ *]([a-z0-9_]+) *\(.*/\1/p' | LC_ALL=C sort -u)
exported=$(nm -D --defined-only "$library" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' |
	LC_ALL=C sort -u)

[ -n "$declared" ] || finding "no KVL_API declaration found in $include/kvlane"
for name in $(LC_ALL=C comm -23 <(echo "$declared") <(echo "$exported")); do
	finding "$name is declared KVL_API but not exported"
done
for name in $(LC_ALL=C comm -13 <(echo "$declared") <(echo "$exported")); do
	finding "$name is exported but not declared KVL_API"
done
for name in $declared; do
	[[ $name == kvl_* ]] || finding "$name does not begin with kvl_"
done
if [ -n "$archive" ]; then
	global=$(nm -g --defined-only "$archive" | awk 'NF == 3 { print $3 }' | LC_ALL=C sort -u)
	for name in $global; do
		[[ $name == kvl_* || $name == kvli_* ]] || finding "$name is global in $(basename "$archive")"
	done
fi
finish "$(wc -l <<<"$declared") symbols, all declared and exported"
