#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# systemd_bed.sh DIR NAME: runs this machine's systemd as pid 1 of namespaces of its own, on an overlay of / with the files of
# DIR/files on top. It downloads nothing and writes nothing outside of DIR and the cgroups NAME. The console is stdout. It ends
# when that systemd powers off, or with the process itself; the caller removes the cgroups.
set -eu

outer() {
	for tree in /sys/fs/cgroup /sys/fs/cgroup/*; do
		[ -f "$tree/cgroup.procs" ] || continue
		mkdir "$tree/$NAME"
		# A v1 cpuset accepts no process before its cpus are set.
		for file in cpuset.cpus cpuset.mems; do
			[ ! -f "$tree/$file" ] || cat "$tree/$file" >"$tree/$NAME/$file" 2>/dev/null || true
		done
		echo $$ >"$tree/$NAME/cgroup.procs"
	done
	exec unshare --pid --fork --kill-child --mount --propagation private --cgroup --uts --ipc --net \
		/bin/bash "$0" "$DIR" "$NAME" inner
}

make_dev() {
	mount -t tmpfs -o mode=755,nosuid dev dev
	mkdir dev/pts dev/shm
	for node in null zero full random urandom tty fuse; do
		[ -e "/dev/$node" ] || continue
		touch "dev/$node"
		mount --bind "/dev/$node" "dev/$node"
	done
	mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts dev/pts
	mount -t tmpfs -o mode=1777 shm dev/shm
	ln -s pts/ptmx dev/ptmx
	ln -s /proc/self/fd dev/fd
}

# Makes the same hierarchies as on the host; the root of each is our own cgroup, because of the cgroup namespace.
make_cgroups() {
	if [ -f /sys/fs/cgroup/cgroup.procs ] || [ "${BED_UNIFIED:-}" ]; then
		mount -t cgroup2 cgroup2 sys/fs/cgroup
		return
	fi
	trees=$(grep ' /sys/fs/cgroup/' /proc/self/mounts)
	mount -t tmpfs -o mode=755 tmpfs sys/fs/cgroup
	while read -r _ point type options _; do
		case $type in
		cgroup2) target=unified words= ;;
		cgroup) target=${point##*/} words=$(printf %s "$options" | tr , '\n' | grep -vxE 'rw|ro|relatime|no.*' | paste -sd,) ;;
		*) continue ;;
		esac
		[ ! -d "sys/fs/cgroup/$target" ] || continue # a mount that is hidden below another
		mkdir "sys/fs/cgroup/$target"
		mount -t "$type" ${words:+-o "$words"} "$type" "sys/fs/cgroup/$target"
	done <<<"$trees"
}

inner() {
	export LIBMOUNT_UTAB="$DIR/utab" # so that mount(8) leaves no files in /run
	mkdir -p "$DIR/root"
	mount -t tmpfs -o mode=755 bed "$DIR/root"
	mkdir "$DIR/root/up" "$DIR/root/work" "$DIR/root/root"
	cp -a "$DIR/files/." "$DIR/root/up/"
	: >"$DIR/root/up/etc/machine-id"
	mount -t overlay -o "lowerdir=/,upperdir=$DIR/root/up,workdir=$DIR/root/work" overlay "$DIR/root/root"
	cd "$DIR/root/root"
	mount -t proc proc proc
	# Kernel variables belong to the machine: this systemd must not set them.
	mount --bind proc/sys proc/sys
	mount -o remount,ro,bind proc/sys
	mount -t sysfs -o ro sys sys
	make_cgroups
	make_dev
	mount -t tmpfs -o mode=755 run run
	mount -t tmpfs -o mode=1777 tmp tmp
	ip link set lo up 2>/dev/null || true
	chroot . systemd-sysusers drover.conf
	mkdir -p mnt
	pivot_root . mnt
	umount -l /mnt
	exec env -i container=drover-bed PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --system --unit=bed.target \
		--show-status=false
}

DIR=$1 NAME=$2
"${3:-outer}"
