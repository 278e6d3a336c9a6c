#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Bad usage: exit code 2, one sentence on standard error that names the thing, nothing on standard output,
# nothing left behind. Usage: test_cli.sh KVLANE
set -u
kvlane=$1
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
export TMPDIR=$scratch/tmp
mkdir "$TMPDIR" "$scratch/dir"
failed=0

fail() {
	echo "$*" >&2
	sed 's/^/    /' "$scratch/err" >&2
	failed=1
}

# run EXPECTED_EXIT ARGS...: output in $scratch/out and $scratch/err.
run() {
	local expected=$1 code
	shift
	timeout -k 1 20 "$kvlane" "$@" >"$scratch/out" 2>"$scratch/err"
	code=$?
	[ $code = "$expected" ] || fail "kvlane $*: exit code $code, expected $expected"
	[ -z "$(find "$TMPDIR" "$scratch/dir" -mindepth 1)" ] || fail "kvlane $*: left something behind"
}

# bad NAMED ARGS...: standard error must name NAMED in its first line.
bad() {
	local named=$1
	shift
	run 2 "$@"
	head -n 1 "$scratch/err" | grep -qF -- "$named" || fail "kvlane $*: does not name '$named':"
	[ ! -s "$scratch/out" ] || fail "kvlane $*: wrote to standard output"
}

# good TEXT ARGS...: exit code 0 and TEXT on standard output, nothing on standard error.
good() {
	local text=$1
	shift
	run 0 "$@"
	grep -qF -- "$text" "$scratch/out" || fail "kvlane $*: does not print '$text'"
	[ ! -s "$scratch/err" ] || fail "kvlane $*: wrote to standard error:"
}

bad 'no command'
bad 'dmeo' dmeo
bad '"": no such command' ''
bad '--frobnicate' --frobnicate
bad 'frobnicate' help frobnicate

bad '--frobnicate' demo --frobnicate
bad 'stray' demo stray
bad '--model' demo --model
bad 'Llama-9' demo --model Llama-9
bad '--requests 0' demo --requests 0
bad '--requests -1' demo --requests -1
bad '--requests 4097' demo --requests 4097
bad '--requests 8x' demo --requests 8x
bad '--requests 99999999999999999999' demo --requests 99999999999999999999
bad '--tokens 0' demo --tokens 0
bad '--tokens 1.5' demo --tokens 1.5
bad '--tokens 2m' demo --tokens 2m
bad '--block-tokens 0' demo --block-tokens 0
bad '--dtype int4' demo --dtype int4
bad '--tp 3' demo --tp 3
bad '--tp 16' demo --tp 16
bad '--tp 0' demo --tp 0
bad '--op both' demo --op both
bad '--mode token' demo --mode token
bad '--memory gpu' demo --memory gpu
bad '--inflight 0' demo --inflight 0
bad '--wire sim' demo --wire sim
bad '--wire tcp' demo --wire tcp
bad '--set wire=sim' demo --set wire=sim
bad '--retire never' demo --retire never
bad '--workers two' demo --workers two
bad '--lanes 65' demo --lanes 65
bad '--set chunk_bytes' demo --set chunk_bytes
bad '--set chunk_bytes=1' demo --set chunk_bytes=1
bad 'chunk_byte' demo --set chunk_byte=64k
bad 'latency_lanes' demo --lanes 2 --set latency_lanes=2
bad '--pool 12q' demo --pool 12q
bad '--pool 0' demo --pool 0
bad '--pool 1MiB' demo --pool 1MiB
bad '--seed x' demo --seed x
bad '--rounds 0' demo --rounds 0
bad '--timeout 0' demo --timeout 0
bad '--timeout nan' demo --timeout nan
bad '--timeout 1e1' demo --timeout 1e1
bad '--timeout 0x10' demo --timeout 0x10
bad '--timeout +3' demo --timeout +3
bad '--timeout 3.' demo --timeout 3.
bad '--op "":' demo --op ''
bad '--tokens "":' demo --tokens ''
bad 'kvlane demo: "": unexpected' demo ''
bad 'kvlane info lists the options' demo --set frobnicate=1
bad '--role both' demo --role both --rendezvous "$scratch/dir"
bad '--role decode' demo --role decode
bad "--rendezvous $scratch/dir" demo --rendezvous "$scratch/dir"
bad "$scratch/none" demo --role decode --rendezvous "$scratch/none"
bad "$scratch/err" demo --role decode --rendezvous "$scratch/err"
bad '--json' demo --role prefill --rendezvous "$scratch/dir" --json "$scratch/x.json"
bad '--damage' demo --role prefill --rendezvous "$scratch/dir" --damage
bad "$scratch/none/x.json" demo --json "$scratch/none/x.json"
bad "$scratch/dir" demo --json "$scratch/dir"
bad "$scratch/none/x.json" info --json="$scratch/none/x.json"
bad 'stray' info stray
bad '--frobnicate' info --frobnicate
bad '--frobnicate' bench --frobnicate

