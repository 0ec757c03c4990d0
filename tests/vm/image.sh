#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# image.sh DIR: makes DIR/kernel, DIR/initrd.gz and DIR/root.img, a Debian 12 guest with Debian's own kernel, pure cgroup v2
# and systemd. Needs root, and once a Debian mirror; what is there already is kept. No loop device, no mount.
set -eu
dir=$1
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$dir"
cd "$dir"

if [ ! -f kernel ]; then
	image=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/.*Depends: \(linux-image-[0-9].*\)/\1/p' | head -n 1)
	echo "vm: downloading $image"
	apt-get download "$image" >/dev/null
	rm -rf kx
	dpkg -x "$image"_*.deb kx
	rm -f "$image"_*.deb
	cp kx/boot/vmlinuz-* kernel
fi
version=$(ls kx/lib/modules)

if [ ! -f initrd.gz ]; then
	rm -rf ir
	mkdir -p ir/bin ir/mod ir/dev ir/proc ir/sys ir/mnt
	cp /bin/busybox ir/bin/
	for module in virtio_ring virtio virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci virtio_blk; do
		find "kx/lib/modules/$version" -name "$module.ko" -exec cp {} ir/mod/ \;
	done
	cat >ir/init <<'INIT'
#!/bin/busybox sh
/bin/busybox mount -t devtmpfs dev /dev
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sys /sys
for m in virtio_ring virtio virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci virtio_blk; do
	[ ! -f /mod/$m.ko ] || /bin/busybox insmod /mod/$m.ko
done
/bin/busybox mount -t ext4 /dev/vda /mnt
/bin/busybox mount --move /dev /mnt/dev
exec /bin/busybox switch_root /mnt /sbin/init
INIT
	chmod 755 ir/init
	(cd ir && find . | busybox cpio -o -H newc 2>/dev/null | gzip -1 >../initrd.gz)
fi

[ root.img -nt "$here/image.sh" ] || rm -f root.img
if [ ! -f root.img ]; then
	echo "vm: making a root file system"
	rm -rf --one-file-system root # an interrupted run can leave /proc mounted below it
	mmdebstrap --quiet --variant=essential \
		--include=systemd,systemd-sysv,dbus,kmod,procps,util-linux,iproute2,make,python3,fuse3,bindfs,curl,strace,xfsprogs \
		--include=libcap2,libcap2-bin,libsystemd0,libprotobuf-c1,libgrpc29,libjansson4,libmicrohttpd12,libcurl4,libarchive13 \
		--include=libsqlite3-0,libfuse3-3,libseccomp2,libmsgpackc2,libssl3 \
		--include=libmpfr6,libunistring2,libpcre2-8-0,libyaml-0-2,libmd0,libcrypt1 \
		--include=python3-msgpack,e2fsprogs,openssl,tzdata,nfs-common,nfs-kernel-server \
		--dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/doc/*' \
		--dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/info/*' bookworm root
	printf '127.0.0.1 localhost\n::1 localhost\n' >root/etc/hosts
	mkdir -p root/lib/modules
	cp -a "kx/lib/modules/$version" root/lib/modules/
	chroot root depmod "$version" # busybox's is not what kmod reads
	install -m 755 "$here/guest.sh" root/usr/local/sbin/drover-vm
	cat >root/etc/systemd/system/drover-vm.service <<'UNIT'
[Unit]
Description=tests of drover
After=multi-user.target

[Service]
Type=oneshot
ExecStart=/usr/local/sbin/drover-vm
StandardOutput=tty
StandardError=tty
TTYPath=/dev/ttyS0
TimeoutStartSec=infinity

[Install]
WantedBy=multi-user.target
UNIT
	mkdir -p root/etc/systemd/system/multi-user.target.wants
	ln -sf ../drover-vm.service root/etc/systemd/system/multi-user.target.wants/
	rm -f root.img.tmp
	mke2fs -q -F -t ext4 -d root root.img.tmp 2G
	rm -rf --one-file-system root
	mv root.img.tmp root.img
fi
