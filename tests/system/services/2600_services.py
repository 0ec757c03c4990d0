#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Services of jobs and their checks on one node: registration, queries, checks, restarts by a check, and removal."""
import contextlib
import http.server
import json
import os
import subprocess
import threading

from lib import api, binary, case
from lib.cluster import processes_of

S = 10**9
# Serves on port "http" the answer that the path names; on port "raw" it speaks another protocol.
SERVER = r"""
import http.server, os, socket, threading, time
class Handler(http.server.BaseHTTPRequestHandler):
    def answer(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)) if self.path != "/post" else 0)
        if self.path == "/post":
            body = self.rfile.read(int(self.headers["Content-Length"]))
            good = (self.command, body, self.headers["X-Who"], self.headers["Host"]) == ("POST", b"ping", "me", "a.example")
            self.send_response(200 if good else 400)
        elif self.path.startswith("/to-"):
            self.send_response(302)
            self.send_header("Location", {"/to-flag": "/flag", "/to-away": "http://localhost/x", "/to-itself": "/to-itself"}[self.path])
        elif self.path == "/big":
            self.send_response(500)
            self.end_headers()
            for _ in range(100):
                self.wfile.write(b"x" * 1048576)
            return
        elif self.path == "/lines":
            for _ in range(1000):
                self.wfile.write(b"HTTP/1.1 200 OK\r\n" + b"A: " + b"b" * 1000 + b"\r\n")
            return
        elif self.path == "/never":
            time.sleep(1000)
        else:
            self.send_response(200)
        self.end_headers()
        self.wfile.write(b"fine")
    do_GET = do_POST = do_HEAD = answer
    def log_message(self, *_):
        pass
class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256
    def handle_error(self, *_):
        pass
def raw():
    s = socket.create_server(("", int(os.environ["NOMAD_PORT_raw"])))
    while True:
        c = s.accept()[0]
        c.sendall(b"SSH-2.0-none\r\n")
        c.close()
threading.Thread(target=raw, daemon=True).start()
Server(("", int(os.environ["NOMAD_PORT_http"])), Handler).serve_forever()
"""
PORTS = [{"Mode": "host", "DynamicPorts": [{"Label": "http"}, {"Label": "raw"}, {"Label": "closed"}]}]


def check(name, kind="http", path="/flag", timeout=20, **more):
    return {"Name": name, "Type": kind, "Path": path if kind == "http" else "", "Interval": S, "Timeout": timeout * S, **more}


def web(name, services, ports=None, **more):
    group = {"Networks": ports or PORTS, "Services": services}
    group.update(more.pop("group", {}))
    return api.job(name, "/usr/bin/python3", ["-B", "-c", SERVER], group=group, **more)


def service(name="web", port="http", checks=(), **more):
    return {"Name": name, "PortLabel": port, "Provider": "nomad", "Checks": list(checks), **more}


def instances(name):
    return node.ask("/v1/service/" + name)


def checks_of(alloc):
    return {c["Check"]: c for c in (node.ask("/v1/client/allocation/%s/checks" % alloc["ID"]) or {}).values()}


def wait_check(alloc, name, status, output="", seconds=90):
    """Waits until the check has this status and its output begins with this text. Returns the check."""
    seen = {}

    def look():
        seen.update(checks_of(alloc).get(name, {}))
        return seen.get("Status") == status and seen["Output"].startswith(output) and dict(seen)
    try:
        return case.until(look, seconds, "check %s to be %s" % (name, status))
    except AssertionError as e:
        raise AssertionError("%s; it is %r" % (e, seen)) from None


def events(alloc):
    return [(e["Type"], e["DisplayMessage"]) for e in node.ask("/v1/allocation/" + alloc["ID"])["TaskStates"]["t"]["Events"]]


def drover(*words):
    r = subprocess.run([binary("drover")] + list(words), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=case.LEAST_S, check=False,
                       env=dict(os.environ, DROVER_ADDR="unix://" + node.socket_path))
    return r.returncode, r.stdout.decode()


