# SPDX-License-Identifier: Apache-2.0
# timeout: 900
# takes: 60
"""A process dies at each step between the end of a task and the removal of its secrets. In the end they are removed, and no start finds them as a
leftover."""
from lib import case
from lib.crash_page import page
from lib.crash_sweep import armed, check_reached, each_pass
from lib import crash

SCRIPT = "[ -s $NOMAD_SECRETS_DIR/v ] || exit 9; while [ ! -e $NOMAD_ALLOC_DIR/end ]; do sleep 0.02; done"
TEMPLATE = [{"EmbeddedTmpl": "sesame", "DestPath": "secrets/v"}]
# How many passes of each point are tested.
POINTS = {"SUP_BEFORE_COMMIT": 12, "SUP_AFTER_COMMIT": 12, "SUP_AFTER_SEND": 12, "SUP_BETWEEN_SENDS": 6, "ROW_ALLOC": 3, "ROW_ALLOC_COMMITTED": 3, "ROW_RUN": 2,
          "ROW_RUN_COMMITTED": 2, "EXEC_REAP_AFTER_CGROUP": 1, "EXEC_REAP_AFTER_SOCKET": 1, "MNT_AFTER_RELEASE": 2, "EXE_BEFORE_EXIT_RECORD": 1}


def cycle(node, kind, disturbed):
    """Only passes between the end of the task and the removal count."""
    made = crash.job("ends", then=SCRIPT, Templates=TEMPLATE)
    made["Job"]["Type"] = kind
    if kind == "service":  # the alloc stays
        made["Job"]["TaskGroups"][0]["Tasks"].append(dict(made["Job"]["TaskGroups"][0]["Tasks"][0], Name="stays", Config={"command": "/bin/sleep", "args": ["100000"]}))
        made["Job"]["TaskGroups"][0]["Tasks"][0]["Lifecycle"] = {"Hook": "poststart"}
    node.register(made)
    alloc = node.wait_running("ends", 1, 30)[0]["ID"]
    case.until(lambda: crash.alloc_data(node, alloc, "starts"), 30, "the task to record its start")
    wanted = 2 if kind == "service" else 1
    case.until(lambda: len(crash.secrets(node)) == wanted, 10, "the mounts")
    with disturbed():
        case.write("%s/alloc/%s/alloc/end" % (node.data, alloc), "")
        case.until(lambda: node.ask("/v1/allocation/" + alloc)["TaskStates"]["t"]["State"] == "dead", 30, "the end of the task")
        case.until(lambda: len(crash.secrets(node)) == wanted - 1, 30, "the secrets to be removed")
    case.until(lambda: crash.leaks(node) == [], 30, "no leaks")
    case.equal(crash.unexplained(node), [], "leftovers")
    node.purge("ends")
    crash.wait_nothing_left(node)


def test_each_step():
    with crash.Node(env=page.env) as node:
        for kind in ("batch", "service"):
            for point, passes in POINTS.items():
                each_pass(kind, lambda disturbed: cycle(node, kind, disturbed), point, passes)
    check_reached(POINTS)


case.run(globals())
