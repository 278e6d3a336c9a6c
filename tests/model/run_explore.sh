#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs explore_NAME.c over the real headers as written, then over copies of them that an edit has broken: each
# of these must be caught. Usage: run_explore.sh ROOT ring|lane. Exit 0, 1, or 77 when a tool is missing.
# $CC: the compiler.
set -u

root=$(cd "${1:?usage: run_explore.sh ROOT ring|lane}" && pwd) || exit 1
name=${2:?usage: run_explore.sh ROOT ring|lane}
here=$root/tests/model
CC=${CC:-gcc}
if ! command -v "$CC" >/dev/null; then
	echo "skipped: $CC is not installed (Debian package: gcc)"
	exit 77
fi

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failed=0
say() { printf '%-5s %-18s %s\n' "$name" "$1" "$2"; }

# build INCLUDE_FOLDER OPTIMIZATION
build()
{
	"$CC" -std=gnu11 "$2" -Wall -Wextra -DKVLI_MODEL -I"$1" -I"$root/include" -I"$here" \
		"$here/explore.c" "$here/explore_$name.c" -o "$work/explore"
}

# mutant NAME HEADER [SCENARIO]: the edit comes from standard input, see edit.awk
mutant()
{
	rm -rf "$work/src"
	mkdir -p "$work/src/lane"
	cp -r "$root/src/shared" "$work/src/"
	cp "$root/src/lane"/*.h "$work/src/lane/"
	if ! awk -f "$here/edit.awk" - "$root/src/$2" >"$work/src/$2"; then
		say "$1" "FAILED: $2 does not have what the edit replaces"
		failed=1
	elif ! build "$work/src" -O0; then
		say "$1" "FAILED: does not compile"
		failed=1
	elif timeout 60 "$work/explore" ${3:+"$3"} >"$work/out"; then
		say "$1" "SURVIVED: $(tail -1 "$work/out")"
		failed=1
	elif grep -q violation "$work/out"; then
		say "$1" "caught: $(sed -n 's/.*violation: //p' "$work/out" | sed 's|.*/tests/model/||')"
	else
		say "$1" "FAILED: no verdict: $(tail -1 "$work/out")"
		failed=1
	fi
}

if [ ! -f "$here/explore_$name.c" ]; then
	echo "no explorer for $name"
	exit 1
fi
build "$root/src" -O2 || exit 1
if ! timeout 100 "$work/explore" >"$work/out"; then
	cat "$work/out"
	say "as written" "FAILED"
	exit 1
fi
sed 's/^/as written: /' "$work/out"
. "$here/mutants_$name.sh"
exit $failed
