#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes sure that what a make target needs is there: installs what is missing with apt-get when it can,
# otherwise prints the one command that does and exits 1. Says nothing when nothing is missing.
# Usage: install-deps.sh build|demo|test|ci
set -eu

missing=
want()
{
	package=$1
	shift
	"$@" >/dev/null 2>&1 || missing="$missing $package"
}
# Either makes the package superfluous.
tool() { want "$1" command -v "$2"; }
module() { want "$1" pkg-config --exists "$2"; }
header() { want "$1" sh -c "echo '#include <$2>' | gcc -E -"; }

tool cmake cmake
tool gcc gcc
tool make make
tool pkg-config pkg-config
header libc6-dev stdio.h
module libjansson-dev 'jansson >= 2.14'
case ${1:-build} in
test | ci)
	module libcmocka-dev 'cmocka >= 1.1.5'
	tool g++ g++
	tool binutils nm
	tool spin spin
	tool universal-ctags ctags
	;;
esac
case ${1:-build} in
ci)
	tool clang clang
	tool clang-format clang-format
	;;
esac
[ -n "$missing" ] || exit 0

install="apt-get install -y --no-install-recommends$missing"
if [ "$(id -u)" = 0 ]; then
	root=
elif sudo -n true 2>/dev/null; then
	root='sudo -n '
else
	root=none
fi
if [ "$root" = none ] || ! command -v apt-get >/dev/null; then
	echo "Missing:$missing. On Debian 12 this installs them:" >&2
	echo "  sudo sh -c 'apt-get update && $install'" >&2
	exit 1
fi
echo "Installing what is missing:$missing" >&2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { ${root}apt-get update && ${root}env DEBIAN_FRONTEND=noninteractive $install; } >"$log" 2>&1; then
	cat "$log" >&2
	echo "That did not work; the command was: ${root}$install" >&2
	exit 1
fi
