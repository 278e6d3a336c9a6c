#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# kvlane demo: every preset, both operations, both modes, both kinds of memory; what the JSON says; sides that
# differ, die, hang or never come. Silent unless something fails. Usage: test_demo.sh KVLANE
set -u
kvlane=$1
scratch=$(mktemp -d) || exit 1
export TMPDIR=$scratch/tmp
mkdir "$TMPDIR" "$scratch/dir"
json=$scratch/demo.json
failed=0
started=()

# shellcheck disable=SC2317
cleanup() {
	for pid in "${started[@]}"; do
		kill -KILL "$pid" 2>/dev/null
	done
	rm -rf "$scratch"
}
trap cleanup EXIT

fail() {
	echo "$*" >&2
	sed 's/^/    /' "$scratch/out" "$scratch/err" >&2
	failed=1
}

# A value at the top level of the JSON file.
value() {
	sed -n "s/^  \"$1\": \"\{0,1\}\([^\",]*\)\"\{0,1\},\{0,1\}\$/\1/p" "$json" 2>/dev/null
}

left_behind() {
	find "$TMPDIR" "$scratch/dir" -mindepth 1
}

clean() {
	[ -z "$(left_behind)" ] || fail "$*: left behind: $(left_behind)"
}

# run EXPECTED_EXIT ARGS...
run() {
	local expected=$1 code
	shift
	timeout -k 1 60 "$kvlane" demo "$@" >"$scratch/out" 2>"$scratch/err"
	code=$?
	clean "demo $*"
	[ $code = "$expected" ] && return
	fail "demo $*: exit code $code, expected $expected"
	return 1
}

# A whole run and what it says. moved ARGS...
moved() {
	local bytes blocks
	rm -f "$json"
	run 0 --json "$json" --timeout 20 "$@" || return
	bytes=$(value bytes)
	blocks=$(value blocks)
	[ "${bytes:-0}" -gt 0 ] || fail "demo $*: bytes: '$bytes'"
	grep -qx "verified: $bytes bytes, 0 mismatches" "$scratch/out" || fail "demo $*: not verified"
	[ "$(value verified_bytes)" = "$bytes" ] || fail "demo $*: verified_bytes is not $bytes"
	[ $((bytes % blocks)) = 0 ] || fail "demo $*: $bytes bytes are not $blocks blocks"
	[ "$(value mismatches)" = 0 ] || fail "demo $*: mismatches: $(value mismatches)"
	[ "$(value handover_p50_ns)" -gt 0 ] || fail "demo $*: handover_p50_ns: $(value handover_p50_ns)"
	[ "$(value handover_p99_ns)" -ge "$(value handover_p50_ns)" ] || fail "demo $*: p99 below p50"
	[[ $(value gbps) =~ ^[0-9.e+-]+$ ]] || fail "demo $*: gbps: '$(value gbps)'"
	[[ $(value path) =~ ^(map|copy|slot|mixed)$ ]] || fail "demo $*: path: '$(value path)'"
	grep -q '^  "config": {' "$json" || fail "demo $*: no config"
	[ ! -s "$scratch/err" ] || fail "demo $*: wrote to standard error:"
}

# A bounded wait for what another process does. await COMMAND...
await() {
	local end=$((SECONDS + 20))
	until "$@" 2>/dev/null; do
		[ $SECONDS -lt $end ] || return 1
		read -rt 0.01 <> <(:)
	done
	return 0
}

# Ends of processes that are not ours to wait for.
gone() {
	! kill -0 "$1" 2>/dev/null || [ "$(sed 's/.*) //; s/ .*//' "/proc/$1/stat")" = Z ]
}

# ------------------------------------------------------------------------------------------------- what works

small=(--requests 3 --tokens 24 --pool 256MiB)
models=$("$kvlane" demo --model list | sed -n '2,/^$/s/ .*//p')
[ "$(wc -w <<<"$models")" -ge 6 ] || fail "--model list: only '$models'"

for model in $models; do
	for op in write read; do
		for mode in layer whole; do
			moved --model "$model" --op $op --mode $mode "${small[@]}"
			[ "$(value model)" = "$model" ] || fail "JSON says model $(value model), not $model"
			[ "$(value op)" = $op ] || fail "JSON says op $(value op), not $op"
			[ "$(value requests)" = 3 ] || fail "JSON says $(value requests) requests, not 3"
		done
	done
done

