# SPDX-License-Identifier: Apache-2.0
# Sourced by the checks of this folder. A check prints one line per finding and exits 1 when there was one.
set -euo pipefail

found=0
finding()
{
	printf '%s\n' "$*"
	found=1
}

finish()
{
	[ "$found" = 0 ] || exit 1
	printf '%s\n' "$*"
}

need()
{
	if ! command -v "$1" >/dev/null; then
		printf 'skipped: %s is not installed (Debian: %s)\n' "$1" "$2"
		exit 77
	fi
}

# sources DIR...: the C files below the folders that exist, sorted
sources()
{
	local dir
	for dir; do
		[ ! -d "$dir" ] || find "$dir" -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh'
	done | LC_ALL=C sort
}

# code FILE: the file with comments and the insides of literals blanked, line for line
code()
{
	awk '
	BEGIN { state = "code" }
	{
		out = ""
		n = length($0)
		for (i = 1; i <= n; i++) {
			c = substr($0, i, 1)
			two = substr($0, i, 2)
			if (state == "code") {
				if (two == "/*") { state = "comment"; i++; out = out "  "; continue }
				if (two == "//") break
				if (c == "\"" || c == "\047") { state = "literal"; quote = c }
				out = out c
			} else if (state == "comment") {
				if (two == "*/") { state = "code"; i++; out = out " " }
				out = out " "
			} else {
				if (c == "\\") { i++; out = out "  "; continue }
				if (c == quote) { state = "code"; out = out c } else out = out " "
			}
		}
		if (state == "literal" && substr($0, n) != "\\") state = "code"
		print out
	}' "$1"
}
