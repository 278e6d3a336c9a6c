#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs to a fresh prefix, moves it, and builds a small program against it with nothing else: by pkg-config
# and by the CMake package, shared and static. Usage: install.sh BUILD_DIR [CC]
. "$(dirname "$0")/common.sh"
here=$(cd "$(dirname "$0")" && pwd)
build=$1
cc=${2:-gcc}
need pkg-config pkg-config

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
if ! env -u DESTDIR cmake --install "$build" --prefix "$tmp/first" >"$tmp/out" 2>&1; then
	cat "$tmp/out"
	exit 1
fi
# What still works after this depends on no path of the build.
mv "$tmp/first" "$tmp/prefix"
prefix=$tmp/prefix

pc=$(find "$prefix" -name kvlane.pc)
[ -n "$pc" ] || { echo "kvlane.pc is not installed"; exit 1; }
export PKG_CONFIG_PATH=${pc%/*}
lib=$(cd "${pc%/*}/.." && pwd)
version=$(pkg-config --modversion kvlane)

# expect NAME COMMAND...: its output is the version of the package
expect()
{
	local name=$1 out
	shift
	out=$("$@" 2>&1) || true
	[ "$out" = "kvlane $version" ] || finding "$name: says \"$out\" instead of \"kvlane $version\""
}

warnings=(-std=c11 -Wall -Wextra -Werror)
if $cc "${warnings[@]}" -o "$tmp/shared" "$here/program.c" $(pkg-config --cflags --libs kvlane); then
	expect "pkg-config, shared" env LD_LIBRARY_PATH="$lib" "$tmp/shared"
	readelf -d "$tmp/shared" | grep -q 'NEEDED.*\[libkvlane\.so\.' ||
		finding "pkg-config, shared: the program does not load libkvlane.so.N"
else
	finding "pkg-config, shared: does not build"
fi
if $cc "${warnings[@]}" -static -o "$tmp/static" "$here/program.c" \
	$(pkg-config --static --cflags --libs kvlane); then
	expect "pkg-config, static" "$tmp/static"
else
	finding "pkg-config, static: does not build"
fi

if cmake -S "$here/package" -B "$tmp/package" -DCMAKE_C_COMPILER="$cc" -DCMAKE_PREFIX_PATH="$prefix" \
	>"$tmp/out" 2>&1 && cmake --build "$tmp/package" >>"$tmp/out" 2>&1; then
	expect "CMake, shared" "$tmp/package/with_kvlane"
	expect "CMake, static" "$tmp/package/with_kvlane_static"
else
	finding "CMake package: does not build"$'\n'"$(tail -n 20 "$tmp/out")"
fi

if [ -x "$prefix/bin/kvlane" ]; then
	"$prefix/bin/kvlane" --version >"$tmp/out" 2>&1 || finding "the installed program: $(cat "$tmp/out")"
else
	finding "the program is not installed"
fi
for file in README.md LICENSE; do
	[ -n "$(find "$prefix/share" -name $file)" ] || finding "$file is not installed"
done
if grep -rIl -e "$tmp" -e "$(cd "$build" && pwd)" "$prefix" >"$tmp/out"; then
	finding "installed files name the build: $(cat "$tmp/out")"
fi
finish "installed, moved, and built against: pkg-config and CMake, shared and static ($version)"