for op in write read; do
	moved --op $op --memory user "${small[@]}"
	moved --op $op --workers 0 "${small[@]}"
	moved --op $op --lanes 1 --retire global --inflight 3 "${small[@]}"
	moved --op $op --rounds 3 --inflight 1 "${small[@]}"
	[ "$(value requests)" = 9 ] || fail "3 rounds of 3 requests: JSON says $(value requests)"
	moved --op $op --block-tokens 1 --dtype fp8 --tp 8 --seed 77 "${small[@]}"
	# More pieces than a lane has room for, and more requests than --inflight lets through at once.
	moved --op $op --requests 40 --tokens 1 --inflight 40 --set queue_depth=2 --set max_requests=8 --tp 8
	moved --op $op --set local_paths=slot "${small[@]}"
	[ "$(value path)" = slot ] || fail "local_paths=slot took path $(value path)"
done

# Sliding-window layers keep the blocks of the last 128 tokens, whatever the length of the prompt. A block is
# 16 tokens x K and V x 8 heads x 64 x 2 bytes.
moved --model gpt-oss-120b --requests 1 --tokens 1000 --seed 3
blocks=$(value blocks)
[ "$(value bytes)" = $((blocks * 32768)) ] || fail "gpt-oss-120b: blocks are not 32 KiB"
moved --model gpt-oss-120b --requests 1 --tokens 2000 --seed 3
[ "$(value blocks)" -lt $((blocks * 2 - 100)) ] || fail "gpt-oss-120b: the window grows with the prompt"

# A pool that is too small: shorter prompts, said aloud, counted right.
run 0 --tokens 4096 --pool 64MiB --json "$json"
grep -q 'scaled down to .* --pool 64MiB' "$scratch/err" || fail '--pool 64MiB: the scaling was not said'
grep -q '"tokens_asked": 4096' "$json" || fail '--pool 64MiB: tokens_asked is not in the JSON'

# JSON on standard output is alone there.
run 0 --json - "${small[@]}"
[ "$(head -c 1 "$scratch/out")" = '{' ] || fail '--json -: standard output does not begin with the object'
[ "$(tail -n 1 "$scratch/out")" = '}' ] || fail '--json -: standard output does not end with the object'

# The same seed is the same run.
moved --seed 5 "${small[@]}"
bytes=$(value bytes)
moved --seed 5 --op read "${small[@]}"
[ "$(value bytes)" = "$bytes" ] || fail 'the same seed moved another number of bytes'

# A wrong bit is found, named, and ends with 1.
for op in write read; do
	run 1 --op $op --damage --json "$json" "${small[@]}"
	grep -q 'mismatch: request [0-9]*, layer [0-9]*, block [0-9]* (id [0-9]*), offset' "$scratch/err" ||
		fail "--damage: the mismatch is not named"
	grep -q 'verified: [0-9]* bytes, 1 mismatches' "$scratch/out" || fail '--damage: the byte is not counted once'
	[ "$(value mismatches)" = 1 ] || fail "--damage: JSON says $(value mismatches) mismatches"
done

# ------------------------------------------------------------------------------------------- two roles by hand

roles() { # roles EXPECTED_PREFILL EXPECTED_DECODE "PREFILL ARGS" "DECODE ARGS"
	local prefill code
	# shellcheck disable=SC2086
	timeout -k 1 60 "$kvlane" demo --role prefill --rendezvous "$scratch/dir" --timeout 20 $3 \
		>"$scratch/prefill" 2>&1 &
	prefill=$!
	# shellcheck disable=SC2086
	timeout -k 1 60 "$kvlane" demo --role decode --rendezvous "$scratch/dir" --timeout 20 $4 \
		>"$scratch/out" 2>"$scratch/err"
	code=$?
	[ $code = "$2" ] || fail "decode $4: exit code $code, expected $2"
	wait $prefill
	code=$?
	[ $code = "$1" ] || fail "prefill $3: exit code $code, expected $1: $(cat "$scratch/prefill")"
	clean "roles $3 / $4"
}

roles 0 0 "${small[*]}" "${small[*]}"
grep -q 'verified: [1-9][0-9]* bytes, 0 mismatches' "$scratch/out" || fail 'roles: not verified'
roles 0 0 "--op read ${small[*]}" "--op read ${small[*]}"
roles 1 1 "${small[*]}" "--damage ${small[*]}"

# Options that must be the same: the first that is not is named, with both values, by both sides.
differ() { # differ NAME PREFILL_VALUE DECODE_VALUE
	roles 1 1 "${small[*]} --$1 $2" "${small[*]} --$1 $3"
	grep -q -- "kvlane demo: decode: --$1: $3 here, $2 on the prefill side" "$scratch/err" ||
		fail "other --$1: not said by decode:"
	grep -q -- "kvlane demo: prefill: --$1: $2 here, $3 on the decode side" "$scratch/prefill" ||
		fail "other --$1: not said by prefill: $(cat "$scratch/prefill")"
}
differ model Llama-3.1-8B gpt-oss-120b
differ dtype bf16 fp16
differ tp 1 2
differ block-tokens 16 8
differ requests 2 3
differ tokens 24 25
differ rounds 1 2
differ seed 1 2
differ op read write
differ mode whole layer
differ memory user mapped
differ lanes 8 2

