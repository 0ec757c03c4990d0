# SPDX-License-Identifier: Apache-2.0
"""The completion in fish."""
import shutil
import subprocess

from lib import case
from lib.completion import A1, SCRIPTS, environment, objects


def test_fish():
    with objects() as api:
        def fish(line):
            script = "source %sdrover.fish; cd %s; complete -C '%s'" % (SCRIPTS, directory, line)
            r = subprocess.run(["fish", "--no-config", "-c", script], env=environment(api), stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True)
            case.equal(r.stderr, b"", line)
            return r.stdout.decode().splitlines()
        directory = case.directory()
        with open(directory + "/my-job.hcl", "wb"):
            pass
        case.equal(fish("drover job sto"), ["stop\tstop a job and follow it until its allocations have ended"])
        case.equal(sorted(fish("drover job stop ")), ["db\tdead", "web\trunning"])
        case.equal(fish("drover alloc logs %s -task n" % A1), ["nginx\texec"])
        case.equal(fish("drover alloc logs %s -task=n" % A1), ["-task=nginx\texec"])
        case.equal(fish("drover job stop -purg"), ["-purge\talso remove the job and its history"])
        case.equal([found.split("\t")[0] for found in fish("drover job run my")], ["my-job.hcl"])
        case.equal([found.split("\t")[0] for found in fish("drover job run -var-file=my")], ["-var-file=my-job.hcl"])


if not shutil.which("fish"):
    case.skip("fish is not installed")
case.run(globals())
