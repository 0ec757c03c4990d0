#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The audit log: an entry before and after each request, who sent it, no secret, filters, rotation, and what happens when it cannot be written."""
import glob
import http.client
import json
import os
import signal
import ssl
import subprocess

from lib import agent, api, build_dir, case, helper, task_api
from lib.nomad_server import make_certificates
from lib.websocket import Exec

SECRET = "s3cret-of-this-test"


class Node(api.Node):
    """Writes its audit log in a file system of its own, of 256 KiB."""

    def __init__(self, audit="", more="", **kwargs):
        self.dir = case.directory() + "/small"
        os.mkdir(self.dir)
        helper.mount("none", self.dir, "tmpfs", 0, "size=256k,mode=0777")
        self.path = self.dir + "/audit.log"
        self.config = '%s\naudit {\n%%s\nsink "s" { type = "file" format = "json" path = "%s"\n%s } }\n' % (more, self.path, audit)
        super().__init__(agent.config_args(self.config % "enabled = true" + api.DISK), **kwargs)

    def __exit__(self, *args):
        try:
            return super().__exit__(*args)
        finally:
            helper.umount(self.dir)

    def reload(self, switch, more=""):
        before, old = self.log().count("configuration reloaded"), self.processes()["supervisor"]
        with open(self.args[1], "w", encoding="utf-8") as f:
            f.write(self.config % switch + more + api.DISK)
        os.kill(self.pid, signal.SIGHUP)
        self.wait_log("configuration reloaded", times=before + 1)
        self.wait_process("supervisor", other_than=old)  # the old one answers until it ends
        self.wait_ready()

    def entries(self, path=None):
        """Returns the payloads of the log; each line is one object."""
        with open(path or self.path, encoding="utf-8") as f:
            lines = f.read().split("\n")
        case.equal(lines[-1], "", "the end of the log")
        return [json.loads(line) for line in lines[:-1]]

    def of(self, method, endpoint):
        return [e["payload"] for e in self.entries()
                if (e["payload"]["request"]["operation"], e["payload"]["request"]["endpoint"]) == (method, endpoint)]

    def fill(self):
        ballast = self.dir + "/ballast"
        with open(ballast, "wb", buffering=0) as f:
            size = 1 << 16
            while size > 0:
                try:
                    f.write(b"x" * size)
                except OSError:
                    size //= 2
        return ballast


def stages(payloads):
    return [p["stage"] for p in payloads]


def test_each_request_has_two_entries():
    with Node() as node:
        node.register(api.job("web"))
        node.wait_running("web")
        whole = node.entries()
        case.equal({(e["event_type"], e["payload"]["type"], e["payload"]["version"]) for e in whole}, {("audit", "audit", 1)})
        first, last = node.of("POST", "/v1/jobs")
        case.equal(stages([first, last]), ["OperationReceived", "OperationComplete"])
        case.equal([first[k] == last[k] for k in ("id", "timestamp", "auth", "request")], [True] * 4, "what both have")
        case.equal((first.get("response"), last["response"]), (None, {"status_code": 200}))
        request = first["request"]
        case.equal((request["namespace"], request["request_meta"]["user_agent"]), ({"id": "default"}, ""))
        case.equal([request["peer"][k] for k in ("socket", "uid", "pid")], ["control", os.getuid(), os.getpid()])
        case.equal(first["auth"]["accessor_id"], "acls-disabled")
        # requests that no handler sees
        for method, path, status, error in (("GET", "/v1/nothing", 404, "resource not found"), ("PATCH", "/v1/jobs", 405, "Invalid method"),
                                            ("GET", "/v1/job/none", 404, "job not found")):
            case.equal(node.request(method, path + "?token=" + SECRET).status, status)
            found = node.of(method, path)
            case.equal((stages(found), found[1]["response"]), (["OperationReceived", "OperationComplete"], {"status_code": status, "error": error}))
        # an error of a request with a body may quote it
        node.request("POST", "/v1/jobs", {"Job": {"ID": "bad", "Type": SECRET}})
        case.equal(node.of("POST", "/v1/jobs")[-1]["response"], {"status_code": 400, "error": "Bad Request"})
        with open(node.path, encoding="utf-8") as f:
            case.equal(SECRET in f.read(), False, "a secret in the log")
        st = os.stat(node.path)
        case.equal((st.st_mode & 0o777, st.st_uid == os.stat(node.data + "/state").st_uid), (0o600, True))
        node.purge("web")


