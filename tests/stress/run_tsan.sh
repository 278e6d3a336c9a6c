#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The stress programs under the thread sanitizer: silent as written; with the publishing or the observing side
# of the shared words made relaxed, each must be reported. Usage: run_tsan.sh ROOT. Exit 0, 1, or 77 when the
# sanitizer does not work here. $CC: the compiler.
set -u

root=$(cd "${1:?usage: run_tsan.sh ROOT}" && pwd) || exit 1
CC=${CC:-gcc}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
export TSAN_OPTIONS=halt_on_error=1:exitcode=66

# build PROGRAM FLAGS...
build()
{
	local source=$1
	shift
	"$CC" -std=gnu11 -O1 -g -fsanitize=thread -pthread -I"$root/include" -I"$root/src" "$@" "$source" \
		-o "$work/program" 2>"$work/out"
}

echo 'int main(void) { return 0; }' >"$work/probe.c"
if ! build "$work/probe.c" || ! "$work/program" >"$work/out" 2>&1; then
	echo "skipped: $CC -fsanitize=thread does not work here: $(head -1 "$work/out")"
	exit 77
fi

failed=0
say() { printf '%-14s %-18s %s\n' "$1" "$2" "$3"; }

# run PROGRAM ROUNDS MUTANT [FLAGS...]
run()
{
	local name=$1 rounds=$2 mutant=$3 rc try tries=10
	shift 3
	[ "$mutant" != "as written" ] || tries=1
	if ! build "$root/tests/stress/$name.c" "$@"; then
		cat "$work/out"
		say "$name" "$mutant" "FAILED: does not compile"
		failed=1
		return
	fi
	# A race is reported when threads meet in it: on a busy machine that may take more than one run.
	for ((try = 0; try < tries; try++)); do
		timeout 60 "$work/program" "$rounds" >"$work/out" 2>&1
		rc=$?
		[ $rc = 0 ] || break
	done
	if [ "$mutant" = "as written" ] && [ $rc = 0 ]; then
		say "$name" "$mutant" "silent"
	elif [ "$mutant" != "as written" ] && grep -q 'WARNING: ThreadSanitizer: data race' "$work/out"; then
		say "$name" "$mutant" "reported: $(sed -n 's/^SUMMARY: ThreadSanitizer: //p' "$work/out" |
			sed "s|$root/||")"
	else
		head -40 "$work/out"
		say "$name" "$mutant" "FAILED: exit $rc"
		failed=1
	fi
}

for program in "stress_ring 20000" "stress_lane 4000" "stress_record 4000"; do
	set -- $program
	run "$1" "$2" "as written"
	run "$1" "$2" publish_relaxed -DKVLI_PUBLISH=__ATOMIC_RELAXED
	run "$1" "$2" observe_relaxed -DKVLI_OBSERVE=__ATOMIC_RELAXED
done
exit $failed