def test_services_are_found_and_removed_before_the_task_is_stopped():
    # After its signal the task ends only when the test makes a file.
    script = "trap 'while ! test -e $NOMAD_ALLOC_DIR/go; do sleep 0.05; done; exit 0' INT; echo ready; while :; do sleep 0.05; done"
    made = api.job("found", "/bin/sh", ["-c", script], KillTimeout=60 * S, Services=[service("of-task", "8080")], group={
        "Networks": [{"Mode": "host", "ReservedPorts": [{"Label": "http", "Value": 18080}]}],
        "Services": [service("web-${NOMAD_ALLOC_INDEX}", Tags=["a", "${NOMAD_GROUP_NAME}"]), service("portless", "")]})
    node.register(made)
    alloc = node.wait_running("found")[0]
    node.wait_said(alloc, b"ready")
    case.until(lambda: instances("of-task"), 20, "the service of the task")
    found = instances("web-0")[0]
    address = node.ask("/v1/allocation/" + alloc["ID"])["AllocatedResources"]["Shared"]["Ports"][0]
    case.equal((found["ID"], found["Address"], found["Port"], found["Tags"]),
               ("_nomad-task-%s-group-g-web-0-http" % alloc["ID"], address["HostIP"], 18080, ["a", "g"]))
    case.equal((found["JobID"], found["AllocID"], found["Namespace"]), ("found", alloc["ID"], "default"))
    case.equal(instances("of-task")[0]["ID"], "_nomad-task-%s-t-of-task-8080" % alloc["ID"])
    case.equal((instances("portless")[0]["Port"], instances("portless")[0]["Address"]), (0, address["HostIP"]))
    names = [s["ServiceName"] for s in node.ask("/v1/services")[0]["Services"]]
    case.equal(names, ["of-task", "portless", "web-0"])
    case.equal(len(node.ask("/v1/allocation/%s/services" % alloc["ID"])), 3)
    code, text = drover("service", "list")
    case.equal((code, "web-0" in text, "a,g" in text), (0, True, True), text)
    code, text = drover("service", "info", "web-0")
    case.equal((code, "%s:18080" % address["HostIP"] in text), (0, True), text)
    case.equal(drover("service", "info", "nobody")[0] != 0, True, "exit code for an unknown service")
    # A change in place: the same alloc with other tags.
    made["Job"]["TaskGroups"][0]["Services"][0]["Tags"] = ["b"]
    node.register(made)
    case.until(lambda: instances("web-0")[0]["Tags"] == ["b"], 20, "the new tags")
    case.equal(node.wait_running("found")[0]["ID"], alloc["ID"], "the alloc")
    node.kill("supervisor")
    node.wait_ready()
    case.until(lambda: len(node.ask("/v1/allocation/%s/services" % alloc["ID"])) == 3, 20, "the services to be back")
    node.do("DELETE", "/v1/job/found")
    case.until(lambda: node.ask("/v1/services") == [], 20, "the services to be removed")
    case.equal(node.ask("/v1/allocation/" + alloc["ID"])["ClientStatus"], "running", "status of the task, which still runs")
    open("%s/alloc/%s/alloc/go" % (node.data, alloc["ID"]), "w").close()
    node.purge("found")


