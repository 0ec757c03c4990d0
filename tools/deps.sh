#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# deps.sh PACKAGE...: installs the given Debian packages that are missing and prints their names.
set -eu
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
