#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# timeout: 1800
# takes: 140
"""At each crash point a process dies while a job starts or stops. In the end each task has run, never twice at a time, and nothing is left
behind."""
import hashlib
import os

from lib import api, binary, case, web
from lib.crash_page import page
from lib.crash_sweep import ALL, SUPERVISOR, check_reached, each_pass, kill_at, sweep, whole
from lib import crash

# Points at rows of state.db are tested by 3110 and 3115, those of container images by 3130, those of directories that are fetched by 3145, those of
# containers and networks by 3147, those of calls to servers by 3153.
POINTS = [p for p in crash.POINTS if p not in (*crash.ROWS, *crash.OF_TREES, *crash.OF_SERVERS) and
          not p.startswith(("IMG_", "UNP_", "NET_", "EXE_CONTAINER_"))]
# How many passes of a point are tested, by the process or the point.
PASSES = {"DROP": 6, "LAU": 2, "LAU_AFTER_PLACES": 1, "EXE": 3, "EXEC": 3, "MNT": 3, "FILE": 3, "FET": 2, "REN": 4, "CSI": 4, "HB": 1}
# Points that only a plugin or a volume passes.
OF_PLUGINS = ("MNT_AFTER_PLUGIN_MOUNT", "MNT_AFTER_PLUGIN_UNMOUNT", "FILE_AFTER_PLUGIN_REMOVE", "CSI_AFTER_OPEN")
# Points that only an artifact passes.
OF_ARTIFACTS = ("FILE_AFTER_COPY", "FILE_AFTER_PLACE", "FET_BEFORE_GET", "FET_AFTER_GET")
# Points that only a template passes, or a file of a task.
OF_TEMPLATES = ("REN_BEFORE_RENDER", "REN_AFTER_RENDER", "EXE_TASK_BEFORE_RENAME")
OF_VOLUMES = ("FILE_AFTER_VOLUME_DIR", "MNT_AFTER_PROOF", "FILE_AFTER_VOLUME_REMOVE", "CSI_BEFORE_CALL", "CSI_AFTER_CALL")


def settle(node):
    """Waits until all processes run again and answer."""
    def there():
        node.revive()
        return {"supervisor", "exec-helper", "mount-helper", "file-helper", "heartbeat"} <= set(node.processes())
    node.request("GET", "/v1/agent/health")
    case.until(there, 20, "all processes to run")


def run_once(node, made, count):
    name = made["Job"]["ID"]
    node.register(made)
    for alloc in node.wait_running(name, count, 30):
        case.until(lambda: crash.alloc_data(node, alloc["ID"], "starts"), 10, "the task to record its start")
    case.equal(crash.conflicts(node), [], "tasks that ran twice at a time")
    case.equal(crash.unexplained(node), [], "objects without a row")


def reach(node, point):
    """Makes sure that points are reached that do not depend on jobs: at beats, and at starts and ends of processes."""
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
                pass  # the launcher has reached the point meanwhile, and all processes have ended with it
        return not page.armed()
    case.until(come, 10, point)


def each_passes(what, cycle, points):
    for point in points:
        kind = point.split("_")[0]
        # Each run reaches points of these two again.
        most = 1000 if ALL and kind not in ("LAU", "HB") else PASSES.get(point) or PASSES[kind]
        each_pass(what, whole(cycle), point, most)


def job_cycle(node, driver, point=""):
    run_once(node, crash.job("job", 2, driver), 2)
    if point.startswith(("HB", "LAU")):
        reach(node, point)
    node.purge("job")
    settle(node)
    crash.wait_nothing_left(node)


def test_crashes_while_a_job_starts_and_stops():
    with crash.Node(env=page.env) as node:
        for driver in ("raw_exec", "exec"):
            sweep(driver, whole(lambda: job_cycle(node, driver)), SUPERVISOR, 24)
        for point in [p for p in POINTS if p not in (*SUPERVISOR, *OF_PLUGINS, *OF_VOLUMES, *OF_ARTIFACTS, *OF_TEMPLATES)]:
            for driver in ("raw_exec", "exec"):
                each_passes(driver, lambda: job_cycle(node, driver, point), [point])


def test_crashes_while_artifacts_are_fetched_and_placed():
    """No task sees a part of one, and none is fetched again once it is in its place."""
    body = b"an artifact\n" * 100000
    check = 'for f in local/a local/sub/b; do [ "$(md5sum <$f)" = "%s  -" ] || exit 9; done; exec sleep 100000' % hashlib.md5(body).hexdigest()
    with web.Server({"/a": body, "/b": body}) as server, crash.Node(env=page.env) as node:
        artifacts = [{"GetterSource": server.url + "/a"}, {"GetterSource": server.url + "/b", "RelativeDest": "local/sub"}]

        def cycle():
            server.requests.clear()
            run_once(node, crash.job("fetched", driver="exec", then=check, Artifacts=artifacts), 1)
            state = node.allocs("fetched")[0]["TaskStates"]["t"]
            case.equal([e["DisplayMessage"] for e in state["Events"] if e["Type"] in ("Terminated", "Failed Artifact Download")], [], "ends and failures")
            case.equal(max(server.count("/a"), server.count("/b")) <= 2, True, "requests: %s" % [p for p, _ in server.requests])
            node.purge("fetched")
            settle(node)
            crash.wait_nothing_left(node)
        each_passes("artifacts", cycle, OF_ARTIFACTS)
        sweep("artifacts", whole(cycle), SUPERVISOR, 12)