def test_tokens_are_named_and_not_shown():
    with Node(more="acl { enabled = true }") as node:
        made = node.do("POST", "/v1/acl/bootstrap")
        case.equal(node.request("GET", "/v1/jobs").status, 403)
        refused = node.of("GET", "/v1/jobs")
        case.equal((refused[0]["auth"]["accessor_id"], refused[1]["response"]["status_code"]), ("anonymous", 403))
        case.contains(refused[1]["response"]["error"], "Permission denied")
        node.token = made["SecretID"]
        node.do("PUT", "/v1/var/a/b", {"Items": {"k": SECRET}})
        case.equal([p["auth"]["accessor_id"] for p in node.of("PUT", "/v1/var/a/b")], [made["AccessorID"]] * 2)
        case.equal(node.of("PUT", "/v1/var/a/b")[0]["auth"]["type"], "management")
        node.ask("/v1/var/a/b")
        for headers in ({"Authorization": "Bearer " + SECRET}, {"X-Nomad-Token": SECRET}, {"Cookie": SECRET}):
            node.request("PUT", "/v1/var/a/b", {"Items": {"k": SECRET}}, headers=headers)
        with open(node.path, encoding="utf-8") as f:
            text = f.read()
        case.equal([secret in text for secret in (SECRET, made["SecretID"])], [False, False], "a secret in the log")


def test_sessions_and_requests_of_tasks():
    with Node() as node:
        alloc, door, token = task_api.start(node, "first")
        case.equal(door.request("GET", "/v1/var/nomad/jobs/first", token=token).status, 404)
        case.equal(door.request("GET", "/v1/nodes", token="invalid").status, 403)
        peers = [node.of("GET", "/v1/var/nomad/jobs/first")[0], node.of("GET", "/v1/nodes")[0]]
        case.equal([[p["request"]["peer"].get(k) for k in ("socket", "alloc_id", "task")] for p in peers], [["task", alloc["ID"], "t"]] * 2)
        case.equal([peers[0]["auth"], peers[1]["auth"]], [{"alloc_id": alloc["ID"], "task": "t"}, {}])
        node.register(api.job("web"))
        web = node.wait_running("web")[0]["ID"]
        case.contains(Exec(node, web, ["/bin/echo", SECRET]).end()[0].decode(), SECRET)
        found = node.of("GET", "/v1/client/allocation/%s/exec" % web)
        case.equal((stages(found), found[1]["response"]), (["OperationReceived", "OperationComplete"], {"status_code": 101}))
        with open(node.path, encoding="utf-8") as f:
            case.equal(SECRET in f.read(), False, "the command in the log")
        for job in ("web", "first"):
            node.purge(job)


def over_tcp(method, path, token=None, context=None, body=None):
    """Returns the status, and the client's address."""
    kind = http.client.HTTPSConnection if context else http.client.HTTPConnection
    c = kind("localhost", 4646, timeout=case.LEAST_S, **({"context": context} if context else {}))
    try:
        c.connect()
        address = "%s:%d" % c.sock.getsockname()[:2]
        c.request(method, path, body, {"X-Nomad-Token": token} if token else {})
        return c.getresponse().status, address
    finally:
        c.close()


