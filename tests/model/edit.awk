# SPDX-License-Identifier: Apache-2.0
# Edits a source file by pairs of literal texts: awk -f edit.awk PAIRS SOURCE. PAIRS has lines "-old" followed by
# "+new"; every occurrence is replaced, and \n in the new text starts a line. Exit 1 when an old text is missing.
NR == FNR {
	if (/^-/)
		old[++n] = substr($0, 2)
	else if (/^\+/) {
		new[n] = substr($0, 2)
		gsub(/\\n/, "\n", new[n])
	}
	next
}
{
	for (i = 1; i <= n; i++) {
		at = index($0, old[i])
		if (at) {
			found[i] = 1
			$0 = substr($0, 1, at - 1) new[i] substr($0, at + length(old[i]))
		}
	}
	print
}
END {
	if (n == 0)
		exit 1
	for (i = 1; i <= n; i++)
		if (!found[i])
			exit 1
}
