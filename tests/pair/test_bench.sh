#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# kvlane bench: every shape with tiny sizes has the documented fields and no wrong byte; bad input is exit
# code 2. No time is tested. Silent unless something fails. Usage: test_bench.sh KVLANE
set -u
kvlane=$1
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
export TMPDIR=$scratch/tmp
mkdir "$TMPDIR"
json=$scratch/bench.json
failed=0

fail() {
	echo "$*" >&2
	sed 's/^/    /' "$scratch/out" "$scratch/err" >&2
	failed=1
}

# run EXPECTED_EXIT ARGS...
run() {
	local expected=$1 code
	shift
	rm -f "$json"
	timeout -k 1 60 "$kvlane" bench "$@" >"$scratch/out" 2>"$scratch/err"
	code=$?
	[ $code = "$expected" ] || fail "bench $*: exit code $code, expected $expected"
	[ -z "$(find "$TMPDIR" -mindepth 1)" ] || fail "bench $*: left something behind"
}

# Every value of the JSON file as PATH=VALUE, one a line: arms.direct.p50_ns=1234. One key a line is what the
# program writes, two blanks of indent for each level.
flat() {
	awk '
	{
		match($0, /^ */)
		depth = RLENGTH / 2
		if (!match($0, /"[^"]*": /))
			next
		key[depth] = substr($0, RSTART + 1, RLENGTH - 4)
		value = substr($0, RSTART + RLENGTH)
		sub(/,$/, "", value)
		if (value == "{")
			next
		path = ""
		for (i = 1; i <= depth; i++)
			path = path (i > 1 ? "." : "") key[i]
		print path "=" value
	}' "$json"
}

# has ARGS: each PATH=REGEX must match a line of the flat JSON.
has() {
	local want
	[ -s "$json" ] || return # that was a failure of its own
	flat >"$scratch/flat"
	for want; do
		grep -qxE -- "$want" "$scratch/flat" ||
			fail "JSON: no '$want' in $(tr '\n' ' ' <"$scratch/flat")"
	done
}

number='-?[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?'
count='[0-9]+'
some='[1-9][0-9]*'

# figures PATH...: an arm that ran.
figures() {
	local path
	for path; do
		has "$path.p50_ns=$some" "$path.p99_ns=$some" "$path.p999_ns=$some" "$path.max_ns=$some" \
			"$path.gbps=$number" "$path.mismatches=0"
	done
}

# measured SHAPE ARGS...: a good run, its common fields.
measured() {
	local shape=$1
	run 0 "$@" --json "$json"
	[ -s "$json" ] || fail "bench $*: wrote no JSON"
	grep -qE '^verified: [1-9][0-9]* bytes, 0 mismatches$' "$scratch/out" || fail "bench $*: not verified"
	[ ! -s "$scratch/err" ] || fail "bench $*: wrote to standard error:"
	has "shape=\"$shape\"" 'wire="(local|sim)"' 'config.memory="(mapped|user)"' "config.rounds=$some" \
		"config.warmup=$count" "config.seed=$count" 'config.set.*' 'stray_mismatches=0'
}

# bad NAMED ARGS...
bad() {
	local named=$1
	shift
	run 2 "$@"
	head -n 1 "$scratch/err" | grep -qF -- "$named" || fail "bench $*: does not name '$named':"
	[ ! -s "$scratch/out" ] || fail "bench $*: wrote to standard output"
}

ratio() {
	local name
	for name; do
		has "ratios.$name=$number"
	done
}

# Bare cross-process copies may be refused here; then the arm must say so and have no figures.
raw=yes
run 0 single --size 64 --arms write,raw --rounds 2 --warmup 0 --json "$json"
if grep -q '^SKIPPED: arm raw: ' "$scratch/out"; then
	raw=
	has 'arms.raw.skipped=".+"'
fi

scatter() {
	measured scatter --pool 1MiB --rounds 3 --warmup 1 "$@"
	figures arms.direct
	has 'config.op="(write|read)"' "config.block=$some" "config.count=$some" 'config.pool=1048576' \
		'arms.direct.path="[a-z]+"' "arms.direct.prepare_ns_per_block=$number" \
		"arms.direct.post_ns_per_block=$number" "arms.direct.prepare_to_end_p50_ns=$some"
}

# scatter_memcpy ARGS...: scatter with a plain copy that may be impossible beside it.
scatter_memcpy() {
	scatter --arms direct,memcpy "$@"
	if grep -q '^SKIPPED: arm memcpy: ' "$scratch/out"; then
		has 'arms.memcpy.skipped=".+"'
	else
		figures arms.memcpy
		ratio direct_over_memcpy direct_with_prepare_over_memcpy
	fi
}

scatter_raw() {
	scatter --arms raw,direct "$@"
	[ $raw ] || return
	figures arms.raw
	has "config.vector=$some"
	ratio direct_over_raw direct_with_prepare_over_raw
}

for op in write read; do
	scatter_memcpy --op $op
	scatter_memcpy --op $op --block 1000 --count 77
	scatter_raw --op $op --memory user
	scatter_raw --op $op --memory user --block 4KiB --vector 7
	scatter --op $op --wire sim --arms direct
done
scatter --memory user --arms direct,memcpy
has 'arms.memcpy.skipped=".+"'

for memory in mapped user; do
	measured single --rounds 20 --warmup 2 --size 4KiB --memory $memory
	figures arms.write arms.read
	has 'config.size=4096' 'config.verify_every=1' 'arms.write.verified_rounds=22' \
		'arms.read.verified_rounds=22' 'arms.write.path="[a-z]+"' 'arms.read.path="[a-z]+"'
	measured mixed --rounds 4 --warmup 1 --small 4KiB --bulk 512KiB --memory $memory
	figures arms.{global,lane}.{small,bulk,window}
	has 'config.small=4096' 'config.bulk=524288'
	ratio small_p50_lane_over_global small_p99_lane_over_global bulk_rate_lane_over_global
done
measured single --rounds 20 --warmup 2 --size 1 --verify-every 7 --arms write,read,raw,raw_read
has 'arms.write.verified_rounds=4' 'arms.read.verified_rounds=22'
if [ $raw ]; then
	figures arms.raw arms.raw_read
	has 'arms.raw.verified_rounds=4' 'arms.raw_read.verified_rounds=22'
	ratio write_time_over_raw read_time_over_raw read_time_over_raw_read
fi
measured single --wire sim --rounds 5 --warmup 1
figures arms.write arms.read
measured mixed --wire sim --rounds 2 --warmup 1 --bulk 256KiB --arms lane
figures arms.lane.{small,bulk,window}

for op in write read; do
	measured post --blocks 500 --block 512 --rounds 2 --warmup 1 --op $op
	has 'config.blocks=500' 'config.tenth=50' 'config.block=512'
	for arm in prepared repost unprepared; do
		figures arms.$arm
		has "arms.$arm.ns_per_block=$number" "arms.$arm.prepare_ns_per_block=$number" \
			"arms.$arm.post_ns_per_block=$number" "arms.$arm.tenth_ns_per_block=$number" \
			"arms.$arm.cpu_ns_per_block=$number" "arms.$arm.tenth_cpu_ns_per_block=$number"
		ratio ${arm}_linearity
	done
done
measured post --wire sim --blocks 20 --block 8 --rounds 1 --warmup 0 --arms prepared

measured idle --rounds 2 --warmup 0 --idle-ms 20 --peers 3
figures arms.first_transfer
has 'config.peers=3' 'config.idle_ms=20' "idle.open_bytes=$number" "idle.resident_bytes=$number" \
	"idle.cpu_ns=$count" "idle.wall_ns=$some" "idle.wakeups=$count"
measured idle --rounds 1 --warmup 0 --idle-ms 1 --peers 0 --wire sim

# Seed and options of the library are noted; --json - leaves standard output to the object.
measured scatter --pool 64KiB --rounds 1 --arms direct --seed 12345 --set workers=2
has 'config.seed=12345' 'config.set.workers="2"'
run 0 scatter --pool 64KiB --rounds 1 --arms direct --json -
[ "$(head -c 1 "$scratch/out")" = '{' ] || fail 'bench --json -: standard output is not only the object'
grep -q '^verified: ' "$scratch/err" || fail 'bench --json -: no text on standard error'

# An arm that can not run here is not a pass.
run 77 scatter --pool 64KiB --rounds 1 --memory user --arms memcpy
grep -q '^SKIPPED: ' "$scratch/out" || fail 'bench: no reason for exit code 77'

bad 'which shape'
bad 'scater' scater
for shape in scatter single mixed post idle; do
	bad 'stray' $shape stray
	bad '--frobnicate' $shape --frobnicate
	bad '--rounds 0' $shape --rounds 0
	bad '--rounds 1x' $shape --rounds 1x
	bad '--seed -1' $shape --seed -1
	bad 'carrier-pigeon' $shape --wire carrier-pigeon
	bad '--memory borrowed' $shape --memory borrowed
	bad 'frobnicate' $shape --set frobnicate=1
	bad 'workers' $shape --set workers=many
	bad '--set workers' $shape --set workers
	bad "$scratch/none/x" $shape --json "$scratch/none/x"
	run 0 $shape --help
done
for shape in scatter single mixed post; do
	bad "'bogus'" $shape --arms bogus
	bad "''" $shape --arms ''
done
bad "'direct'" scatter --arms direct,direct
bad '--block 0' scatter --block 0
bad '--pool 4k: must hold' scatter --pool 4k --block 1m
bad '--block 1m' scatter --pool 4k --block 1m
bad '--block 4KB' scatter --block 4KB
bad '--pool 1' scatter --pool 1
bad '--count 17' scatter --pool 64KiB --count 17
bad '--op copy' scatter --op copy
bad '--vector 1025' scatter --vector 1025
bad '--size 0' single --size 0
bad '--verify-every 0' single --verify-every 0
bad '--small 2TiB' mixed --small 2TiB
bad '--bulk x' mixed --bulk x
bad '--blocks 0' post --blocks 0
bad '--peers 257' idle --peers 257
bad '--idle-ms 0' idle --idle-ms 0
run 0 --help

# A signal ends both processes and leaves nothing behind.
"$kvlane" bench single --rounds 10000000 >"$scratch/out" 2>"$scratch/err" &
pid=$!
end=$((SECONDS + 20))
until [ -n "$(find "$TMPDIR" -mindepth 2)" ] || [ $SECONDS -ge $end ]; do
	read -rt 0.01 <> <(:)
done
kill -TERM $pid
wait $pid 2>/dev/null
code=$?
[ $code = 143 ] || fail "bench, SIGTERM: exit code $code"
[ -z "$(find "$TMPDIR" -mindepth 1)" ] || fail 'bench, SIGTERM: left something behind'

exit $failed
