# SPDX-License-Identifier: Apache-2.0
"""Tasks that record when they begin and end, and end when the test releases them.

    stages.job("web", [stages.task("main"), stages.task("side", "prestart", sidecar=True)])
    stages.wait_order(node, alloc, ["side begins", "main begins"])
    stages.let_go(node, alloc, "main")
"""
import os

from . import api, case

# "over" exits with code 0, also when the task gets SIGINT; a file NAME.go ends the task with the code in it.
SCRIPT = """
say() { echo "%(name)s $1" >> $NOMAD_ALLOC_DIR/data/order; }
trap 'say "is told"; exit 0' INT
say begins
until [ -e $NOMAD_ALLOC_DIR/data/%(name)s.go ]; do sleep 0.05; done
read code < $NOMAD_ALLOC_DIR/data/%(name)s.go
rm $NOMAD_ALLOC_DIR/data/%(name)s.go
say ends
exit $code
"""


def task(name, hook=None, sidecar=False, **more):
    if hook:
        more["Lifecycle"] = {"Hook": hook, "Sidecar": sidecar}
    return api.task(name, "/bin/sh", ["-c", SCRIPT % {"name": name}], **{"KillTimeout": 10 * 10**9, **more})


def job(name, tasks, kind="service", **group):
    made = api.job(name, group={"Tasks": tasks, **group})
    made["Job"]["Type"] = kind
    return made


def directory(node, alloc):
    return "%s/alloc/%s/alloc/data" % (node.data, alloc["ID"])


def order(node, alloc):
    try:
        with open(directory(node, alloc) + "/order", encoding="ascii") as f:
            return f.read().splitlines()
    except OSError:
        return []


def wait_order(node, alloc, lines, seconds=60, skip=0, any_of=()):
    """Waits until the tasks have recorded exactly these lines after the first `skip` lines. Those of any_of may come in any order."""
    def plain(found):
        return [line for line in found if line not in any_of], sorted(line for line in found if line in any_of)
    try:
        case.until(lambda: plain(order(node, alloc)[skip:]) == plain(lines), seconds, "the order of tasks")
    except AssertionError as e:
        raise AssertionError("%s: it is %r, not %r\n%s" % (e, order(node, alloc), lines, node.log()[-4000:])) from None


def let_go(node, alloc, name, code=0):
    """Ends a task with this exit code."""
    path = "%s/%s.go" % (directory(node, alloc), name)
    with open(path + ".new", "w", encoding="ascii") as f:
        f.write("%d\n" % code)
    os.rename(path + ".new", path)


def started(alloc, name):
    """Returns when the agent first recorded that it runs. Lines that tasks write themselves come in any order."""
    return next(e["Time"] for e in alloc["TaskStates"][name]["Events"] if e["Type"] == "Started")


def events(alloc, name):
    return [e["Type"] for e in alloc["TaskStates"][name]["Events"]]