def test_what_is_fetched_and_not_in_its_place_is_not_fetched_again():
    """The supervisor, or the fetcher, dies after the last byte of an artifact, at each step of the way to its destination."""
    body = os.urandom(1000000)
    check = '[ "$(md5sum <local/a)" = "%s  -" ] || exit 9; exec sleep 100000' % hashlib.md5(body).hexdigest()
    with web.Server({"/a": body}) as server, crash.Node(env=page.env) as node:
        staging = node.data + "/alloc/.fetch"

        def cycle(point, victim):
            server.requests.clear()
            made = crash.job("fetched", driver="exec", then=check, Artifacts=[{"GetterSource": server.url + "/a"}])
            # A fetcher that goes on makes its request, but no longer waits for its answer.
            kill_at(node, point, victim, lambda: node.register(made), ended="fetcher" if point == "FET_BEFORE_GET" else None)
            node.wait_running("fetched", 1, 30)
            case.equal([path for path, _ in server.requests], ["/a"], "requests after %s, where %s was killed" % (point, victim))
            state = node.allocs("fetched")[0]["TaskStates"]["t"]
            case.equal([e["DisplayMessage"] for e in state["Events"] if e["Type"] in ("Terminated", "Failed Artifact Download")], [], "ends and failures")
            node.purge("fetched")
            settle(node)
            case.until(lambda: os.listdir(staging) == [], 10, "the staging directory to be removed")
            crash.wait_nothing_left(node)
        for point, victims in (("FET_BEFORE_GET", ("supervisor", "fetcher")), ("FET_AFTER_GET", ("supervisor", "fetcher")),
                               ("FILE_AFTER_COPY", ("supervisor", "file-helper")), ("FILE_AFTER_PLACE", ("supervisor", "file-helper"))):
            for victim in victims:
                cycle(point, victim)


def test_crashes_while_templates_are_rendered_and_replaced():
    """No task sees a part of a file, and each gets the last value."""
    check = 'check() { { read sum; found=$(md5sum); } <local/v; [ "$found" = "$sum  -" ] || { echo half >$NOMAD_ALLOC_DIR/data/half; exit 9; }; ' \
            'echo $sum >local/.new; mv local/.new $NOMAD_ALLOC_DIR/data/seen; }; trap check HUP; while :; do check; sleep 0.1; done'
    text = "{{ with nomadVar \"nomad/jobs/shown\" }}{{ .sum }}\n{{ .text }}{{ end }}"
    shown = {"EmbeddedTmpl": text, "DestPath": "local/v", "ChangeMode": "signal", "ChangeSignal": "SIGHUP", "Splay": 0, "Wait": {"Min": 0, "Max": 0}}
    with crash.Node(env=page.env) as node:
        def put(value):
            body = (value * 20000)[:60000]
            items = {"text": body, "sum": hashlib.md5(body.encode()).hexdigest()}

            def written():
                node.revive()
                return node.request("PUT", "/v1/var/nomad/jobs/shown", {"Path": "nomad/jobs/shown", "Items": items}).status == 200
            case.until(written, 20, "the variable to be written")
            return items["sum"]

        def seen(wanted):
            def so():
                node.revive()
                return [a for a in node.allocs("shown") if crash.alloc_data(node, a["ID"], "seen") == [wanted]]
            case.until(so, 30, "the task to see " + wanted)
            case.equal([a for a in node.allocs("shown") if crash.alloc_data(node, a["ID"], "half")], [], "allocs that saw a part of a file")

        def cycle():
            first = put("first ")
            node.register(crash.job("shown", driver="exec", then=check, Templates=[shown]))
            seen(first)
            seen(put("second "))
            node.purge("shown")
            settle(node)
            crash.wait_nothing_left(node)
        each_passes("templates", cycle, OF_TEMPLATES)
        sweep("templates", whole(cycle), SUPERVISOR, 12)


case_volume = {"ID": "data", "Name": "data", "PluginID": "local", "RequestedCapacityMin": 1 << 20, "RequestedCapabilities": [
    {"AccessMode": "single-node-writer", "AttachmentMode": "file-system"}]}


def test_crashes_while_a_volume_is_mounted_and_unmounted():
    store = case.directory()
    with crash.Node(env=page.env) as node:
        def plugin_cycle(inner=lambda: None):
            node.register(api.job("plugin", binary("csi-local"), ["-root", store], group={"RestartPolicy": crash.RESTART},
                                  CSIPluginConfig={"ID": "local", "Type": "monolith", "MountDir": "/csi"}))
            case.until(lambda: [p["NodesHealthy"] for p in node.ask("/v1/plugins", type="csi")] == [1], 30, "the plugin to be healthy")
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

        each_passes("plugin", plugin_cycle, OF_PLUGINS)

        def with_volume():
            node.do("PUT", "/v1/volume/csi/data/create", {"Volumes": [case_volume]})
            each_passes("volume", writer_cycle, OF_VOLUMES)
            sweep("volume", whole(writer_cycle), SUPERVISOR, 7)
            case.equal(node.request("DELETE", "/v1/volume/csi/data/delete").status in (200, 404), True, "whether the volume is deleted")
        plugin_cycle(with_volume)


def test_each_point_was_reached():
    check_reached(POINTS)


case.run(globals())