def test_clients_over_tcp_are_named_by_token_and_address():
    tcp = 'ports {\n  http = 4646\n}\naddresses {\n  http = "127.0.0.1"\n}\nacl {\n  enabled = true\n}\n'
    with Node(more=tcp) as node:
        made = node.do("POST", "/v1/acl/bootstrap")
        status, address = over_tcp("PUT", "/v1/system/gc", made["SecretID"])
        case.equal(status, 200)
        found = node.of("PUT", "/v1/system/gc")
        case.equal((stages(found), found[1]["response"]), (["OperationReceived", "OperationComplete"], {"status_code": 200}))
        for p in found:
            case.equal((p["auth"]["accessor_id"], p["request"]["request_meta"]["remote_address"], p["request"]["peer"]),
                       (made["AccessorID"], address, {"socket": "tcp"}))
        # A refused one, of which nothing but the head was read.
        status, address = over_tcp("PUT", "/v1/job/none/evaluate", SECRET, body=SECRET)
        found = node.of("PUT", "/v1/job/none/evaluate")
        case.equal((status, stages(found), found[1]["response"]["status_code"], found[1]["request"]["request_meta"]["remote_address"], found[1]["auth"]),
                   (403, ["OperationReceived", "OperationComplete"], 403, address, {}))
        with open(node.path, encoding="utf-8") as f:
            text = f.read()
        case.equal([secret in text for secret in (SECRET, made["SecretID"])], [False, False], "a secret in the log")


def test_clients_over_tcp_are_named_by_their_certificate():
    certs = make_certificates(case.directory(), names=("server", "client"))
    for _, key in certs.values():
        os.chmod(key, 0o600)
    ca, (cert, key) = certs["ca"][0], certs["server"]
    tls = 'ports {\n  http = 4646\n}\ntls {\n  http = true\n  verify_https_client = true\n  ca_file = "%s"\n  cert_file = "%s"\n  key_file = "%s"\n}\n' % (ca, cert, key)
    with Node(more=tls) as node:
        context = ssl.create_default_context(cafile=ca)
        context.load_cert_chain(*certs["client"])
        status, address = over_tcp("PUT", "/v1/system/gc", context=context)
        case.equal(status, 200)
        first = node.of("PUT", "/v1/system/gc")[0]
        case.equal((first["auth"]["accessor_id"], first["request"]["request_meta"]["remote_address"], first["request"]["peer"]),
                   ("acls-disabled", address, {"socket": "tcp", "certificate": "/CN=client.global.nomad"}))


def test_signals_that_have_the_node_land_or_retire():
    for name in ("SIGUSR1", "SIGUSR2"):
        check_signal(name)


def check_signal(name):
    signo = getattr(signal, name)
    with Node() as node:
        launcher = node.pid
        os.kill(launcher, signo)
        case.until(lambda: node.process.poll() is not None, 30, "the end of the agent")
        found = node.of("SIGNAL", name)
        case.equal(len(found), 1, "entries: %s" % found)
        p = found[0]
        case.equal((p["stage"], p["auth"], [p["request"]["peer"][k] for k in ("socket", "uid", "pid")]),
                   ("OperationReceived", {}, ["signal", os.getuid(), launcher]))


def test_enforced_refuses_what_it_cannot_write():
    with Node() as node:
        node.ask("/v1/jobs")
        ballast = node.fill()
        case.until(lambda: node.request("GET", "/v1/jobs").status == 500, 20, "the last page to be full")
        size = os.stat(node.path).st_size
        text = "refused, because requests are audited and the audit log cannot be written: write %s: No space left on device" % node.path
        for method, path, body in (("POST", "/v1/jobs", api.job("late")), ("PUT", "/v1/var/late", {"Items": {"k": "v"}}), ("GET", "/v1/nodes", None)):
            node.refused(500, text, method, path, body)
        case.equal(os.stat(node.path).st_size, size, "the size of the log")
        os.unlink(ballast)
        case.equal((node.ask("/v1/jobs"), node.ask("/v1/vars")), ([], []), "what was refused")
        case.equal(node.log().count("the audit log cannot be written"), 1)
        node.wait_log("the audit log is written again")
        node.entries()


