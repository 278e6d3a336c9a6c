#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Who may include whom. A folder sees itself and what its row names; wires are leaves behind wire/wire.h and
# never see each other. Usage: include_direction.sh ROOT
. "$(dirname "$0")/common.sh"
cd "$1"

# folder of src: what it sees ("public" is include/kvlane, "wire" is src/wire/*.h without the leaves)
sees()
{
	case $1 in
	shared) echo shared ;;
	base) echo base public ;;
	control) echo control base shared public ;;
	lane) echo lane base shared wire public ;;
	bounce) echo bounce base shared public ;;
	telemetry) echo telemetry base shared public ;;
	xfer) echo xfer base shared control lane bounce wire public ;;
	rendezvous) echo rendezvous base control public ;;
	agent) echo agent base shared control lane bounce wire xfer rendezvous telemetry public ;;
	wire) echo wire base shared public ;;
	wire/*) echo "$1" wire base shared control public ;;
	esac
}

# folder PATH: its row above
folder()
{
	local path=${1#src/}
	case $path in
	include/kvlane/* | kvlane/*) echo public ;;
	wire/*/*) path=${path#wire/}; echo "wire/${path%%/*}" ;;
	*/*) echo "${path%%/*}" ;;
	*) echo "$path" ;;
	esac
}

# resolve FILE NAME ROOT...: the included file's path, or nothing
resolve()
{
	local root
	for root in "$(dirname "$1")" "${@:3}"; do
		if [ -f "$root/$2" ]; then
			echo "$root/$2"
			return
		fi
	done
}

# includes FILE: "LINE KIND NAME", KIND is q or a
includes()
{
	sed -n -E 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*"([^"]+)".*/q \1/p; t
		s/^[[:space:]]*#[[:space:]]*include[[:space:]]*<([^>]+)>.*/a \1/p' "$1"
}

check_src()
{
	local file=$1 kind=$2 name=$3 from target to
	from=$(folder "$file")
	if [ -z "$(sees "$from")" ]; then
		finding "$file: folder $from has no row in include_direction.sh"
		return
	fi
	if [ "$kind" = a ]; then
		case $name in
		kvlane/*) finding "$file: <$name>: inside the library it is \"$name\"" ;;
		rdma/*) [ "$from" = wire/fabric ] || finding "$file: <$name>: only for src/wire/fabric" ;;
		cuda* | nv*) [ "$from" = cuda ] || finding "$file: <$name>: only for src/cuda" ;;
		jansson.h | cmocka.h) finding "$file: <$name>: the library needs libc alone" ;;
		esac
		return
	fi
	case $name in
	*..*) finding "$file: \"$name\": say it from src/" ;;
	esac
	target=$(resolve "$file" "$name" include src)
	if [ -z "$target" ]; then
		finding "$file: \"$name\": no such file"
		return
	fi
	to=$(folder "$target")
	case " $(sees "$from") " in
	*" $to "*) ;;
	*) finding "$file: \"$name\": $from does not see $to" ;;
	esac
}

# Programs, examples and pair tests see the public header and their own folder.
check_user()
{
	local file=$1 kind=$2 name=$3
	case $name in
	kvlane/*) [ -f "include/$name" ] || finding "$file: \"$name\": no such file" ;;
	*)
		[ "$kind" = q ] || return 0
		case $name in
		*/*) finding "$file: \"$name\": only include/kvlane and the own folder are seen from here" ;;
		*) [ -f "$(dirname "$file")/$name" ] || finding "$file: \"$name\": not in the own folder" ;;
		esac
		;;
	esac
}

# Other tests see all, but what they name must be there.
check_test()
{
	local file=$1 kind=$2 name=$3
	[ "$kind" = q ] || return 0
	[ -n "$(resolve "$file" "$name" include src tests/unit tools/kvlane)" ] ||
		finding "$file: \"$name\": no such file"
}

# The public headers stand alone.
check_public()
{
	local file=$1 kind=$2 name=$3
	case $name in
	stddef.h | stdint.h | stdbool.h | string.h | kvlane/*) ;;
	*) finding "$file: $name: public headers include stddef, stdint, stdbool, string and each other" ;;
	esac
}

n=0
check_files()
{
	local check=$1 file kind name
	shift
	while read -r file; do
		n=$((n + 1))
		while read -r kind name; do
			"$check" "$file" "$kind" "$name"
		done < <(includes "$file")
	done < <(sources "$@")
}

check_files check_public include
check_files check_src src
check_files check_user tools examples tests/pair
check_files check_test tests/unit tests/model tests/stress tests/fuzz tests/fault
[ $n -gt 0 ] || finding "no file found"
finish "$n files include in the right direction"
