#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# root-lines.sh [-t]: counts the hand-written lines of code that run as root: no blank lines, no comments. -t: a table.
# The part of the executor before its drop counts. What of common/ the five binaries link is counted once; the configuration parser runs as nobody and is not.
set -eu
cd "$(dirname "$0")/.."
count() { cat "$@" | sed -e 's://.*$::' | awk '
	{ line = $0; out = ""
	  while (length(line)) {
		if (in_c) { i = index(line, "*/"); if (!i) { line = "" } else { line = substr(line, i + 2); in_c = 0 } }
		else { i = index(line, "/*"); if (!i) { out = out line; line = "" } else { out = out substr(line, 1, i - 1); line = substr(line, i + 2); in_c = 1 } }
	  }
	  if (out ~ /[^ \t]/) n++ }
	END { print n + 0 }'; }
# What runs after a drop: the executor's loop, as drover-exec in a chroot; the task's child, as the task's user; the look-up
# child, as nobody; what stops all tasks, as drover.
dropped="executor/exe_serve.c executor/exe_logs.c executor/exe_peers.c executor/exe_request.c executor/exe_stop.c executor/exe_run.c executor/exe_command.c exec-helper/exec_lookup.c holder/hold_stop.c"
common="common/clock common/clone common/mount_proof common/privs common/fd common/path common/err common/log common/id common/ipc common/proc common/lease common/cgroup common/mountinfo common/task_spec common/pid common/exe_record common/exe_record_parse common/sd"
files=""
for c in $common; do [ -f "$c.c" ] && files="$files $c.c"; done
total=0
for part in launcher exec-helper mount-helper executor holder; do
	n=$(count $(for f in "$part"/*.c; do case " $dropped " in *" $f "*) ;; *) echo "$f" ;; esac; done))
	[ "${1:-}" = -t ] && printf '%-14s %5d\n' "$part" "$n"
	total=$((total + n))
done
n=$(count $files)
[ "${1:-}" = -t ] && printf '%-14s %5d\n' common "$n"
total=$((total + n))
echo "$total"
