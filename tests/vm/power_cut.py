# SPDX-License-Identifier: Apache-2.0
"""The machine loses power right after the agent has acknowledged the last of many requests. After the boot all jobs must reach the state
that they would have reached without the power cut: outlives.py, which runs in the guest, checks it."""
import re
import time

import machine

SECONDS = 1800
MAIN = """#!/bin/bash
cd /root/in
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
		  config { allow_caps = ["sys_admin", "dac_override", "fowner", "chown"] }
		}
		client {
		  disk_free_mb = 1000000
		  host_volume "csi-local" { path = "/var/lib/store" }
		}
	END
	touch /root/second
	systemctl start drover.socket drover.service
	python3 -B tree/tests/vm/outlives.py before && sleep 600
else
	systemctl start drover.socket drover.service
	python3 -B tree/tests/vm/outlives.py after
fi
"""


def run(build, payload):
    """Returns whether all jobs have survived."""
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
        return bool(re.search(r"^as if undisturbed: [1-9]\d* tests$", m.log, re.M))
