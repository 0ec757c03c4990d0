# SPDX-License-Identifier: Apache-2.0
"""The machine loses power right after `drover job run -detach` has returned: the job is there after the boot, and runs."""
import re
import time

import machine

SECONDS = 300
# The first boot registers the job and says so on the console; the second one waits for it to run.
MAIN = """#!/bin/bash
cd /root/in
if [ ! -e /root/second ]; then
	cp -a installed/. /
	systemd-sysusers && systemd-tmpfiles --create && systemctl daemon-reload
	mkdir -p /etc/drover
	echo 'plugin "raw_exec" { config { enabled = true } }' >/etc/drover/agent.hcl
	systemctl start drover.socket drover.service
	touch /root/second
	sync
	until drover node status >/dev/null; do sleep 0.2; done
	drover job run -detach tree/tests/vm/job.json && echo CUT NOW
	sleep 600
fi
systemctl start drover.socket drover.service
for i in $(seq 300); do
	pgrep -f 'sleep 987654' >/dev/null && echo JOB RUNS && break
	sleep 0.5
done
drover job status power-cut
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
        return bool(re.search("^JOB RUNS", m.log, re.M))
