#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# demo.sh BUILD: runs an agent, a CSI plugin, a volume and a job that writes to it, then replaces the allocation and
# shows that the data is still there. Uses one temporary directory and removes it at the end, also when interrupted.

build=$(cd "${1:-build}" && pwd) || exit 1
examples=$(cd "$(dirname "$0")/../contrib/examples" && pwd) || exit 1
drover=$build/drover
dir=$(mktemp -u "${TMPDIR:-/tmp}/drover-demo.XXXXXX") || exit 1
agent=
instance=
made=

say() {
	printf '\n==> %s\n' "$*"
}

fail() {
	printf '\ndemo: %s\n' "$*" >&2
	exit 1
}

# Prints a command of drover and runs it.
run() {
	printf '$ drover %s\n' "$*"
	"$drover" "$@"
}

# until_true SECONDS WHAT COMMAND...
until_true() {
	left=$(($1 * 10)) what=$2
	shift 2
	until "$@" >/dev/null 2>&1; do
		[ -z "$agent" ] || kill -0 "$agent" 2>/dev/null || fail "the agent ended"
		[ "$left" -gt 0 ] || fail "$what: timed out"
		left=$((left - 1))
		sleep 0.1
	done
}

agent_ended() {
	! kill -0 "$agent" 2>/dev/null
}

# wait_agent TENTHS
wait_agent() {
	left=$1
	until agent_ended; do
		[ "$left" -gt 0 ] || return 1
		left=$((left - 1))
		sleep 0.1
	done
}

# Prints what this demo has left on the machine.
leftovers() {
	[ -n "$instance" ] || instance=$(cat "$dir/data/instance" 2>/dev/null)
	grep -F " $dir/" /proc/self/mountinfo | sed 's/^/mount: /'
	[ -z "$instance" ] || find /sys/fs/cgroup -maxdepth 3 -type d -name "drover-$instance" 2>/dev/null | sed 's/^/cgroup: /'
	# The pattern comes from stdin, or grep would find itself.
	for p in $(printf '%s\n' "$dir/" | grep -lsF -f - /proc/[0-9]*/cmdline); do
		echo "process: $p $(tr '\0' ' ' <"$p")"
	done 2>/dev/null
}

# The agent has a session of its own, so an interrupt of this process group does not reach it; this function sends it
# one SIGTERM, and it drains.
clean_up() {
	code=$?
	trap '' INT TERM HUP PIPE
	[ "$agent" != starting ] || agent=$!
	if [ -n "$agent" ]; then
		kill -TERM "$agent" 2>/dev/null
		wait_agent 300 || {
			kill -TERM "$agent" # ends the drain early
			wait_agent 300
		}
		if [ "$code" = 1 ]; then
			echo "demo: the end of the agent's log:" >&2
			tail -n 40 "$dir/agent.log" >&2
		fi
	fi
	left=300
	while [ -n "$(leftovers)" ] && [ "$left" -gt 0 ]; do
		left=$((left - 1))
		sleep 0.1
	done
	if [ -n "$(leftovers)" ]; then
		echo "demo: this is left over:" >&2
		leftovers >&2
		code=1
	elif [ -n "$made" ]; then
		rm -rf --one-file-system "$dir"
	fi
	trap - EXIT
	exit "$code"
}

[ "$(id -u)" = 0 ] || fail "the agent starts as root: run this as root"
[ -x "$build/drover-launcher" ] || fail "there is no $build/drover-launcher: run make first"
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
trap 'exit 141' PIPE
# mktemp only chooses the name: an interrupt right after it made the directory would leave it behind. mkdir fails if the
# name exists.
made=yes
mkdir -m 0755 "$dir" || { made= && fail "make $dir"; }
mkdir -m 0777 "$dir/store"
cp "$build/drover-csi-local" "$dir/store/" || fail "copy the plugin"
sed 's,/usr/libexec/drover/,/store/,' "$examples/plugin.json" >"$dir/plugin.json"
cat >"$dir/agent.hcl" <<EOT
client {
  host_volume "csi-local" {
    path = "$dir/store"
  }
}
EOT
DROVER_ADDR=unix://$dir/data/rt/drover.sock
export DROVER_ADDR

say "Starting an agent in $dir"
printf '$ drover agent -dev -config agent.hcl -data-dir data &\n'
agent=starting
setsid "$drover" agent -dev -config "$dir/agent.hcl" -data-dir "$dir/data" </dev/null >"$dir/agent.log" 2>&1 &
agent=$!
until_true 60 "the agent answers" "$drover" status
instance=$(cat "$dir/data/instance")
run status || fail "no status"

say "A CSI plugin runs as a task, and not as uid 0"
run job run "$dir/plugin.json" || fail "the plugin does not run"
plugin_healthy() {
	"$drover" plugin status -json local | grep -q '"NodesHealthy": 1' &&
		"$drover" plugin status -json local | grep -q '"ControllersHealthy": 1'
}
until_true 60 "the plugin is healthy" plugin_healthy
run plugin status

say "It makes a volume, and a job's task writes to it"
run volume create "$examples/volume.json" || fail "no volume"
run job run "$examples/writer.json" || fail "the writer does not run"
first=$("$drover" alloc status -verbose | awk '$2 == "writer.writer[0]" && $5 == "running" { print $1 }')
[ -n "$first" ] || fail "the writer has no allocation"
# Counts the lines in the volume, in the directory where the plugin stores it.
lines() {
	cat "$dir"/store/volumes/volumes/*/log 2>/dev/null | wc -l
}
three_lines() {
	[ "$(lines)" -ge 3 ]
}
until_true 60 "three lines are written" three_lines
run volume status demo

say "The allocation is replaced by another one"
run alloc stop "$first" || fail "the allocation was not replaced"
second=$("$drover" alloc status -verbose | awk '$2 == "writer.writer[0]" && $5 == "running" { print $1 }')
[ -n "$second" ] && [ "$second" != "$first" ] || fail "there is no second allocation"

say "It finds what the first one wrote"
found_lines() {
	"$drover" alloc logs "$second" | grep -q "^found [0-9]* lines" &&
		"$drover" alloc logs "$second" | grep -q "allocation $first was here"
}
until_true 60 "the second allocation has looked" found_lines
run alloc logs "$second"
found=$("$drover" alloc logs "$second" | sed -n 's/^found \([0-9]*\) lines.*/\1/p')
[ "$found" -ge 3 ] || fail "the data is gone: $found lines"

say "The node is drained, and nothing is left"
run node drain -yes || fail "the node was not drained"
run leaks || fail "there are leaks"
kill -TERM "$agent"
wait_agent 300 || fail "the agent does not end"
wait "$agent" || fail "the agent ended with exit code $?"
agent=
left=$(leftovers)
[ -z "$left" ] || fail "left over: $left"
say "The demo is over: $found lines survived their allocation"