# ------------------------------------------------------------------------------------- sides that are not there

run 1 --role decode --rendezvous "$scratch/dir" --timeout 0.3 "${small[@]}"
grep -q 'no prefill side' "$scratch/err" || fail 'a side that never comes: not said'

# A second agent of the same name; then the first one is killed, and the next start cleans up.
"$kvlane" demo --role prefill --rendezvous "$scratch/dir" --timeout 60 "${small[@]}" >"$scratch/prefill" 2>&1 &
prefill=$!
started+=("$prefill")
await test -e "$scratch/dir/prefill.kvlane" || fail 'prefill does not publish'
timeout -k 1 20 "$kvlane" demo --role prefill --rendezvous "$scratch/dir" "${small[@]}" >"$scratch/out" 2>"$scratch/err"
code=$?
[ $code = 2 ] || fail "a second prefill in the same directory: exit code $code"
grep -q 'prefill' "$scratch/err" || fail 'a second prefill in the same directory: not named'
kill -KILL $prefill
wait $prefill 2>/dev/null
roles 0 0 "${small[*]}" "${small[*]}"

# Both pools are mapped in a process that has connected: 32 layers of its own, 32 of the other side.
# shellcheck disable=SC2317
connected() {
	[ "$(grep -c memfd: "/proc/$1/maps")" -ge 64 ]
}

# A decode side that is killed under way: the prefill side, started on its own, says so and ends.
for op in write read; do
	long=(--rendezvous "$scratch/dir" --rounds 1000 --op "$op" --timeout 10 "${small[@]}")
	"$kvlane" demo --role prefill "${long[@]}" >"$scratch/out" 2>"$scratch/err" &
	prefill=$!
	"$kvlane" demo --role decode "${long[@]}" >"$scratch/decode" 2>&1 &
	decode=$!
	started+=("$prefill" "$decode")
	await connected $prefill || fail 'the two sides do not connect'
	kill -KILL $decode
	wait $decode 2>/dev/null
	await gone $prefill || fail 'the prefill process does not end'
	wait $prefill
	code=$?
	[ $code = 1 ] || fail "the decode side was killed: exit code $code of prefill"
	grep -q 'the decode side is gone' "$scratch/err" || fail 'the decode side was killed: not said'
	roles 0 0 "${small[*]}" "${small[*]}"
done

# A pair in the middle of many rounds. Sets pair, child.
start_pair() {
	"$kvlane" demo --rounds 1000 "${small[@]}" "$@" >"$scratch/out" 2>"$scratch/err" &
	pair=$!
	started+=("$pair")
	await connected $pair || fail 'the pair does not connect'
	child=$(cat "/proc/$pair/task/$pair/children")
	child=${child% }
	started+=("$child")
}

end_pair() { # end_pair TEXT
	local code
	await gone $pair || fail "$1: the decode process does not end"
	wait $pair 2>/dev/null
	code=$?
	[ $code = 1 ] || fail "$1: exit code $code, expected 1"
	grep -q "$1" "$scratch/err" || fail "$1: not said:"
	gone "$child" || fail "$1: the prefill process is still there"
	clean "$1"
}

for op in write read; do
	start_pair --op $op
	kill -KILL "$child"
	end_pair 'is gone'

	start_pair --op $op --timeout 1
	kill -STOP "$child"
	end_pair '(--timeout)\|TIMED_OUT'

	# A signal to the parent ends both, removes the directory, and is what the parent dies of.
	for signal in TERM HUP; do
		start_pair --op $op
		kill -$signal $pair
		wait $pair 2>/dev/null
		code=$?
		[ $code = $((128 + $(kill -l $signal))) ] || fail "SIG$signal: exit code $code"
		gone "$child" || fail "SIG$signal: the prefill process is still there"
		clean "SIG$signal"
	done

	# The parent is killed: its child goes with it, and the next start removes what they left.
	start_pair --op $op
	kill -KILL $pair
	wait $pair 2>/dev/null
	await gone "$child" || fail 'the prefill process outlives a killed parent'
	[ -n "$(left_behind)" ] || fail 'kill -9 of the parent left nothing: this test no longer tests anything'
	run 0 "${small[@]}"
done

exit $failed
