#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 56
"""Checks: their requests, the effect of the answers on tasks, services and deployments, and many checks without an answer."""
import contextlib
import http.server
import resource
import socket
import threading

from lib import agent, api, case

S = 10**9
HOUR = 3600 * S


class Judge(http.server.ThreadingHTTPServer):
    """Answers checks at .port, so that no task has to start in time for a check. .asked: the requests by path. A path /500 gets that
    status, a path that is set to fail 503, any other 200. The body is the path."""
    daemon_threads = True
    request_queue_size = 256

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Answers)
        self.port, self.asked, self.lock = str(self.server_address[1]), {}, threading.Lock()
        self.left = {}  # failures to come
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def fail(self, path, times=10**9):
        """Lets the path fail this many times from now on. Returns the number of requests before."""
        with self.lock:
            self.left[path] = times
            return self.times(path)

    def times(self, path):
        return len(self.asked.get(path, ()))

    def status(self, path, what):
        with self.lock:
            self.asked.setdefault(path, []).append(what)
            fails = self.left.get(path, 0)
            self.left[path] = max(fails - 1, 0)
        return int(path[1:]) if path[1:].isdigit() else 503 if fails else 200


class Answers(http.server.BaseHTTPRequestHandler):
    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path = self.path.partition("?")[0]
        self.send_response(self.server.status(path, (self.command, self.path, self.headers.items(), body)))
        self.end_headers()
        self.wfile.write(b"you asked for " + path.encode())
    do_GET = do_PUT = do_POST = do_DELETE = do_OPTIONS = do_PATCH = answer

    def log_message(self, *_):
        pass


def check(name, path="/ok", kind="http", **more):
    return {"Name": name, "Type": kind, "Path": path if kind == "http" else "", "Interval": S, "Timeout": 20 * S, **more}


def service(name, checks=(), **more):
    return {"Name": name, "PortLabel": judge.port, "Address": "127.0.0.1", "Provider": "nomad", "Checks": list(checks), **more}


def checks_of(alloc):
    return {c["Check"]: c for c in (node.ask("/v1/client/allocation/%s/checks" % alloc["ID"]) or {}).values()}


def wait_check(alloc, name, status):
    return case.until(lambda: checks_of(alloc).get(name, {}).get("Status") == status and checks_of(alloc)[name], 90,
                      "check %s to be %s" % (name, status))


def events(alloc, task="t"):
    return node.ask("/v1/allocation/" + alloc["ID"])["TaskStates"][task]["Events"]


def kinds(alloc, task="t"):
    return [e["Type"] for e in events(alloc, task)]


def test_a_check_is_pending_before_its_first_request():
    node.register(api.job("new", group={"Services": [service("s", [check("slow", Interval=HOUR, InitialStatus="passing")])]}))
    found = checks_of(node.wait_running("new")[0])["slow"]
    case.equal((found["Status"], found["Output"], found["Mode"]), ("pending", "nomad: waiting to run", "healthiness"))
    node.purge("new")


def test_the_status_of_an_answer_decides():
    """Each status below 400 is a success; the output has the status unless it is 200."""
    wanted = {200: ("success", "nomad: http ok"), 201: ("success", "you asked for /201"), 204: ("success", ""),
              301: ("success", "you asked for /301"), 400: ("failure", "you asked for /400"), 404: ("failure", "you asked for /404"),
              500: ("failure", "you asked for /500"), 503: ("failure", "you asked for /503")}
    node.register(api.job("codes", group={"Services": [service("s", [check("c%d" % n, "/%d" % n) for n in wanted])]}))
    alloc = node.wait_running("codes")[0]
    for code, (status, output) in wanted.items():
        found = wait_check(alloc, "c%d" % code, status)
        case.equal((found["StatusCode"], found["Output"]), (code, output), code)
    node.purge("codes")


