#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# deps.sh PACKAGE...: installs the given Debian packages that are missing and prints their names.
# deps.sh -x DIRECTORY PACKAGE: unpacks the files of a Debian package into DIRECTORY, unless they are there. Nothing is installed: its
# service does not start on this machine.
set -eu
if [ "$1" = -x ]; then
	[ ! -d "$2" ] || exit 0
	echo "deps: unpacking $3 into $2"
	mkdir -p "$2.new"
	cd "$2.new"
	# As root, apt says that it cannot use its own user in this directory.
	apt-get download -q "$3" >/dev/null 2>&1 || { apt-get update >/dev/null && apt-get download -q "$3" >/dev/null; }
	dpkg -x ./*.deb .
	rm ./*.deb
	mv "$2.new" "$2"
	exit 0
fi
missing=""
for p in "$@"; do
	dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null | grep -q '^installed$' || missing="$missing $p"
done
[ -n "$missing" ] || exit 0
if [ "$(id -u)" != 0 ]; then
	echo "deps: these Debian packages are missing and only root can install them:$missing" >&2
	exit 1
fi
echo "deps: installing$missing"
export DEBIAN_FRONTEND=noninteractive
apt-get install -y --no-install-recommends $missing >/dev/null 2>&1 ||
	{ apt-get update >/dev/null && apt-get install -y --no-install-recommends $missing >/dev/null; }