def missing_entries(node):
    """Returns the payloads that are in the agent's log instead."""
    return [json.loads(line.partition("missing in the audit log: ")[2])["payload"]
            for line in node.log().splitlines() if "missing in the audit log: " in line]


def test_a_node_without_space_for_entries_shows_its_health_and_lands():
    with Node() as node:
        case.equal(node.ask("/v1/agent/health?deep=1")["components"]["audit"]["state"], "ok")
        ballast = node.fill()
        case.until(lambda: node.request("GET", "/v1/jobs").status == 500, 20, "the last page to be full")
        text = "write %s: No space left on device" % node.path
        case.equal(node.request("GET", "/v1/agent/health").status, 200)
        answer = node.request("GET", "/v1/agent/health?deep=1")
        bad = {name: c["message"] for name, c in answer.json["components"].items() if c["state"] in ("failed", "hung")}
        case.equal((answer.status, bad), (503, {"audit": text}))
        case.contains(node.drover("probe", code=1).out, text)
        os.unlink(ballast)
        case.equal(node.ask("/v1/agent/health?deep=1")["components"]["audit"]["state"], "ok")
        node.fill()
        case.until(lambda: node.request("GET", "/v1/jobs").status == 500, 20, "the last page to be full")
        case.equal(missing_entries(node), [], "entries of others in the agent's log")
        case.equal(node.do("PUT", "/v1/agent/land?wait=true", {})["State"], "landed")
        case.equal(node.wait(), 0, "the agent's end")
        found = missing_entries(node)
        case.equal([(p["request"]["operation"], p["request"]["endpoint"], p["stage"]) for p in found],
                   [("PUT", "/v1/agent/land", stage) for stage in ("OperationReceived", "OperationComplete")])
        case.equal([p["request"]["peer"]["pid"] for p in found], [os.getpid()] * 2)


def test_a_signal_whose_entry_cannot_be_written():
    with Node() as node:
        node.ask("/v1/jobs")
        os.unlink(node.path)
        os.mkfifo(node.path)
        os.chmod(node.path, 0o666)
        answer = node.request("GET", "/v1/agent/health?deep=1")
        case.equal((answer.status, answer.json["components"]["audit"]["message"]), (503, node.path + ": it is not a regular file"))
        os.kill(node.pid, signal.SIGUSR2)
        case.equal(node.wait(), 0, "the agent's end")
        case.equal([(p["request"]["operation"], p["request"]["endpoint"]) for p in missing_entries(node)], [("SIGNAL", "SIGUSR2")])


