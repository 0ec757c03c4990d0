#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# guest.sh: what the guest does after its boot: unpacks the tar on its second disk, if there is one, runs its ./vm-main and
# writes what that leaves in ./out as a tar to the third disk. Runs in: the guest, as root.
mkdir -p /root/in
cd /root/in || exit 1
if [ ! -f /root/in/.unpacked ]; then
	tar -xf /dev/vdb && touch .unpacked
fi
mkdir -p out
./vm-main
sync
[ ! -b /dev/vdc ] || tar -cf /dev/vdc out
systemctl poweroff
