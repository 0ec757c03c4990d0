#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# privsep.sh [-w] [BUILD]: makes PRIVSEP.md's table of privileges from the constants in the binaries (--describe).
#
# With -w it writes the table into PRIVSEP.md, else it prints it.
set -eu
cd "$(dirname "$0")/.."
write=0
[ "${1:-}" = -w ] && { write=1; shift; }
build=${1:-build}

rows() {
	echo "launcher uid=0 CapInh=0000000000000000 CapPrm=full CapEff=full CapBnd=full CapAmb=0000000000000000 NoNewPrivs=0 Seccomp=0"
	for p in supervisor mount-helper file-helper exec-helper executor csi-helper heartbeat check-helper job-parser fetcher template-renderer listener image-fetcher image-unpacker network-helper holder; do
		"$build/drover-$p" --describe
	done
}

table() {
	echo "| process | uid | inheritable | permitted | effective | bounding | ambient | NoNewPrivs | Seccomp |"
	echo "|---|---|---|---|---|---|---|---|---|"
	rows | while read -r name uid inh prm eff bnd amb nnp sec; do
		printf '| %s | %s | %s | %s | %s | %s | %s | %s | %s |\n' "$name" "${uid#*=}" "${inh#*=}" "${prm#*=}" \
			"${eff#*=}" "${bnd#*=}" "${amb#*=}" "${nnp#*=}" "${sec#*=}"
	done
	echo
	echo '`own`: a user of its own; `mapped`: uid 0 of a user namespace, which is nobody outside; `full`: all of the kernel'"'"'s.'
}

if [ $write = 0 ]; then
	table
	exit 0
fi
table >PRIVSEP.table
awk '/^<!-- table:/ { print; while ((getline line < "PRIVSEP.table") > 0) print line; skip = 1; next }
	/^<!-- end of table/ { skip = 0 } !skip { print }' PRIVSEP.md >PRIVSEP.new
mv PRIVSEP.new PRIVSEP.md
rm PRIVSEP.table