def test_checks_report_their_results():
    checks = [check("good"), check("tcp", "tcp"), check("head", Method="HEAD"), check("moved", path="/to-flag"),
              check("post", path="post", Method="POST", Body="ping", Header={"X-Who": ["me"], "Host": ["a.example"]}),
              check("big", path="/big"), check("lines", path="/lines"), check("never", path="/never", timeout=1),
              check("away", path="/to-away"), check("loop", path="/to-itself"),
              check("raw", PortLabel="raw"), check("refused", PortLabel="closed"), check("refused-tcp", "tcp", PortLabel="closed")]
    answer = node.register(web("checked", [service(checks=checks), service("elsewhere", Address="example.org", checks=[
        check("name", PortLabel="http")])]))
    node.wait_evaluation(answer["EvalID"])
    alloc = node.wait_running("checked")[0]
    ports = {p["Label"]: p for p in node.ask("/v1/allocation/" + alloc["ID"])["AllocatedResources"]["Shared"]["Ports"]}
    at = {k: "%s:%d" % (p["HostIP"], p["Value"]) for k, p in ports.items()}
    for name, code, output in (("good", 200, "nomad: http ok"), ("tcp", 0, "nomad: tcp ok"), ("head", 200, "nomad: http ok"),
                               ("moved", 200, "nomad: http ok"), ("post", 200, "nomad: http ok")):
        found = wait_check(alloc, name, "success")
        case.equal((found.get("StatusCode", 0), found["Output"]), (code, output), name)
        case.equal((found["Mode"], found["Group"], found["Service"], "Task" in found), ("healthiness", "checked.g[0]", "web", False))
    get = 'nomad: GET "http://%s%s": '
    for name, output in (
            ("lines", get % (at["http"], "/lines") + "malformed HTTP response: "),
            ("never", get % (at["http"], "/never") + "no answer within the timeout of 1s"),
            ("away", get % (at["http"], "/to-away") + '"localhost" is not an IP address'),
            ("loop", get % (at["http"], "/to-itself") + "stopped after 10 redirects"),
            ("raw", get % (at["raw"], "/flag") + "malformed HTTP response: it does not begin with HTTP/1.x"),
            ("refused", get % (at["closed"], "/flag") + "dial tcp %s: connect: connection refused" % at["closed"]),
            ("refused-tcp", "dial tcp %s: connect: connection refused" % at["closed"]),
            ("name", '"example.org" is not an IP address, and checks do not resolve names')):
        found = wait_check(alloc, name, "failure", output)
        case.equal(found.get("StatusCode", 0), 0, name)
    big = wait_check(alloc, "big", "failure", "xxx")
    case.equal((big["StatusCode"], big["Output"]), (500, "x" * 3072))
    code, text = drover("alloc", "checks", alloc["ID"])
    case.equal((code, "connection refused" in text), (0, True), text)
    # The results are known at once after a restart of the agent.
    node.kill("supervisor")
    node.wait_ready()
    case.until(lambda: len(checks_of(alloc)) == 14, 20, "the checks")
    case.equal([c["Check"] for c in checks_of(alloc).values() if c["Status"] == "pending"], [], "checks without a result")
    node.purge("checked")


