# SPDX-License-Identifier: Apache-2.0
"""Variables of templates with env = true, in what is interpolated later: the task's configuration, its services and their checks."""
import base64
import json

from lib import api, case, state as db, web

S = 10**9
VALUE = '{{ with nomadVar "nomad/jobs/%s" }}X={{ .x }}\nP={{ .p }}\n{{ end }}'
# A variable is in each kind of member.
SERVICE = {"Name": "web-${X}", "Provider": "nomad", "Tags": ["tag-${X}", "plain"], "Meta": {"key": "meta-${X}"}, "Address": "127.0.0.1", "PortLabel": "${P}",
           "Checks": [{"Name": "check-${X}", "Type": "http", "Path": "/path-${X}", "Method": "GET", "Interval": S, "Timeout": S,
                       "Header": {"X-Value": ["header-${X}"]}}]}
SCRIPT = "echo said $0 $X; exec sleep 1000"


def put(name, x):
    node.do("PUT", "/v1/var/nomad/jobs/" + name, {"Path": "nomad/jobs/" + name, "Items": {"x": x, "p": str(server.port)}})


def register(name, driver, **more):
    made = api.job(name, "/bin/sh", ["-c", SCRIPT, "arg-${X}"], driver=driver, Services=[SERVICE], Templates=[
        {"EmbeddedTmpl": VALUE % name, "DestPath": "secrets/env", "Envvars": True, "Splay": 0, "Wait": {"Min": 0, "Max": 0}, **more}])
    node.register(made)
    return node.wait_running(name)[0]


def service(name, x):
    """Returns what the service has once it is registered with this value."""
    return case.until(lambda: node.ask("/v1/service/web-" + x), 20, "service web-" + x)[0]


def services():
    return sorted(s["ServiceName"] for one in node.ask("/v1/services") for s in one["Services"])


def check_service(name, x):
    found = service(name, x)
    case.equal((found["Tags"], found["Address"], found["Port"]), (["tag-" + x, "plain"], "127.0.0.1", server.port), "the service")
    case.until(lambda: ("/path-" + x, "header-" + x) in asked, 20, "the request of the check")
    alloc = node.allocs(name)[-1]["ID"]
    checks = node.ask("/v1/client/allocation/%s/checks" % alloc)
    case.until(lambda: [c["Check"] for c in node.ask("/v1/client/allocation/%s/checks" % alloc).values() if c["Status"] == "success"] == ["check-" + x], 20,
               "the check to succeed: %s" % checks)


def test_in_configuration_services_and_checks():
    for driver in ("exec", "raw_exec"):
        name = "all-" + driver.replace("_", "-")
        put(name, "one")
        alloc = register(name, driver)
        node.wait_said(alloc, b"said arg-one one\n")
        check_service(name, "one")
        case.equal(services(), ["web-one"])
        # A change restarts the task, and its services are registered anew.
        put(name, "two")
        node.wait_said(alloc, b"said arg-two two\n")
        check_service(name, "two")
        case.until(lambda: services() == ["web-two"], 20, "the service of the old value to be removed")
        # A restarted agent knows them again, though the task does not start again.
        asked.clear()
        node.replace_supervisor()
        check_service(name, "two")
        case.equal(services(), ["web-two"])
        case.equal(node.logs(alloc).count(b"said"), 2, "starts of the task")
        node.purge(name)
        case.until(lambda: services() == [], 20, "no services")


def restart_agent(between=lambda: None):
    """Puts an end to all that the agent knows only in memory."""
    asked.clear()
    node.kill_launcher()
    between()
    node.start()
    node.wait_ready()


def check_old_then_new(name, alloc):
    """The running task has the value "one", a restarted agent has "two": services and checks have what the running task has, then what its next start
    gets."""
    for begin_again in (restart_agent, node.replace_supervisor):
        asked.clear()
        begin_again()
        check_service(name, "one")
        case.equal((services(), node.logs(alloc).count(b"said"), state(alloc)[0]), (["web-one"], 1, 0))
    case.equal(node.request("GET", "/v1/client/allocation/%s/checks" % alloc["ID"]).text.count("web-two"), 0, "checks of the new value")
    node.do("PUT", "/v1/client/allocation/%s/restart" % alloc["ID"], {})
    node.wait_said(alloc, b"said arg-two two\n")
    check_service(name, "two")
    case.until(lambda: services() == ["web-two"], 20, "the service of the old value to be removed")
    node.purge(name)


