# SPDX-License-Identifier: Apache-2.0
# timeout: 1200
# takes: 33
"""tools/demo.sh: ends well, and interrupted at any point leaves nothing, which the runner checks too."""
import os
import re
import signal
import subprocess
import time

from lib import ROOT, build_dir, case

DEMO = [ROOT + "/tools/demo.sh", build_dir()]


def start():
    """In a session of its own, as a terminal's foreground job is in a process group of its own."""
    tmp = case.directory()
    process = subprocess.Popen(DEMO, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               start_new_session=True, env=dict(os.environ, TMPDIR=tmp))
    process.tmp = tmp
    return process


def read_until(process, pattern):
    seen = b""
    while not re.search(pattern, seen):
        more = os.read(process.stdout.fileno(), 65536)
        case.equal(more != b"", True, "the demo ended: %s" % seen.decode())
        seen += more
    return seen


def nothing_left(process):
    """The output ends, which is what `| cat` waits for, and the directory is gone."""
    out = process.stdout.read().decode()
    case.equal(("left over" in out, os.listdir(process.tmp)), (False, []), out)
    return out


def test_the_demo_ends_well():
    tmp = case.directory()
    r = subprocess.run(" ".join(DEMO) + " | cat", shell=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, env=dict(os.environ, TMPDIR=tmp), check=False)
    out = r.stdout.decode()
    print(re.sub("^", "    ", out, flags=re.M))
    found = re.search(r"The demo is over: (\d+) lines survived", out)
    case.equal(bool(found) and int(found.group(1)) >= 3, True, "the last line")
    case.equal(os.listdir(tmp), [])


def test_an_interrupt_of_the_process_group_at_each_step():
    for pattern in (rb"Starting an agent", rb"\$ drover status", rb"\$ drover job run", rb"Received", rb"\$ drover plugin",
                    rb"\$ drover volume create", rb"job run [^\n]*writer", rb"\$ drover alloc stop", rb"has ended",
                    rb"\$ drover node drain"):
        process = start()
        read_until(process, pattern)
        os.killpg(process.pid, signal.SIGINT)
        out = nothing_left(process)
        case.equal(process.wait(case.LEAST_S), 130, "%s: %s" % (pattern, out))


def test_an_interrupt_in_its_first_moments():
    for ms in (0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144):
        process = start()
        time.sleep(ms / 1000)
        os.killpg(process.pid, signal.SIGINT)
        out = nothing_left(process)
        case.equal(process.wait(case.LEAST_S) in (130, -signal.SIGINT), True, out)


def test_a_reader_that_goes_away():
    process = start()
    read_until(process, rb"\$ drover job run")
    process.stdout.close()
    case.equal((process.wait(2 * case.LEAST_S) != 0, os.listdir(process.tmp)), (True, []))


case.run(globals())
