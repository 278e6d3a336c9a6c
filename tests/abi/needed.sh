#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# F54: the library loads on a host that has nothing but libc. Usage: needed.sh LIB.so
. "$(dirname "$0")/common.sh"
need readelf binutils

needed=$(readelf -d "$1" | sed -n -E 's/.*\(NEEDED\).*\[(.*)\]/\1/p')
for name in $needed; do
	case $name in
	libc.so.* | libpthread.so.* | ld-linux*.so.* | ld-musl*.so.*) ;;
	*) finding "$1 needs $name; the library depends on libc alone" ;;
	esac
done
missing=$(LC_ALL=C ldd "$1" | grep 'not found' || true)
[ -z "$missing" ] || finding "$missing"
finish "needs only:" $needed