def test_a_template_that_is_rendered_once():
    """Its values change while the agent runs, and no event says so: the task is not to get them."""
    put("once", "one")
    alloc = register("once", "exec", Once=True)
    check_service("once", "one")
    put("once", "two")
    events = state(alloc)[1]
    restart_agent()
    check_service("once", "one")
    case.equal(state(alloc)[1], events)
    check_old_then_new("once", alloc)


def test_a_restart_that_is_pending():
    """The file has the new values, and the task that runs the old ones until the end of the splay."""
    put("pending", "one")
    alloc = register("pending", "raw_exec", Splay=3600 * S)
    check_service("pending", "one")
    put("pending", "two")

    def written():
        with open("%s/alloc/%s/t/secrets/env" % (node.data, alloc["ID"]), encoding="ascii") as f:
            return "X=two" in f.read()
    case.until(written, 20, "the new file")
    case.equal(services(), ["web-one"])
    check_old_then_new("pending", alloc)


def test_variables_are_encrypted_in_the_database_and_removed_with_the_task():
    node.do("PUT", "/v1/var/nomad/jobs/sealed", {"Path": "nomad/jobs/sealed", "Items": {"word": "sesame"}})
    node.register(api.job("sealed", "/bin/sh", ["-c", "echo said $WORD; exec sleep 1000"], Templates=[
        {"EmbeddedTmpl": '{{ with nomadVar "nomad/jobs/sealed" }}WORD={{ .word }}{{ end }}', "DestPath": "secrets/env", "Envvars": True}]))
    alloc = node.wait_running("sealed")[0]
    node.wait_said(alloc, b"said sesame\n")

    def record():
        return json.loads(db.query(node, "SELECT client FROM alloc")[0][0]).get("template_envs")
    sealed = case.until(record, 20, "the variables")
    texts = db.unseal(node, "template variables of %s/t" % alloc["ID"], base64.b64decode(sealed[0]["sealed"]))
    case.equal((sealed[0]["task"], texts, db.files_with(node, "sesame")), ("t", b"WORD\0sesame\0\0", []))
    node.do("DELETE", "/v1/job/sealed")
    case.until(lambda: not record(), 20, "the variables to be removed")
    node.purge("sealed")


def state(alloc):
    """Returns the number of restarts, and what the events say."""
    found = node.ask("/v1/allocation/" + alloc["ID"])["TaskStates"]["t"]
    return found["Restarts"], " ".join(e["DisplayMessage"] for e in found["Events"])


def test_an_error_of_a_template_that_is_rendered_once_ends_no_running_task():
    put("error", "1")
    node.register(api.job("error", "/bin/sh", ["-c", "echo said $X; exec sleep 1000"], Templates=[
        {"EmbeddedTmpl": '{{ with nomadVar "nomad/jobs/error" }}X={{ parseInt .x.Value }}{{ end }}', "DestPath": "secrets/env", "Envvars": True, "Once": True}]))
    alloc = node.wait_running("error")[0]
    node.wait_said(alloc, b"said 1\n")
    put("error", "no number")
    restart_agent()
    case.until(lambda: node.ask("/v1/allocation/" + alloc["ID"])["TaskStates"]["t"]["State"] == "running", 20, "the task to be followed")
    found = node.ask("/v1/allocation/" + alloc["ID"])
    case.equal((found["ClientStatus"], state(alloc)[0], node.logs(alloc)), ("running", 0, b"said 1\n"))
    node.purge("error")


def answer(handler):
    asked.append((handler.path, handler.headers["X-Value"]))
    handler.reply(b"")


asked = []
with web.Server({"/path-one": answer, "/path-two": answer}) as server, api.Node() as node:
    case.run(globals())
