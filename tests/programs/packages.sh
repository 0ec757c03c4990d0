#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# packages.sh: installs the programs that check.py runs. policy-rc.d keeps Debian from starting their services.
set -eu
packages="redis-server postgresql mariadb-server nginx-light prometheus prometheus-node-exporter rabbitmq-server mosquitto
mosquitto-clients default-jdk-headless docker-registry restic"
command -v node >/dev/null || packages="$packages nodejs"
missing=
for p in $packages; do
	dpkg-query -W -f '${Status}\n' "$p" 2>/dev/null | grep -q ' installed$' || missing="$missing $p"
done
[ "$missing" ] || exit 0
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
	printf '#!/bin/sh\nexit 101\n' >"$policy"
	chmod 755 "$policy"
	trap 'rm -f "$policy"' EXIT
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -q
# shellcheck disable=SC2086
apt-get install -q -y --no-install-recommends $missing