def test_the_request_of_a_check():
    """Method, path, query, headers and body are sent after interpolation, and no others."""
    checks = [check("bare", "asked/bare"), check("put", "/asked/${NOMAD_ALLOC_INDEX}?x=${NOMAD_META_who}&y=%20", Method="PUT",
                                               Body="${NOMAD_GROUP_NAME}, ${nobody}", Header={
                                                   "X-${NOMAD_META_who}": ["${attr.kernel.name}", "two"], "Host": ["${NOMAD_META_who}.example"],
                                                   "User-Agent": ["mine"]}),
              check("tcp of ${NOMAD_TASK_NAME}", kind="tcp", PortLabel=judge.port)]
    made = api.job("asks", Services=[service("s-${NOMAD_META_who}", checks, Tags=["${NOMAD_ALLOC_INDEX}", "${nobody}"],
                                             Address="${NOMAD_META_home}")], Meta={"who": "me", "home": "127.0.0.1"})
    node.register(made)
    alloc = node.wait_running("asks")[0]
    for name in ("bare", "put", "tcp of t"):
        found = wait_check(alloc, name, "success")
        case.equal((found["Service"], found["Task"], found["Group"]), ("s-me", "t", "asks.g[0]"))
    method, _, headers, body = judge.asked["/asked/bare"][0]
    headers = dict(headers)
    agent = headers.pop("User-Agent")
    case.equal((method, headers, body, agent.startswith("drover/")), ("GET", {"Host": "127.0.0.1:" + judge.port, "Connection": "close"}, b"", True))
    method, path, headers, body = judge.asked["/asked/0"][0]
    case.equal((method, path, body), ("PUT", "/asked/0?x=me&y=%20", b"g, ${nobody}"))
    said = [(k, v) for k, v in headers if k in ("X-me", "Host", "User-Agent")]
    case.equal(sorted(said), [("Host", "me.example"), ("User-Agent", "mine"), ("X-me", "linux"), ("X-me", "two")])
    found = node.ask("/v1/service/s-me")[0]
    case.equal((found["Tags"], found["Address"]), (["0", "${nobody}"], "127.0.0.1"))
    node.purge("asks")


def test_the_address_and_port_of_a_check():
    """Checks use the address of their service unless they say host; a port is a label or a number."""
    ports = [{"Mode": "host", "ReservedPorts": [{"Label": "judge", "Value": int(judge.port)}]}]
    services = [service("label", [check("label", "/at/label")], PortLabel="judge", Address=""),
                service("number", [check("number", "/at/number")], Address="", AddressMode="host"),
                service("away", [check("host", "/at/host", AddressMode="host"), check("own", "/at/own")], Address="127.255.255.254")]
    node.register(api.job("at", group={"Networks": ports, "Services": services}))
    alloc = node.wait_running("at")[0]
    for name in ("label", "number", "host"):
        wait_check(alloc, name, "success")
    found = wait_check(alloc, "own", "failure")
    case.contains(found["Output"], "dial tcp 127.255.255.254:%s: connect: connection refused" % judge.port)
    found = {s["ServiceName"]: (s["Address"], s["Port"]) for s in node.ask("/v1/allocation/%s/services" % alloc["ID"])}
    port = int(judge.port)
    case.equal(found, {"label": ("127.0.0.1", port), "number": ("127.0.0.1", port), "away": ("127.255.255.254", port)})
    node.purge("at")


