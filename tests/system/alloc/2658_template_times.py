# SPDX-License-Identifier: Apache-2.0
"""When templates are rendered again, and when what they change takes effect: the longest `wait`, the `splay`, and more values than one template may
have."""
import threading

from lib import api, case

S = 10**9
VARIABLE = '{{ with nomadVar "nomad/jobs/%s" }}{{ .x }}{{ end }}'
QUICK = {"Splay": 0, "Wait": {"Min": 0, "Max": 0}}


def put(path, x):
    node.do("PUT", "/v1/var/" + path, {"Path": path, "Items": {"x": x}})


def register(name, templates, count=1):
    node.register(api.job(name, count=count, Templates=templates))
    return node.wait_running(name, count)


def content(alloc, name):
    with open("%s/alloc/%s/t/local/%s" % (node.data, alloc["ID"], name), encoding="utf-8") as f:
        return f.read()


def test_the_longest_wait_bounds_the_delay_of_values_that_change_all_the_time():
    """Each change begins the shorter time again, which is longer than the time between two changes: only the longer time ends the wait."""
    put("nomad/jobs/busy", "0")
    alloc = register("busy", [{"EmbeddedTmpl": VARIABLE % "busy", "DestPath": "local/" + dest, "ChangeMode": "noop", "Wait": {"Min": S, "Max": longest * S}}
                              for dest, longest in (("v", 3), ("rare", 3600))])[0]
    end = threading.Event()

    def change():
        n = 0
        while not end.wait(0.05):
            n += 1
            put("nomad/jobs/busy", str(n))
    changer = threading.Thread(target=change)
    changer.start()
    try:
        case.until(lambda: content(alloc, "v") != "0", 30, "a new value")
        case.until(lambda now=content(alloc, "v"): content(alloc, "v") != now, 30, "another one")
        case.equal(content(alloc, "rare"), "0", "what waits until the values rest, for up to an hour")
    finally:
        end.set()
        changer.join()
    case.until(lambda: content(alloc, "rare") != "0", 30, "the value at rest")
    node.purge("busy")


def restarts(name):
    """Returns the times at which the tasks of the job started again, in seconds."""
    found = [node.ask("/v1/allocation/" + a["ID"])["TaskStates"]["t"] for a in node.allocs(name)]
    return [s["Events"][-1]["Time"] / S for s in found if s["Restarts"] == 1 and s["State"] == "running"]


def test_a_splay_spreads_restarts():
    """With a splay of 6 s the restarts of 16 tasks are almost never within half a second; without one they are."""
    for name, splay in (("spread", 6), ("together", 0)):
        put("nomad/jobs/" + name, "0")
        register(name, [{"EmbeddedTmpl": VARIABLE % name, "DestPath": "local/v", "Splay": splay * S, "Wait": {"Min": 0, "Max": 0}}], 16)
        put("nomad/jobs/" + name, "1")
        times = case.until(lambda n=name: len(restarts(n)) == 16 and sorted(restarts(n)), 60, "16 restarts of " + name)
        print("    %s: %.1f s from the first restart to the last one" % (name, times[-1] - times[0]))
        if splay:
            case.equal(times[-1] - times[0] > 0.5, True, "restarts that are spread: %s" % times)
        node.purge(name)


def test_a_task_may_follow_more_values_than_one_template():
    half = "{{ range loop %d %d }}{{ with nomadVar (printf \"many/%%d\" .) }}{{ .x }} {{ end }}{{ end }}"
    for i in range(600):
        put("many/%d" % i, "0")
    alloc = register("many", [{"EmbeddedTmpl": half % (i, i + 300), "DestPath": "local/%d" % i, "ChangeMode": "noop", **QUICK} for i in (0, 300)])[0]
    case.equal(content(alloc, "0") + content(alloc, "300"), "0 " * 600)
    for i in (0, 299, 300, 599):
        put("many/%d" % i, "new")
    wanted = ["new " + "0 " * 298 + "new "] * 2
    case.until(lambda: [content(alloc, "0"), content(alloc, "300")] == wanted, 60, "the new values")
    node.replace_supervisor()
    for i in (0, 299, 300, 599):
        put("many/%d" % i, "0")
    case.until(lambda: content(alloc, "0") + content(alloc, "300") == "0 " * 600, 60, "the old values")
    node.purge("many")


with api.Node() as node:
    case.run(globals())