# The environment is checked like everything else.
KVLANE_FROBNICATE=1 bad 'KVLANE_FROBNICATE' demo --requests 1 --tokens 1
KVLANE_LANES=0 bad 'KVLANE_LANES' demo --requests 1 --tokens 1
KVLANE_FROBNICATE=1 bad 'KVLANE_FROBNICATE' info
KVLANE_FROBNICATE=1 bad 'kvlane info lists the options' info
KVLANE_WIRE=sim bad 'KVLANE_WIRE' demo --requests 1 --tokens 1
KVLANE_WIRE=sim run 0 demo --requests 1 --tokens 1 --wire local
for command in demo info 'bench single'; do
	# shellcheck disable=SC2086
	KVLANE_CONFIG=$scratch/none bad "$scratch/none" $command
	[ "$(grep -c "$scratch/none" "$scratch/err")" = 1 ] || fail "KVLANE_CONFIG, $command: not said once:"
done
echo 'wire = sim' >"$scratch/conf"
KVLANE_CONFIG=$scratch/conf bad 'KVLANE_CONFIG' demo --requests 1 --tokens 1

# A base directory that is not there is named.
for command in demo info 'bench single --rounds 1'; do
	# shellcheck disable=SC2086
	TMPDIR=$scratch/none timeout -k 1 20 "$kvlane" $command >"$scratch/out" 2>"$scratch/err"
	[ $? = 1 ] || fail "TMPDIR that is not there, $command: not exit code 1"
	grep -qF "TMPDIR $scratch/none: No such file" "$scratch/err" || fail "TMPDIR, $command: not named:"
done

# A directory without rights is refused; nothing is refused to root.
if [ "$(id -u)" != 0 ]; then
	chmod 500 "$scratch/dir"
	bad "$scratch/dir" demo --role decode --rendezvous "$scratch/dir"
	chmod 700 "$scratch/dir"
fi

good 'Usage: kvlane' --help
good 'Usage: kvlane' help
good 'Usage: kvlane demo' demo --help
good 'Usage: kvlane demo' help demo
good 'Exit codes:' demo --help
good 'Usage: kvlane info' info --help
good 'kvlane 0.' --version
good 'Llama-3.1-8B' demo --model list
good 'retire_order' info
good 'KVLANE_CONFIG' --help
for limit in deadline_ms connect_timeout_ms retire_order wire; do
	run 0 info --json
	sed -n '/"limits"/,/}/p' "$scratch/out" | grep -q "\"$limit\": " || fail "info: $limit in force is not shown"
done
good '"local_paths"' info --json
run 0 info --json "$scratch/info.json"
grep -q '"limits"' "$scratch/info.json" || fail 'info --json FILE: no limits in the file'

# The wire that the demo uses by default works here, by at least one path, and the answer is the same in text.
grep -q '"works": true' "$scratch/info.json" || fail 'info: no path of the local wire works'

# What could not be written is not a success, and is said once, with the reason.
unwritten() { # unwritten REASON EXIT_CODE WHAT
	[ "$2" = 1 ] || fail "$3: exit code $2, expected 1"
	[ "$(grep -c 'standard output: .*: '"$1" "$scratch/err")" = 1 ] || fail "$3: '$1' is not said once:"
	! grep -q '^[{}]' "$scratch/err" || fail "$3: the object is on standard error:"
}

quick=(single --rounds 2 --warmup 0 --json -)
for words in '--help' '--version' 'info' 'info --json' 'demo --help' 'demo --model list' 'bench --help' \
	'bench single --help' "bench ${quick[*]}" 'demo --requests 1 --tokens 1' \
	'demo --requests 1 --tokens 1 --json -'; do
	# shellcheck disable=SC2086
	timeout -k 1 20 "$kvlane" $words >/dev/full 2>"$scratch/err"
	unwritten 'No space left on device' $? "kvlane $words >/dev/full"
	# shellcheck disable=SC2086
	timeout -k 1 20 "$kvlane" $words >&- 2>"$scratch/err"
	unwritten 'Bad file descriptor' $? "kvlane $words >&-"
done

# With every standard descriptor closed there is nobody to tell, but the code tells.
timeout -k 1 20 "$kvlane" info <&- >&- 2>&-
[ $? = 1 ] || fail 'kvlane info with closed descriptors: not exit code 1'

exit $failed
