#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# hostile_ring over copies of shared/ring.h that trust the peer in one place each: every one must be caught.
# Usage: run_hostile.sh ROOT. Exit 0, 1, or 77 when the compiler is missing. $CC: the compiler.
set -u

root=$(cd "${1:?usage: run_hostile.sh ROOT}" && pwd) || exit 1
CC=${CC:-gcc}
if ! command -v "$CC" >/dev/null; then
	echo "skipped: $CC is not installed (Debian package: gcc)"
	exit 77
fi
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
mkdir "$work/src"
cp -r "$root/src/shared" "$work/src/"
failed=0
say() { printf '%-16s %s\n' "$1" "$2"; }

# build: hostile_ring over the present copy
build()
{
	"$CC" -std=gnu11 -O1 -pthread -I"$work/src" "$root/tests/stress/hostile_ring.c" -o "$work/hostile"
}

# mutant NAME: the edit comes from standard input, see edit.awk
mutant()
{
	if ! awk -f "$root/tests/model/edit.awk" - "$root/src/shared/ring.h" >"$work/src/shared/ring.h"; then
		say "$1" "FAILED: ring.h does not have what the edit replaces"
		failed=1
	elif ! build; then
		say "$1" "FAILED: does not compile"
		failed=1
	elif timeout 20 "$work/hostile" >"$work/out" 2>&1; then
		say "$1" "SURVIVED: $(tail -1 "$work/out")"
		failed=1
	else
		say "$1" "caught: $(tail -1 "$work/out" | sed 's|.*/tests/stress/||')"
	fi
}

if ! build || ! "$work/hostile" >"$work/out" 2>&1; then
	cat "$work/out"
	say "as written" FAILED
	exit 1
fi
say "as written" "$(tail -1 "$work/out")"

mutant tail_trusted <<'END'
-if (have > c->size || have % RING_GRAIN)
+if (0)
END
mutant length_trusted <<'END'
-if (frame->len > c->size ||
+if (
END
mutant wrap_trusted <<'END'
- || ring_need(frame->len) > to_end)
+)
END
mutant head_trusted <<'END'
-if (seq_distance(head, p->tail) > p->size || head % RING_GRAIN)
+if (0)
END
mutant head_kept <<'END'
-	p->head_seen = head;
+
-	if (seq_distance(head, p->tail) > p->size || head % RING_GRAIN)
+	p->head_seen = head;\n	if (seq_distance(head, p->tail) > p->size || head % RING_GRAIN)
END
mutant grain_trusted <<'END'
- || head % RING_GRAIN)
+)
END
exit $failed