POLICY = {"Attempts": 5, "Interval": 600 * S, "Delay": S // 10, "Mode": "fail"}


def two_tasks(name, of_group=(), of_a=()):
    tasks = [api.task("a", "/bin/sleep", ["1000"], Services=list(of_a)), api.task("b", "/bin/sleep", ["1000"])]
    return api.job(name, group={"RestartPolicy": POLICY, "Tasks": tasks, "Services": list(of_group)})


def wait_restarted(alloc, tasks):
    for task in tasks:
        case.until(lambda t=task: kinds(alloc, t).count("Started") == 2, 90, "task %s to be started again" % task)


def test_a_check_of_a_task_restarts_that_task_and_one_of_the_group_restarts_all():
    for name, made, tasks in (("of-task", two_tasks("of-task", (), [service("s", [check("c", "/of-task", CheckRestart={"Limit": 3, "Grace": S})])]), "a"),
                              ("of-group", two_tasks("of-group", [service("s", [check("c", "/of-group", CheckRestart={"Limit": 3, "Grace": S})])]), "ab")):
        path = "/" + name
        node.register(made)
        alloc = node.wait_running(name)[0]
        wait_check(alloc, "c", "success")
        # Exactly that many consecutive failures are needed.
        before = judge.fail(path, 2)
        case.until(lambda p=path, n=before: judge.times(p) >= n + 4, 90, "two failures and two successes to be recorded")
        case.equal(kinds(alloc, "a").count("Started"), 1, "number of starts after two failures")
        judge.fail(path, 3)
        wait_restarted(alloc, tasks)
        for task in "ab":
            found = [e["DisplayMessage"] for e in events(alloc, task) if e["Type"] == "Restart Signaled"]
            case.equal(found, ['healthcheck: check "c" unhealthy'] if task in tasks else [], "restarts of " + task)
        wait_check(alloc, "c", "success")
        case.equal(len(node.ask("/v1/service/s")), 1, "instances after the restart")
        node.purge(name)


def test_a_check_restart_grace_follows_each_start():
    node.register(api.job("grace", group={"RestartPolicy": POLICY, "Services": [service("s", [check("c", "/500", CheckRestart={
        "Limit": 1, "Grace": 4 * S})])]}))
    alloc = node.wait_running("grace")[0]
    # The grace applies to each start.
    case.until(lambda: kinds(alloc).count("Restart Signaled") >= 2 or kinds(alloc).count("Started") >= 4, 120, "two restarts by a check")
    found = events(alloc)
    starts = [e["Time"] for e in found if e["Type"] == "Started"]
    for signaled in (e["Time"] for e in found if e["Type"] == "Restart Signaled"):
        began = max([t for t in starts if t < signaled], default=signaled - 4 * S)
        assert signaled - began >= 4 * S - S // 10, "restarted %.1f s after a start" % ((signaled - began) / S)
    node.purge("grace")


def test_services_of_a_task_are_removed_at_its_stop_and_added_at_its_start():
    script = "trap 'while ! test -e $NOMAD_ALLOC_DIR/go; do sleep 0.05; done; exit 0' INT; echo ready; while :; do sleep 0.05; done"
    made = api.job("turns", "/bin/sh", ["-c", script], KillTimeout=600 * S, Services=[service("own")],
                   group={"RestartPolicy": POLICY, "Services": [service("shared")]})
    node.register(made)
    alloc = node.wait_running("turns")[0]
    node.wait_said(alloc, b"ready\n")
    first = case.until(lambda: node.ask("/v1/service/own"), 60, "the task's service")[0]
    node.do("PUT", "/v1/client/allocation/%s/restart" % alloc["ID"], {"TaskName": "t"})
    case.until(lambda: node.request("GET", "/v1/service/own").json == [], 60, "the service of the task to be removed")
    case.equal(len(node.ask("/v1/service/shared")), 1, "services of the group while one task is restarted")
    case.equal(kinds(alloc).count("Terminated"), 0, "events of the task, which waits for a file before it ends")
    with open("%s/alloc/%s/alloc/go" % (node.data, alloc["ID"]), "w", encoding="ascii"):
        pass
    again = case.until(lambda: node.ask("/v1/service/own"), 60, "the service to be back")[0]
    case.equal((again["ID"], again["CreateIndex"] > first["CreateIndex"]), (first["ID"], True))
    node.purge("turns")


def test_an_ended_task_has_no_service_while_it_waits_for_its_restart():
    script = "while ! test -e $NOMAD_ALLOC_DIR/go; do sleep 0.05; done; exit 1"
    node.register(api.job("waits", "/bin/sh", ["-c", script], Services=[service("own")], group={
        "RestartPolicy": {**POLICY, "Delay": 300 * S, "Interval": 3600 * S}, "Services": [service("shared")]}))
    alloc = node.wait_running("waits")[0]
    case.until(lambda: node.ask("/v1/service/own"), 60, "the task's service")
    with open("%s/alloc/%s/alloc/go" % (node.data, alloc["ID"]), "w", encoding="ascii"):
        pass
    case.until(lambda: "Restarting" in kinds(alloc), 60, "the end of the task")
    case.equal((node.request("GET", "/v1/service/own").json, len(node.ask("/v1/service/shared"))), ([], 1))
    node.purge("waits")


def test_services_are_removed_before_the_delays_of_a_stop():
    """During the delays the task still serves clients, but new clients no longer find it."""
    for name, of_group, of_task in (("of-group", 1000 * S, 0), ("of-task", 0, 1000 * S)):
        node.register(api.job(name, Services=[service("own")], ShutdownDelay=of_task, group={
            "ShutdownDelay": of_group, "Services": [service("shared", [check("c")])]}))
        alloc = node.wait_running(name)[0]
        wait_check(alloc, "c", "success")
        case.equal(len(node.ask("/v1/allocation/%s/services" % alloc["ID"])), 2)
        node.do("DELETE", "/v1/job/" + name)
        left = ["own"] if of_group else []  # the delay of the group, during which the task is not signalled
        case.until(lambda a=alloc, w=left: [s["ServiceName"] for s in node.ask("/v1/allocation/%s/services" % a["ID"])] == w, 60,
                   "the services to be removed")
        case.equal((checks_of(alloc), kinds(alloc).count("Terminated")), ({}, 0))
        case.equal(node.ask("/v1/allocation/" + alloc["ID"])["ClientStatus"], "running")
        node.do("PUT", "/v1/allocation/%s/stop?no_shutdown_delay=true" % alloc["ID"])
        node.wait_allocs(name, [(0, "stop", "complete")], 60)
        node.purge(name)


def test_checks_are_changed_in_place():
    """A check that stays keeps its result, a new one starts, a removed one is not made any more, and the end of the alloc removes all."""
    def job(*checks):
        return api.job("changes", group={"Services": [service("s", checks)]})
    node.register(job(check("stays", "/stays"), check("goes", "/goes")))
    alloc = node.wait_running("changes")[0]
    for name in ("stays", "goes"):
        wait_check(alloc, name, "success")
    before = checks_of(alloc)["stays"]["ID"]
    node.register(job(check("stays", "/stays"), check("comes", "/404")))
    found = case.until(lambda: "comes" in checks_of(alloc) and checks_of(alloc), 60, "the new check")
    case.equal((set(found), found["stays"]["Status"], found["stays"]["ID"]), ({"stays", "comes"}, "success", before))
    wait_check(alloc, "comes", "failure")
    case.equal([a["ID"] for a in node.wait_running("changes")], [alloc["ID"]], "the alloc")
    asked, others = judge.times("/goes"), judge.times("/stays")
    case.until(lambda: judge.times("/stays") >= others + 3, 60, "three more requests of the check that stays")
    assert judge.times("/goes") <= asked + 1, "the removed check is still made"
    node.do("DELETE", "/v1/job/changes")
    node.wait_allocs("changes", [(0, "stop", "complete")], 60)
    case.equal(checks_of(alloc), {})
    node.purge("changes")


def test_a_canary_has_its_own_tags_until_it_is_promoted():
    def job(version):
        return api.job("canary", Env={"V": version}, group={
            "Services": [service("s", Tags=["live"], CanaryTags=["canary"])], "Update": {"MaxParallel": 1, "Canary": 1, "HealthCheck": "manual"}})

    def say(verb, **body):
        found = node.ask("/v1/job/canary/deployment")["ID"]
        node.do("POST", "/v1/deployment/%s/%s" % (verb, found), {"DeploymentID": found, **body})

    def tags():
        return sorted(s["Tags"] for s in node.ask("/v1/service/s"))
    node.register(job("one"))
    say("allocation-health", HealthyAllocationIDs=[a["ID"] for a in node.wait_running("canary")])
    deployment("canary", "successful", 0)
    node.register(job("two"))
    case.until(lambda: tags() == [["canary"], ["live"]], 60, "the canary's tags; they are %s" % tags())
    new = [a["ID"] for a in node.allocs("canary") if a["JobVersion"] == 1]
    say("allocation-health", HealthyAllocationIDs=new)
    say("promote", All=True)
    deployment("canary", "successful", 1)
    case.until(lambda: [(s["AllocID"], s["Tags"]) for s in node.ask("/v1/service/s")] == [(new[0], ["live"])], 60, "the tags of all")
    node.purge("canary")


def update(**more):
    return {"MaxParallel": 1, "HealthCheck": "checks", "MinHealthyTime": S // 10, "HealthyDeadline": 600 * S, "ProgressDeadline": 1200 * S, **more}


def deployment(name, status, version):
    def so():
        found = node.ask("/v1/job/%s/deployment" % name)
        return (found["JobVersion"], found["Status"]) == (version, status) and found
    return case.until(so, 120, "deployment %d of %s to be %s" % (version, name, status))


def test_a_deployment_waits_for_checks():
    def job(*checks, **more):
        return api.job("deployed", group={"Update": update(**more), "Services": [service("s", checks)]}, Env={"V": str(len(more))})
    judge.fail("/later")
    node.register(job(check("c", "/later"), check("readiness", "/500", OnUpdate="ignore")))
    alloc = node.wait_running("deployed")[0]
    for name, mode in (("c", "healthiness"), ("readiness", "readiness")):
        case.equal(wait_check(alloc, name, "failure")["Mode"], mode)
    # The check fails, so the alloc is not healthy although its task has run for min_healthy_time; the failing check with on_update =
    # "ignore" has no effect.
    asked = judge.times("/later")
    case.until(lambda: judge.times("/later") >= asked + 2, 60, "two more requests")
    case.equal(node.ask("/v1/job/deployed/deployment")["Status"], "running")
    judge.fail("/later", 0)
    deployment("deployed", "successful", 0)
    case.equal(checks_of(alloc)["readiness"]["Status"], "failure")
    # A check that never passes fails the deployment, and an event names it.
    node.register(job(check("c", "/503"), HealthyDeadline=5 * S, AutoRevert=True))
    case.until(lambda: [d for d in node.ask("/v1/job/deployed/deployments") if (d["JobVersion"], d["Status"]) == (1, "failed")], 120,
               "the deployment to fail")
    bad = [a for a in node.allocs("deployed") if a["JobVersion"] == 1][0]
    found = [e["DisplayMessage"] for e in events(bad) if e["Type"] == "Alloc Unhealthy"]
    case.equal(len(found), 1, found)
    case.contains(found[0], 'check "c" of service s: you asked for /503')
    # The stable version is restored, with its checks.
    deployment("deployed", "successful", 2)
    wait_check(node.wait_running("deployed")[0], "c", "success")
    node.purge("deployed")


def test_invalid_checks_are_refused():
    for wrong, text in (({"Type": "grpc"}, 'type must be "http" or "tcp", not "grpc"'), ({"Type": ""}, "type must be"),
                        ({"Path": ""}, "path is missing"), ({"Path": "http://a/b"}, "without scheme and host"),
                        ({"Interval": S - 1}, "interval and timeout must be at least 1s"), ({"Timeout": 0}, "interval and timeout"),
                        ({"Method": "G T"}, 'method "G T" is not an HTTP method'), ({"Protocol": "ftp"}, "protocol must be"),
                        ({"Header": {"a b": ["c"]}}, '"a b" cannot be the name of a header'),
                        ({"Expose": True}, "expose is not supported"),
                        ({"OnUpdate": "ignore_warnings"}, 'provider "nomad" does not support on_update "ignore_warnings"'),
                        ({"OnUpdate": "sometimes"}, "on_update must be"), ({"AddressMode": "auto"}, "address_mode must be"),
                        ({"AddressMode": "driver"}, 'only a service of a task, and its checks, can have address_mode "driver"'),
                        ({"SuccessBeforePassing": 2}, 'provider "nomad" does not support'), ({"FailuresBeforeCritical": 2}, 'provider "nomad" does not support'),
                        ({"TaskName": "t"}, "command, args and task is not supported"), ({"Command": "/bin/true"}, "is not supported"),
                        ({"InitialStatus": "fine"}, 'initial_status must be "passing", "warning" or "critical", not "fine"'),
                        ({"CheckRestart": {"Limit": 1, "IgnoreWarnings": True}}, 'does not support check_restart with ignore_warnings'),
                        ({"CheckRestart": {"Limit": -1}}, "limit and grace must not be negative"),
                        ({"PortLabel": "nowhere"}, 'port "nowhere" is neither a number nor a label')):
        made = api.job("wrong", group={"Services": [service("s", [check("c", **{k: v for k, v in wrong.items() if k not in ("Type", "Path")})])]})
        made["Job"]["TaskGroups"][0]["Services"][0]["Checks"][0].update(wrong)
        node.refused(400, text, "POST", "/v1/jobs", made)
    for wrong, text in (({"AddressMode": "alloc", "Address": ""}, "needs a network of the allocation's own"),
                        ({"AddressMode": "driver", "Address": ""}, "only a service of a task"),
                        ({"AddressMode": "there", "Address": ""}, "address_mode must be"), ({"AddressMode": "host"}, 'address needs address_mode "auto"'),
                        ({"Name": "a" * 64}, "1 to 63 letters"), ({"Name": "-a"}, "no dash at an end"), ({"Name": "a.b"}, "letters, digits and dashes"),
                        ({"Provider": "eureka"}, 'provider must be "nomad" or "consul"'), ({"Connect": {"Native": True}}, "connect is not supported")):
        node.refused(400, text, "POST", "/v1/jobs", api.job("wrong", group={"Services": [{**service("s"), **wrong}]}))


@contextlib.contextmanager
def silence():
    """A port that accepts connections and never answers."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with socket.create_server(("127.0.0.1", 0), backlog=2048) as listener:
        over, kept = threading.Event(), []

        def take():
            listener.settimeout(0.1)
            while not over.is_set():
                try:
                    kept.append(listener.accept()[0])
                except TimeoutError:
                    pass
                while len(kept) > 1500:
                    kept.pop(0).close()
        taker = threading.Thread(target=take)
        taker.start()
        yield str(listener.getsockname()[1])
        over.set()
        taker.join()
        for one in kept:
            one.close()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_two_thousand_checks_without_an_answer_delay_no_others():
    """More than the limit of simultaneous checks: each is made in turn, other checks too, and the agent keeps working."""
    with silence() as port:
        checks = [check("never%d" % n, kind="http", Timeout=2 * S) for n in range(100)]
        node.register(api.job("mute", group={"Services": [service("m%d" % n, checks, PortLabel=port) for n in range(20)]}))
        node.register(api.job("good", group={"Services": [service("s", [check("c", "/good")])]}))
        mute, good = [node.wait_running(name, seconds=90)[0] for name in ("mute", "good")]
        wait_check(good, "c", "success")

        def failed():
            found = node.ask("/v1/client/allocation/%s/checks" % mute["ID"]).values()
            return len([c for c in found if c["Status"] == "failure"]) == 2000
        case.until(failed, 240, "all of them to have been tried")
        for _ in range(3):
            asked = judge.times("/good")
            case.until(lambda n=asked: judge.times("/good") > n, 90, "another request of the good check")
            # Meanwhile other jobs start and stop.
            node.register(api.job("other"))
            node.wait_running("other", seconds=90)
            node.purge("other", 90)
        case.equal(checks_of(good)["c"]["Status"], "success")
        # Waiting checks are removed with their alloc, and are not made any more.
        node.purge("mute", 90)
        asked = judge.times("/good")
        case.until(lambda: judge.times("/good") >= asked + 2, 90, "the good check to be made after the others were removed")
        node.purge("good")


def test_no_leaks_are_left():
    case.equal(node.ask("/v1/services"), [], "services")


judge = Judge()
with api.Node(agent.config_args('client { network_interface = "lo" }\n')) as node:
    case.run(globals())
