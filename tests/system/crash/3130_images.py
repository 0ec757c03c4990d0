# SPDX-License-Identifier: Apache-2.0
# timeout: 900
# takes: 150
"""At each crash point a process dies while an image is pulled, loaded and removed, by hand, or by itself after its last use. In the end the image is whole,
nothing is fetched twice without need, and nothing stays in the store."""
import os
import shutil

from lib import case
from lib.crash_sweep import SUPERVISOR, check_reached, each_pass, sweep
from lib.crash_page import page
from lib.crash_walk import OF_3130
from lib import agent, api, crash, images, web

if not shutil.which("skopeo"):
    case.skip("no skopeo")

OF_REMOVAL = ["UNP_AFTER_HIDE"]
OF_LOAD = ["IMG_AFTER_COPY"]
OF_HELPERS = [p for p in crash.POINTS if p.startswith(("IMG_", "UNP_")) and p not in OF_REMOVAL + OF_LOAD]
NO_MORE = {"RestartPolicy": {"Attempts": 0, "Mode": "fail"}, "ReschedulePolicy": {"Attempts": 0, "Unlimited": False}}
FILES = [("f%d" % i, os.urandom(20000)) for i in range(40)]
TARS = [images.tar([images.directory("d"), *(images.file("d/" + name, body) for name, body in FILES)]), images.tar([images.file("top", b"x" * 1000000)])]
image = images.Image(TARS, pack="")


def status_of(node, name):
    answer = node.ask("/v1/agent/images")
    return next((x for x in reversed(answer) if x["Name"] == name), {"Status": "absent"})["Status"]


def pull(node, name):
    """Asks again while the pull has been ended by a crash."""
    def ready():
        node.revive()
        status = status_of(node, name)
        if status in ("absent", "failed"):
            node.do("PUT", "/v1/agent/images", {"Name": name})
        return status == "ready"
    case.until(ready, 30, "the image to be ready")


def check_layers(node):
    for name, body in FILES:
        with open(images.layer_path(node, TARS[0], "d/" + name), "rb") as f:
            case.equal(f.read() == body, True, name)
    case.equal(os.path.getsize(images.layer_path(node, TARS[1], "top")), 1000000, "top")


def remove(node, name):
    def gone():
        node.revive()
        if status_of(node, name) == "ready":
            answer = node.request("DELETE", "/v1/agent/images?name=" + name)
            case.equal(answer.status in (200, 404), True, answer.text)
        return [x for part in ("layers", "blobs") for x in os.listdir("%s/images/%s" % (node.data, part))] == []
    case.until(gone, 60, "nothing to be in the store")


def cycle(node, server, point, disturbed):
    name = images.name(server, "a:1")
    server.requests.clear()
    with disturbed():
        pull(node, name)
        check_layers(node)
        fetched = [server.count("/v2/a/blobs/" + images.digest(x)) for x in image.blobs]
        # A blob that was being fetched when a process died is fetched again.
        case.equal(max(fetched) <= 2, True, "fetches: %s" % fetched)
        if point in ("IMG_AFTER_PULL", "UNP_AFTER_UNPACK"):
            case.equal(fetched, [1, 1], "fetches after all had arrived")
        # The store is compared with the rows after a restart of the supervisor only.
        if point.startswith(("SUP", "ROW")):
            node.revive()
        remove(node, name)


def collected(node, server, disturbed):
    """A task wants the image and fails, because the image has no programs. It has no other use."""
    made = api.job("once", driver="docker", group=NO_MORE)
    made["Job"]["Type"] = "batch"
    made["Job"]["TaskGroups"][0]["Tasks"][0]["Config"] = {"image": images.name(server, "a:1"), "command": "/absent", "network_mode": "none"}

    def over():
        node.revive()
        return [a["ClientStatus"] for a in node.allocs("once")] == ["failed"] and status_of(node, images.name(server, "a:1")) in ("absent", "failed") and \
            [x for part in ("layers", "blobs") for x in os.listdir("%s/images/%s" % (node.data, part))] == []
    with disturbed():
        node.register(made)
        case.until(over, 60, "the end of the task and of its image")
    node.purge("once")
    case.equal(crash.leaks(node), [], "leaks")


def loaded(node, server, disturbed):
    """A task that fetches an archive loads the image, and fails, because the image has no programs."""
    made = api.job("loads", driver="docker", group={"RestartPolicy": {"Attempts": 3, "Interval": 3600 * 10**9, "Delay": 10**7, "Mode": "fail"}, "ReschedulePolicy": NO_MORE["ReschedulePolicy"]})
    made["Job"]["Type"] = "batch"
    made["Job"]["TaskGroups"][0]["Tasks"][0].update(Config={"image": "app:1", "load": "app.tar", "command": "/absent", "network_mode": "none"},
                                                    Artifacts=[{"GetterSource": server.url + "/app.tar", "GetterOptions": {"archive": "false"}, "RelativeDest": "local/"}])

    def over():
        node.revive()
        return [a["ClientStatus"] for a in node.allocs("loads")] == ["failed"] and \
            [x for part in ("layers", "blobs") for x in os.listdir("%s/images/%s" % (node.data, part))] == [] and node.ask("/v1/agent/images") == []
    with disturbed():
        node.register(made)
        case.until(over, 60, "the end of the task and of its image")
    events = node.ask("/v1/allocation/" + node.allocs("loads")[0]["ID"])["TaskStates"]["t"]["Events"]
    case.contains("\n".join(e["DisplayMessage"] for e in events), "run the command", "the events")
    node.purge("loads")
    case.equal(crash.leaks(node), [], "leaks")


def test_crashes_while_an_image_is_loaded():
    archive = images.tar(images.layout({"app:1": image}))
    with web.Server({"/app.tar": archive}) as server, crash.Node(AT_ONCE, env=page.env) as node:
        for point in [*OF_HELPERS, *OF_LOAD]:
            each_pass("archive", lambda disturbed: loaded(node, server, disturbed), point, 3)
        sweep("archive", lambda disturbed: loaded(node, server, disturbed), SUPERVISOR, 6)


def test_crashes_while_an_image_is_removed_after_its_last_use():
    with web.Server(images.registry({"a": {"1": image}})) as server, crash.Node(AT_ONCE, env=page.env) as node:
        for point in [*OF_REMOVAL, *OF_3130]:
            each_pass("collection", lambda disturbed: collected(node, server, disturbed), point, 3)
        sweep("collection", lambda disturbed: collected(node, server, disturbed), SUPERVISOR, 6)


def test_crashes_while_an_image_is_pulled_and_removed():
    with web.Server(images.registry({"a": {"1": image}})) as server, crash.Node(env=page.env) as node:
        for point in [*OF_HELPERS, *OF_3130]:
            each_pass("image", lambda disturbed: cycle(node, server, point, disturbed), point, 3)
        sweep("image", lambda disturbed: cycle(node, server, "SUP", disturbed), SUPERVISOR, 6)


def test_each_point_was_reached():
    check_reached([*OF_HELPERS, *OF_LOAD, *OF_REMOVAL, *OF_3130])


AT_ONCE = agent.config_args('plugin "docker" { config { gc { image_delay = "0s" } } }')
case.run(globals())
