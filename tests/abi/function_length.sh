#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# No function of more than 100 lines. Usage: function_length.sh ROOT
. "$(dirname "$0")/common.sh"
cd "$1"
need ctags universal-ctags

max=100
lengths=$(sources src tools examples tests |
	ctags -L - --languages=C,C++ --langmap=C:+.h --kinds-C=f --kinds-C++=f --fields=+ne -f - |
	awk -F '\t' '{
		line = end = 0
		for (i = 4; i <= NF; i++) {
			if ($i ~ /^line:/) line = substr($i, 6)
			if ($i ~ /^end:/) end = substr($i, 5)
		}
		if (end) print end - line + 1, $2 ":" line ": " $1
	}' | sort -n)
[ -n "$lengths" ] || finding "ctags found no function"
while read -r length name; do
	[ "${length:-0}" -le $max ] || finding "$name has $length lines, more than $max"
done <<<"$lengths"
median=$(awk '{ length_of[NR] = $1 } END { print length_of[int((NR + 1) / 2)] }' <<<"$lengths")
longest=$(tail -n 1 <<<"$lengths")
finish "$(wc -l <<<"$lengths") functions, median $median lines, longest ${longest%% *}"