@contextlib.contextmanager
def judge():
    """Answers checks at .port: 503 while the process .pid exists, else 200. So no task has to start in time for a check."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(503 if server.pid and os.path.exists("/proc/%d" % server.pid) else 200)
            self.end_headers()

        def log_message(self, *_):
            pass
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.pid, server.port = None, str(server.server_address[1])
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def test_a_failing_check_restarts_its_task_repeatedly():
    with judge() as judged:
        policy = {"Attempts": 3, "Interval": 600 * S, "Delay": S // 10, "Mode": "fail"}
        checks = [check("alive", CheckRestart={"Limit": 2, "Grace": S}), check("ignored", OnUpdate="ignore")]
        of = service("sick", judged.port, checks, Address="127.0.0.1")
        for name, made in (("of-group", api.job("of-group", group={"RestartPolicy": policy, "Services": [of]})),
                           ("of-task", api.job("of-task", group={"RestartPolicy": policy}, Services=[of]))):
            node.register(made)
            alloc = node.wait_running(name)[0]
            wait_check(alloc, "alive", "success")
            judged.pid = case.until(lambda a=alloc: processes_of(a["ID"]), 20, "the task to run")[0]
            case.until(lambda a=alloc: [e[0] for e in events(a)].count("Started") == 2, 90, "the task to be started again")
            wait_check(alloc, "alive", "success")
            found = events(alloc)
            at = [e[0] for e in found].index("Restart Signaled")
            case.equal(found[at][1], 'healthcheck: check "alive" unhealthy')
            case.equal([e[0] for e in found[at + 1:]], ["Terminated", "Restarting", "Started"])
            case.equal(node.ask("/v1/allocation/" + alloc["ID"])["TaskStates"]["t"]["Restarts"], 1)
            case.equal([(s["AllocID"], s["Address"]) for s in instances("sick")], [(alloc["ID"], "127.0.0.1")], "instances")
            # The restart happens again.
            judged.pid = case.until(lambda a=alloc: processes_of(a["ID"]), 20, "the task to run")[0]
            case.until(lambda a=alloc: node.ask("/v1/allocation/" + a["ID"])["TaskStates"]["t"]["Restarts"] == 2, 90, "the second restart")
            node.purge(name)


def test_services_of_a_group_are_removed_while_its_tasks_restart():
    """The services are removed for the group's shutdown_delay before the tasks are stopped, until one has started again; not if a single
    task is restarted."""
    node.register(api.job("again", group={"ShutdownDelay": 2 * S, "Services": [service("again", "")]}))
    alloc = node.wait_running("again")[0]

    def starts():
        return [e for e in node.ask("/v1/allocation/" + alloc["ID"])["TaskStates"]["t"]["Events"] if e["Type"] == "Started"]

    def restarted(*words):
        """Returns the delay until the task was stopped, and whether the group's service was registered again."""
        index, last = case.until(lambda: instances("again"), 60, "the service of the group")[0]["CreateIndex"], starts()[-1]["Time"]
        code, text = drover("alloc", "restart", *words)
        case.equal(code, 0, text)
        case.until(lambda: starts()[-1]["Time"] > last, 90, "the task to be started again")
        seen = node.ask("/v1/allocation/" + alloc["ID"])["TaskStates"]["t"]["Events"]
        at = max(n for n, e in enumerate(seen) if e["Type"] == "Restart Signaled")
        case.equal([e["Type"] for e in seen[at:]], ["Restart Signaled", "Terminated", "Restarting", "Started"])
        again = case.until(lambda: instances("again"), 60, "the service of the group")[0]
        return seen[at + 1]["Time"] - seen[at]["Time"], again["CreateIndex"] > index
    _, anew = restarted(alloc["ID"], "t")
    case.equal(anew, False, "the service after the restart of one task")
    for words in ((alloc["ID"],), ("-all-tasks", alloc["ID"])):
        delay, anew = restarted(*words)
        # The clock of events may be adjusted slightly meanwhile.
        case.equal((delay >= 2 * S - S // 100, anew), (True, True), "%s: %.3f s" % (words, delay / S))
    node.do("DELETE", "/v1/job/again?no_shutdown_delay=true")
    node.purge("again")


def test_a_refused_restart_removes_no_service():
    made = api.job("kept", "/bin/sh", ["-c", "exit 1"], group={"Services": [service("kept", "")], "RestartPolicy": {
        "Attempts": 3, "Interval": 3600 * S, "Delay": 1000 * S, "Mode": "fail"}})
    node.register(made)

    def waits():
        found = [a for a in node.allocs("kept") if (a["TaskStates"] or {}).get("t", {}).get("Restarts") == 1]
        return found and instances("kept") and found[0]
    alloc = case.until(waits, 60, "the task to wait for its second start")
    index = instances("kept")[0]["CreateIndex"]
    for words in ((), ("-all-tasks",)):
        code, text = drover("alloc", "restart", *words, alloc["ID"])
        case.equal(code, 1, text)
        case.contains(text, "Task not running")
        case.equal([i["CreateIndex"] for i in instances("kept")], [index], "the service of the group")
    node.purge("kept")


def test_services_are_removed_when_the_tasks_end_by_themselves():
    made = api.job("once", "/bin/sh", ["-c", "until [ -e $NOMAD_ALLOC_DIR/go ]; do sleep 0.05; done"],
                   Services=[service("of-task", "")], group={"Services": [service("of-group", "")]})
    made["Job"]["Type"] = "batch"
    node.register(made)
    alloc = node.wait_running("once")[0]
    case.until(lambda: instances("of-task") and instances("of-group"), 60, "both services")
    open("%s/alloc/%s/alloc/go" % (node.data, alloc["ID"]), "w").close()
    node.wait_allocs("once", [(0, "run", "complete")], 60)
    case.until(lambda: node.ask("/v1/services") == [], 60, "the services to be removed")
    node.purge("once")


def test_a_static_port_has_one_holder():
    ports = [{"Mode": "host", "ReservedPorts": [{"Label": "http", "Value": 18081}]}]
    node.register(api.job("first", group={"Networks": ports}))
    alloc = node.wait_running("first")[0]
    answer = node.register(api.job("second", group={"Networks": ports}))
    ev = node.wait_evaluation(answer["EvalID"])
    case.equal(ev["FailedTGAllocs"]["g"]["DimensionExhausted"],
               {"network: reserved port collision http=18081 (first.g[0] has it)": 1})
    node.do("PUT", "/v1/allocation/%s/stop" % alloc["ID"])
    node.purge("first")
    node.wait_running("second")
    node.purge("second")


def test_a_task_knows_its_ports():
    made = api.job("env", "/bin/sh", ["-c", "env; echo; echo done; sleep 1000"], group={"Networks": [{"Mode": "host", "ReservedPorts": [
        {"Label": "my-port", "Value": 18082, "To": 80}], "DynamicPorts": [{"Label": "dyn", "To": -1}]}]})
    node.register(made)
    alloc = node.wait_running("env")[0]
    node.wait_said(alloc, b"\n\ndone\n")
    text = node.logs(alloc).decode()
    found = dict(line.split("=", 1) for line in text.splitlines() if line.startswith("NOMAD_"))
    ports = {p["Label"]: p for p in node.ask("/v1/allocation/" + alloc["ID"])["AllocatedResources"]["Shared"]["Ports"]}
    ip, dyn = ports["dyn"]["HostIP"], str(ports["dyn"]["Value"])
    wanted = {"NOMAD_PORT_my_port": "80", "NOMAD_HOST_PORT_my_port": "18082", "NOMAD_ADDR_my_port": ip + ":18082",
              "NOMAD_IP_my_port": ip, "NOMAD_PORT_dyn": dyn, "NOMAD_HOST_PORT_dyn": dyn}
    case.equal({k: found.get(k) for k in wanted}, wanted)
    node.purge("env")


def test_services_for_consul_are_registered_here():
    made = web("consul", [service(Provider="", Meta={"a": "b"}, checks=[check("c", FailuresBeforeCritical=3)]),
                          service("other", "raw", Provider="consul")])
    warnings = node.do("POST", "/v1/jobs", made)["Warnings"]
    for part in ('service "web": there is no Consul: it is registered in this agent\'s own catalogue', 'service "web": without Consul these have no effect: meta',
                 'check "c": without Consul these have no effect: success_before_passing', 'service "other": there is no Consul'):
        case.contains(warnings, part)
    alloc = node.wait_running("consul")[0]
    case.until(lambda: [i["AllocID"] for i in instances("web") + instances("other")] == [alloc["ID"]] * 2, 10, "both services to be registered")
    case.until(lambda: [c["Status"] for c in node.ask("/v1/client/allocation/%s/checks" % alloc["ID"]).values()] == ["success"], 20, "the check to pass")
    case.equal(node.ask("/v1/job/consul")["TaskGroups"][0]["Services"][0]["Provider"], "consul", "what the job says")
    node.purge("consul")
    case.equal(node.ask("/v1/services"), [])


def test_invalid_services_are_refused():
    for services, text in (
            ([service("bad_name")], "a service's name must have 1 to 63 letters, digits and dashes"),
            ([service(Provider="consul", Connect={"Native": True})], "connect is not supported"),
            ([service(Provider="consul", checks=[check("c", "script")])], 'type must be "http" or "tcp", not "script"'),
            ([service(port="nowhere")], 'port "nowhere" is neither a number nor a label'),
            ([service(checks=[check("c", "script")])], 'type must be "http" or "tcp", not "script"'),
            ([service(checks=[check("c", Protocol="ftp")])], 'protocol must be "http" or "https", not "ftp"'),
            ([service(checks=[check("c", Header={"A": ["b\r\nC: d"]})])], "header A has a control character"),
            ([service(checks=[check("c", Timeout=1)])], "interval and timeout must be at least 1s"),
            ([service(port="", checks=[check("c")])], 'neither check "c" nor its service has a port'),
            ([service(checks=[check("c", OnUpdate="ignore", CheckRestart={"Limit": 1})])], "exclude each other"),
            ([service(), service()], "two services have this name and the same port")):
        node.refused(400, text, "POST", "/v1/jobs", web("refused", services))
    # A name that can be checked only after interpolation on the node.
    node.register(web("late", [service("web-${NOMAD_ALLOC_NAME}")]))
    alloc = node.wait_allocs("late", [(0, "run", "failed")])[0]
    case.equal(events(alloc)[-1][0], "Setup Failure")
    case.equal('pre-run hook "group_services" failed: service "web-late.g[0]"' in events(alloc)[-1][1], True, events(alloc)[-1][1])
    node.purge("late")


def test_no_leaks_are_left():
    case.equal(node.ask("/v1/services"), [], "services")
    case.equal(json.loads(node.request("GET", "/v1/agent/leaks").body), [], "leaks")


with api.Node() as node:
    case.run(globals())