def test_a_file_system_that_hangs_is_not_opened():
    if not os.path.exists("/dev/fuse"):
        case.skip("no FUSE here")
    with Node() as node:
        node.ask("/v1/jobs")
        os.unlink(node.path)  # the next entry makes a new one
        with subprocess.Popen([build_dir() + "/tests/fuse_hang", node.dir, "getattr"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as fuse:
            try:
                case.equal(fuse.stdout.readline(), b"mounted\n", "fuse_hang")
                node.refused(500, node.path + ": its file system is a network or FUSE mount", "GET", "/v1/jobs", None)
            finally:
                fuse.kill()
                helper.umount(node.dir, 2)
        case.equal(node.ask("/v1/jobs"), [])


def test_best_effort_goes_on_and_counts():
    with Node(audit='delivery_guarantee = "best-effort"') as node:
        ballast = node.fill()
        for _ in range(50):
            node.ask("/v1/jobs")
        node.register(api.job("late"))
        node.wait_running("late")
        os.unlink(ballast)
        counters = {c["Name"]: c["Sum"] for c in node.ask("/v1/metrics")["Counters"]}
        case.equal(counters["drover.audit.failures_total"] > 0, True, counters["drover.audit.failures_total"])
        node.entries()
        node.purge("late")


def test_a_file_that_cannot_be_opened():
    with Node() as node:
        os.unlink(node.path)  # the next entry makes a new one
        node.ask("/v1/jobs")
        case.equal(len(node.of("GET", "/v1/jobs")), 2)
        os.unlink(node.path)
        os.mkfifo(node.path)
        os.chmod(node.path, 0o666)
        node.refused(500, node.path + ": it is not a regular file", "GET", "/v1/jobs")
        os.unlink(node.path)
        os.symlink("/dev/null", node.path)
        node.refused(500, "open %s: Too many levels of symbolic links" % node.path, "GET", "/v1/jobs")
        os.unlink(node.path)
        with open(node.path, "w", encoding="ascii") as f:  # a line that a crash left without its end
            f.write('{"payload": {"stage": "cut')
        os.chmod(node.path, 0o666)
        os.chown(node.path, os.stat(node.data + "/state").st_uid, -1)
        node.ask("/v1/jobs")
        with open(node.path, encoding="ascii") as f:
            lines = f.read().split("\n")
        case.equal((lines[0], [json.loads(line)["payload"]["stage"] for line in lines[1:-1]]),
                   ('{"payload": {"stage": "cut', ["OperationReceived", "OperationComplete"]))


def test_rotation_by_size():
    with Node(audit='rotate_bytes = 3000 rotate_max_files = 2 mode = "0640"') as node:
        for _ in range(40):
            node.ask("/v1/jobs")
        closed = sorted(glob.glob(node.dir + "/audit-*.log"))
        case.equal(len(closed), 2, closed)
        files = closed + [node.path]
        case.equal([(os.stat(f).st_size <= 3000, os.stat(f).st_mode & 0o777) for f in files], [(True, 0o640)] * 3)
        ids = [e["payload"]["id"] for f in files for e in node.entries(f)]
        case.equal(len(ids) - len(set(ids)) >= len(ids) // 2 - 1, True, "pairs across the files")


def test_rotation_by_age():
    with Node(audit='rotate_duration = "1s"') as node:
        case.until(lambda: node.ask("/v1/jobs") == [] and glob.glob(node.dir + "/audit-*.log"), 30, "a closed file")


FILTERS = '''filter "metrics" { type = "HTTPEvent" endpoints = ["/v1/metrics"] stages = ["*"] operations = ["*"] }
filter "first of reads" { type = "HTTPEvent" endpoints = ["*"] stages = ["OperationReceived"] operations = ["GET"] }
filter "glob" { type = "HTTPEvent" endpoints = ["/v1/job/*/summary"] stages = ["*"] operations = ["GET", "PUT"] }
'''


def test_filters_and_reloads():
    with Node() as node:
        node.reload("enabled = true\n" + FILTERS)
        node.request("GET", "/v1/metrics?format=prometheus")
        node.request("GET", "/v1/job/a/summary")
        node.ask("/v1/nodes")
        node.request("PUT", "/v1/validate/job", {"Job": {}})
        case.equal([len(node.of("GET", path)) for path in ("/v1/metrics", "/v1/job/a/summary")], [0, 0])
        case.equal(stages(node.of("GET", "/v1/nodes")), ["OperationComplete"])
        case.equal(stages(node.of("PUT", "/v1/validate/job")), ["OperationReceived", "OperationComplete"])
        node.reload("enabled = false")
        before = len(node.entries())
        node.register(api.job("quiet"))
        node.wait_running("quiet")
        case.equal(len(node.entries()), before, "entries while it is off")
        node.reload("enabled = true")
        node.purge("quiet")
        case.equal(stages(node.of("DELETE", "/v1/job/quiet")), ["OperationReceived", "OperationComplete"])


def test_without_a_path_it_is_in_the_data_directory():
    with api.Node(agent.config_args("audit { enabled = true }\n" + api.DISK)) as node:
        node.ask("/v1/jobs")
        with open(node.data + "/audit/audit.log", encoding="utf-8") as f:
            case.equal(any(json.loads(line)["payload"]["request"]["endpoint"] == "/v1/jobs" for line in f), True)


case.run(globals())
