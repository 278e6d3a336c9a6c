#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The look of files: licence line, width of C (tabs are 8), length, trailing blanks, unfinished words.
# Usage: style.sh ROOT
. "$(dirname "$0")/common.sh"
cd "$1"

max_width=120 # clang-format keeps code within 110; comments and tables may need a little more
max_lines=600
unfinished='TO''DO|FIX''ME|XX''X|HA''CK' # in pieces: this file is read too

n=0
while read -r file; do
	n=$((n + 1))
	head -n 2 "$file" | grep -q 'SPDX-License-Identifier: Apache-2.0' ||
		finding "$file:1: no SPDX-License-Identifier: Apache-2.0"
	lines=$(wc -l <"$file")
	limit=$max_lines
	[[ $file == include/* ]] && limit=1000 # the whole API, to be read from top to bottom
	[ "$lines" -le "$limit" ] || finding "$file: $lines lines, more than $limit"
	while read -r hit; do
		finding "$file:$hit"
	done < <([[ $file == *.sh ]] || expand -t 8 "$file" | awk -v max=$max_width '
		length($0) > max { print NR ": " length($0) " columns, more than " max }'
		awk '/[ \t]$/ { print NR ": blanks at the end of the line" }' "$file"
		grep -nowE "$unfinished" "$file" | sed 's/$/: unfinished/' || true)
done < <(sources include src tools examples tests; find tests tools -name '*.sh' 2>/dev/null | LC_ALL=C sort)
[ $n -gt 0 ] || finding "no file found"
finish "$n files look right"
