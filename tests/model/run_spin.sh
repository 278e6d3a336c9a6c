#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Verifies one model as written, then each mutant that its first comment lists ("mutant NAME: text"), built
# with -DNAME. As written it must have no error in its whole state space; every mutant must have one.
# Usage: run_spin.sh MODEL.pml. Exit 0, 1, or 77 when a tool is missing. $CC: the compiler.
set -u

model=${1:?usage: run_spin.sh MODEL.pml}
CC=${CC:-gcc}
for tool in spin "$CC"; do
	if ! command -v "$tool" >/dev/null; then
		echo "skipped: $tool is not installed (Debian packages: spin gcc)"
		exit 77
	fi
done

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cp "$(dirname "$model")"/*.pml "$work"/ || exit 1
model=$(basename "$model")
cd "$work" || exit 1

# verify [-DMUTANT]: leaves the verifier's words in pan.out; fails when it could not be built or run
verify()
{
	spin "$@" -a "$model" >spin.out 2>&1 && [ ! -s spin.out ] || { cat spin.out; return 1; }
	"$CC" -O"$((1 - $#))" -w -DSAFETY -o pan pan.c || return 1
	./pan -w20 -m200000 >pan.out 2>&1 || { cat pan.out; return 1; }
}

errors() { sed -n 's/.*errors: \([0-9]*\).*/\1/p' pan.out; }
states() { sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' pan.out; }
# A search that was cut proves nothing.
whole()
{
	grep -q '^Full statespace search' pan.out &&
		! grep -qi 'max search depth too small\|not completed\|out of memory' pan.out
}

say() { printf '%-14s %-22s %s\n' "$model" "$1" "$2"; }

failed=0
if ! verify || ! whole; then
	say "as written" "FAILED: not verified"
	exit 1
elif [ "$(errors)" != 0 ]; then
	say "as written" "FAILED: $(grep -m1 '^pan:1' pan.out)"
	./pan -r -n 2>/dev/null || spin -t -p -g "$model" | tail -60
	failed=1
else
	say "as written" "$(states) states, errors: 0"
fi

mutants=$(sed -n '/\*\//q; s/^ \* mutant \([A-Z_0-9]*\): .*/\1/p' <(tail -n +2 "$model"))
[ -n "$mutants" ] || { echo "$model lists no mutants"; failed=1; }
for mutant in $mutants; do
	if ! grep -q "^#if\(n\)\{0,1\}def $mutant\$" "$model"; then
		say "$mutant" "FAILED: the model does not have it"
		failed=1
	elif ! verify -D"$mutant"; then
		say "$mutant" "FAILED: not verified"
		failed=1
	elif [ "$(errors)" = 0 ]; then
		say "$mutant" "SURVIVED: $(states) states, errors: 0"
		failed=1
	else
		say "$mutant" "caught: $(sed -n 's/^pan:1: \(.*\) (at depth.*/\1/p' pan.out | head -1)"
	fi
done
exit $failed
