#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# timeout: 1800
# takes: 90
"""Somebody dies at each of the crash points while a job starts or stops: it runs in the end, once, and nothing stays."""
import os

from lib import build_dir, case

CRASH = os.path.join(build_dir(), "crash")
if not os.path.exists(CRASH + "/drover-supervisor"):
    case.skip("no build with crash points (make CRASH=1 BUILD=%s)" % CRASH)
os.environ["DROVER_BUILD"] = CRASH
from lib import api, binary, crash  # noqa: E402

page = crash.Page()
# What state.db holds has walks of its own: 3110 and 3115.
POINTS = [p for p in crash.POINTS if p not in crash.ROWS]
died = {}
# The supervisor's turns of one start and stop, each of them; the others are passed a few times only.
PASSES = {"SUP": 24, "DROP": 6, "LAU": 2, "LAU_AFTER_PLACES": 1, "EXE": 3, "EXEC": 3, "MNT": 3, "FILE": 3, "CSI": 4, "HB": 1}
# Where only a plugin and its volume come by.
OF_PLUGINS = ("MNT_AFTER_PLUGIN_MOUNT", "MNT_AFTER_PLUGIN_UNMOUNT", "FILE_AFTER_PLUGIN_REMOVE", "CSI_AFTER_OPEN")
OF_VOLUMES = ("FILE_AFTER_VOLUME_DIR", "MNT_AFTER_PROOF", "FILE_AFTER_VOLUME_REMOVE", "CSI_BEFORE_CALL", "CSI_AFTER_CALL")


def settle(node):
    """Everybody is there again and answers."""
    def there():
        node.revive()
        return {"supervisor", "exec-helper", "mount-helper", "file-helper", "heartbeat"} <= set(node.processes())
    node.request("GET", "/v1/agent/health")
    case.until(there, 20, "everybody")


def run_once(node, made, count):
    name = made["Job"]["ID"]
    node.register(made)
    for alloc in node.wait_running(name, count, 30):
        case.until(lambda: crash.alloc_data(node, alloc["ID"], "starts"), 10, "the task to say that it runs")
    case.equal(crash.conflicts(node), [], "tasks that ran twice at a time")
    case.equal(crash.unexplained(node), [], "what had no row")


def die_at(point, skip, cycle):
    """Whether the point was come to."""
    page.arm(point, skip)
    try:
        cycle()
        if page.armed():
            return False
        died[point] = died.get(point, 0) + 1
        return True
    except AssertionError as e:
        raise AssertionError("%s after %d passes (%s): %s" % (point, skip, "not yet hit" if page.armed() else "hit", e)) \
            from None
    finally:
        page.disarm()


def come_to(node, point):
    """What has its own time and not a job's: each beat, each start and end of a process."""
    if point == "LAU_AFTER_PLACES":
        node.process.kill()
        node.wait()

    def come():
        node.revive()
        if page.armed() and point in ("LAU_AFTER_START", "LAU_AFTER_REAP"):
            settle(node)
            try:
                node.kill("heartbeat")
            except (KeyError, ProcessLookupError):
                pass  # the launcher came to the point meanwhile, and took all with it
        return not page.armed()
    case.until(come, 10, point)


def each_pass(point, cycle):
    for skip in range(PASSES.get(point) or PASSES[point.split("_")[0]]):
        if not die_at(point, skip, cycle):
            break


def test_while_a_job_starts_and_stops():
    with crash.Node(env=page.env) as node:
        for point in [p for p in POINTS if p not in OF_PLUGINS + OF_VOLUMES]:
            for driver in ("raw_exec", "exec"):
                def cycle():
                    run_once(node, crash.job("job", 2, driver), 2)
                    if point.startswith(("HB", "LAU")):
                        come_to(node, point)
                    node.purge("job")
                    settle(node)
                    crash.wait_nothing_left(node)
                each_pass(point, cycle)


case_volume = {"ID": "data", "Name": "data", "PluginID": "local", "RequestedCapacityMin": 1 << 20, "RequestedCapabilities": [
    {"AccessMode": "single-node-writer", "AttachmentMode": "file-system"}]}


def test_while_a_volume_is_mounted_and_unmounted():
    store = case.directory()
    with crash.Node(env=page.env) as node:
        def plugin_cycle(inner=lambda: None):
            node.register(api.job("plugin", binary("csi-local"), ["-root", store], group={"RestartPolicy": crash.RESTART},
                                  CSIPluginConfig={"ID": "local", "Type": "monolith", "MountDir": "/csi"}))
            case.until(lambda: [p["NodesHealthy"] for p in node.ask("/v1/plugins", type="csi")] == [1], 30, "a plugin")
            inner()
            node.purge("plugin")
            settle(node)
            crash.wait_nothing_left(node)

        def writer_cycle():
            run_once(node, crash.job("writer", driver="exec", group={"Volumes": {"v": {
                "Name": "v", "Type": "csi", "Source": "data", "AccessMode": "single-node-writer",
                "AttachmentMode": "file-system"}}}, VolumeMounts=[{"Volume": "v", "Destination": "/d"}]), 1)
            node.purge("writer")
            settle(node)

        for point in OF_PLUGINS:
            each_pass(point, plugin_cycle)

        def with_volume():
            node.do("PUT", "/v1/volume/csi/data/create", {"Volumes": [case_volume]})
            for point in OF_VOLUMES:
                each_pass(point, writer_cycle)
            for point in ("SUP_AFTER_COMMIT", "SUP_AFTER_SEND"):
                for skip in range(0, 40, 3):
                    die_at(point, skip, writer_cycle)
            case.equal(node.request("DELETE", "/v1/volume/csi/data/delete").status in (200, 404), True, "delete")
        plugin_cycle(with_volume)


def test_each_point_was_hit():
    for point in POINTS:
        print("    %-28s killed %3d times, passed %5d times" % (point, died.get(point, 0), page.passed(point)))
    case.equal([p for p in POINTS if not died.get(p)], [], "points that were never hit")


case.run(globals())
