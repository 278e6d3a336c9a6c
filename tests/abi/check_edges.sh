#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Holds docs/memory-order.md and the ordered accesses in src together, after it has checked itself on trees
# that are wrong in one place each. Usage: check_edges.sh ROOT
. "$(dirname "$0")/common.sh"
register=docs/memory-order.md

# accesses ORDERS: the lines that have one, "file:line:text". word.h defines them.
accesses()
{
	grep -rnE "_($1)_sys\(" --include='*.h' --include='*.c' src | grep -v '^src/shared/word.h:' || true
}

# section EDGE: from its heading to the next
section() { awk -v edge="$1" '/^##/ { on = $1 == "###" && $2 == edge } on' "$register"; }

# part EDGE write|read|model: that item with its continuation lines
part()
{
	section "$1" | awk -v key="- $2:" '
		index($0, key) == 1 { on = 1; print; next }
		/^  / { if (on) print; next }
		{ on = 0 }'
}

# labelled EDGE TEXT: the lines of TEXT with that label
labelled() { grep -E "/\* (E[0-9]+ )*$1\b" <<<"$2" || true; }

check_labels()
{
	local hit label
	while read -r hit; do
		[[ $hit =~ /\*\ (E[0-9]+|a\ flag|no\ edge:) ]] || finding "$hit: no label"
		for label in $(grep -oE '/\* E[0-9]+( E[0-9]+)*' <<<"$hit" | grep -oE 'E[0-9]+'); do
			[ -n "$(section "$label")" ] || finding "$hit: $label is not in $register"
		done
	done < <(accesses 'acquire|release|seq')
	while read -r hit; do
		finding "$hit: does not say why relaxed is enough"
	done < <(find src -name '*.[ch]' ! -path src/shared/word.h -exec awk '
		/\/\*/ { left = 0 }
		left && --left == 0 { print bare }
		/_relaxed_sys\(/ && !/\/\*/ { bare = FILENAME ":" FNR ":" $0; left = 2 }' {} \;)
}

# sites EDGE write|read: every place named has the label, and the functions named are there
check_sites()
{
	local edge=$1 side=$2 file='' word
	[ -n "$(part "$edge" "$side")" ] || finding "$register: $edge names no $side site"
	for word in $(part "$edge" "$side" | sed "s/^- $side://; s/[\`,]/ /g"); do
		case $word in
		src/*)
			file=$word
			grep -qE "_sys\(.*/\* (E[0-9]+ )*$edge\b" "$file" 2>/dev/null ||
				finding "$register: $edge: $file has no access with that label"
			;;
		*'()')
			grep -qw "${word%()}" "$file" 2>/dev/null ||
				finding "$register: $edge: $file has no $word"
			;;
		*)
			finding "$register: $edge: \"$word\" is no site"
			;;
		esac
	done
}

check_edge()
{
	local edge=$1 file
	check_sites "$edge" write
	check_sites "$edge" read
	[ -n "$(labelled "$edge" "$(accesses 'release|exchange_seq|add_seq|cas_seq')")" ] ||
		finding "$register: $edge has no release side in src"
	[ -n "$(labelled "$edge" "$(accesses 'acquire|load_seq|exchange_seq|cas_seq')")" ] ||
		finding "$register: $edge has no acquire side in src"
	for file in $(labelled "$edge" "$(accesses 'acquire|release|seq')" | cut -d: -f1 | sort -u); do
		section "$edge" | grep -qF "\`$file\`" || finding "$register: $edge does not name $file"
	done
	grep -qE "^\|.*\| $edge \|" "$register" || finding "$register: $edge has no word"
	[ -n "$(part "$edge" weaker)" ] || finding "$register: $edge does not say what goes wrong without it"
	[ -n "$(part "$edge" model)" ] || finding "$register: $edge has no model"
	for file in $(part "$edge" model | grep -oE 'tests/model/[a-z_]+\.(pml|c)'); do
		[ -f "$file" ] || finding "$register: $edge: no $file"
	done
}

check()
{
	local edge edges
	cd "$1"
	edges=$(sed -n 's/^### \(E[0-9]*\) .*/\1/p' "$register")
	[ -n "$edges" ] || finding "$register: no edges"
	check_labels
	for edge in $edges; do
		check_edge "$edge"
	done
}

# ---- the check's own test: a good tree, and one change of it at a time

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

sample()
{
	rm -rf "$tmp/tree"
	mkdir -p "$tmp"/tree/{src/a,docs,tests/model}
	: >"$tmp/tree/tests/model/a.pml"
	cat >"$tmp/tree/src/a/a.h" <<-'END'
		void put(void) { word32_store_release_sys(&w, 1); /* E1 */ }
		int get(void) { return word32_load_acquire_sys(&w); /* E1 */ }
		int own(void) { return word32_load_relaxed_sys(&w); /* own word */ }
		int last(void);
		int more(void);
	END
	cat >"$tmp/tree/docs/memory-order.md" <<-'END'
		| `w` | here | a | b | release | acquire | E1 | all | no |
		### E1 first
		- write: `src/a/a.h` put()
		- read: `src/a/a.h` get()
		- weaker: chaos
		- model: `tests/model/a.pml`
	END
}

# wrong TEXT FILE SED: after this edit of the good tree the check must complain with this text
wrong()
{
	local out
	sample
	sed -i "$3" "$tmp/tree/$2"
	out=$(check "$tmp/tree")
	[[ $out == *"$1"* ]] || finding "check_edges.sh does not see \"$1\" after $3"
}

self_check()
{
	local out
	sample
	out=$(check "$tmp/tree")
	[ -z "$out" ] || finding "check_edges.sh dislikes a good tree: $out"
	wrong 'no label' src/a/a.h '2s,/\* E1 \*/,,'
	wrong 'E2 is not in' src/a/a.h '2s/E1/E2/'
	wrong 'why relaxed' src/a/a.h '3s,/\*.*\*/,,'
	wrong 'no acquire side' src/a/a.h '2d'
	wrong 'no release side' src/a/a.h '1d'
	wrong 'has no get()' src/a/a.h '2s/get/got/'
	wrong 'no access with that label' docs/memory-order.md '3s/a.h/b.h/'
	wrong 'names no read site' docs/memory-order.md '4d'
	wrong 'has no word' docs/memory-order.md '1d'
	wrong 'what goes wrong' docs/memory-order.md '5d'
	wrong 'has no model' docs/memory-order.md '6d'
	wrong 'no tests/model/b.pml' docs/memory-order.md '6s/a.pml/b.pml/'
	wrong 'no edges' docs/memory-order.md '2d'
}

self_check
check "$1"
finish "every edge of $register has its sites, its word and its model"
