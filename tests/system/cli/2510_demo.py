# SPDX-License-Identifier: Apache-2.0
# timeout: 1200
# takes: 33
"""tools/demo.sh succeeds; interrupted at any point it leaves nothing behind, which the runner checks too."""
import os
import re
import signal
import subprocess
import time

from lib import ROOT, build_dir, case

DEMO = [ROOT + "/tools/demo.sh", build_dir()]


def start():
    """Starts the demo in its own session, as a terminal gives a foreground job its own process group."""
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
    """Waits for the end of the output, as `| cat` does, and checks that the directory was removed."""
    out = process.stdout.read().decode()
    case.equal(("left over" in out, os.listdir(process.tmp)), (False, []), out)
    return out


def test_the_demo_succeeds():
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


def test_a_reader_that_closes_the_pipe_ends_the_demo():
    process = start()
    read_until(process, rb"\$ drover job run")
    process.stdout.close()
    case.equal((process.wait(2 * case.LEAST_S) != 0, os.listdir(process.tmp)), (True, []))


case.run(globals())
