# SPDX-License-Identifier: Apache-2.0
"""The machine loses power right after `drover job run -detach` has returned: the job is there after the boot, and runs. So
does a CSI plugin, and the job that writes to its volume finds what it wrote before."""
import re
import time

import machine

SECONDS = 900
# The first boot registers the job and says so on the console; the second one waits for it to run.
MAIN = """#!/bin/bash
cd /root/in
LINES='/var/lib/store/volumes/volumes/*/log'
if [ ! -e /root/second ]; then
	cp -a installed/. /
	systemd-sysusers && systemd-tmpfiles --create && systemctl daemon-reload
	mkdir -p /etc/drover
	mkdir -m 0777 /var/lib/store
	cat >/etc/drover/agent.hcl <<-'END'
		plugin "raw_exec" {
		  config { enabled = true }
		}
		plugin "exec" {
		  config { allow_caps = ["sys_admin", "dac_override", "fowner"] }
		}
		client {
		  host_volume "csi-local" { path = "/var/lib/store" }
		}
	END
	systemctl start drover.socket drover.service
	touch /root/second
	until drover node status >/dev/null; do sleep 0.2; done
	drover job run tree/contrib/examples/plugin.json
	until drover volume create tree/contrib/examples/volume.json; do sleep 1; done
	drover job run tree/contrib/examples/writer.json
	until [ "$(cat $LINES | wc -l)" -ge 3 ]; do sleep 0.2; done
	sync
	drover job run -detach tree/tests/vm/job.json && echo CUT NOW
	sleep 600
fi
systemctl start drover.socket drover.service
for i in $(seq 300); do
	pgrep -f 'sleep 987654' >/dev/null && echo JOB RUNS && break
	sleep 0.5
done
drover job status power-cut
for i in $(seq 300); do
	found=$(cat /var/lib/drover/logs/*/write.stdout.* | sed -n 's/^found \\([1-9][0-9]*\\) lines$/\\1/p' | tail -n 1)
	[ -n "$found" ] && [ "$(cat $LINES | wc -l)" -gt "$found" ] && echo "VOLUME KEPT $found LINES" && break
	sleep 0.5
done
drover volume status demo
drover leaks
"""


def run(build, payload):
    """True if the job survived."""
    with machine.Machine(build, payload, keep=True) as m:
        end = time.monotonic() + SECONDS
        while not m.said("CUT NOW") and m.process.poll() is None and time.monotonic() < end:
            time.sleep(0.001)
        m.kill()
        if not m.said("CUT NOW"):
            return False
        disk = m.disk
    with machine.Machine(build, None, keep=True, disk=disk) as m:
        m.wait(SECONDS)
        return all(re.search("^" + said, m.log, re.M) for said in ("JOB RUNS", "VOLUME KEPT [1-9]", "no leaks"))
