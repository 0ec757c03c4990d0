#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# timeout: 600
# takes: 90
"""The whole life of a volume with secrets, at log level debug, with a plugin that says each request in its errors, and with a
supervisor that is killed during each call: nothing that anybody can read has a secret, a mount flag or a publish context. The same for the
items of variables."""
import base64
import glob
import http.client
import json
import os
import re
import resource
import signal
import threading

from lib import api, build_dir, case, csi, volumes
from lib.fake_api import run_command

SECRETS = {"password": "Zq7-pa\u00dfword-9KxTz", "quoted": "qu0\"te\\d-\u20acW3rd", "lines": "-----BEGIN KEY-----\nMIIxZ3kQ8vNfirst\nMIIxZ3kQ8vNsecond\n",
           "number": "982451653000017"}
FLAG = "credential=Flg-8xQw2zP"
# Parts, because a text may have been cut: none of them is in anything else.
PARTS = ["Zq7-pa", "word-9KxTz", "qu0\"te", "W3rd", "MIIxZ3kQ8vNfirst", "MIIxZ3kQ8vNsecond", "982451653000017", "Flg-8xQw2zP"]
HIDDEN = "[REDACTED]"
MODE = {"AccessMode": "multi-node-multi-writer", "AttachmentMode": "file-system"}
PATHS = ("volumes?type=csi", "volume/csi/a", "volume/csi/a?refresh=true", "agent/volumes?namespace=*", "volume/csi/a/claims", "volume/csi/b",
         "plugins?type=csi", "plugin/csi/p", "allocations", "nodes", "jobs", "job/user", "job/user/allocations",
         "job/user/evaluations", "evaluations", "vars", "vars?namespace=*&filter=Path!=%22%22", "agent/self", "agent/leaks", "metrics",
         "volumes/snapshot?plugin_id=p", "volumes/external?plugin_id=p")


def encodings(text):
    """Returns the forms in which a part of a secret may appear."""
    data, found = text.encode(), {text.encode(), json.dumps(text)[1:-1].encode(), text.encode().hex().encode(), text.encode().hex().upper().encode()}
    for shift in range(3):  # a base64 text has it at any of three positions
        found.add(base64.b64encode(b"xyz"[:shift] + data)[4 if shift else 0:][:len(data) * 4 // 3 - 4])
    return found


NEEDLES = {form: part for part in PARTS for form in encodings(part) if len(form) >= 4}
ANY = re.compile(b"|".join(re.escape(n) for n in NEEDLES))


def search(where, data):
    return ["%s has %r: %r" % (where, NEEDLES[m.group()], data[max(m.start() - 60, 0):m.end() + 20]) for m in ANY.finditer(data)][:1]


def files():
    """Yields the name and the contents of every file of the agent."""
    for top, _, names in os.walk(node.data):
        for name in names:
            try:
                with open(os.path.join(top, name), "rb", opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK | os.O_NOFOLLOW)) as f:
                    yield os.path.join(top, name), f.read()
            except OSError:  # sockets and links
                pass


def processes():
    """Yields arguments and environment of every process in this namespace but the plugin, which has them, and this test."""
    for path in glob.glob("/proc/[0-9]*/*"):
        if os.path.basename(path) not in ("cmdline", "environ", "status") or "/%d/" % os.getpid() in path:
            continue
        try:
            with open(path, "rb") as f:
                yield path, f.read()
        except OSError:
            pass


def stream():
    """Returns the events up to now."""
    c = api.Connection(node, 1)  # seconds of silence, after which all events have come
    data = b""
    try:
        c.request("GET", "/v1/event/stream?index=1&topic=*")
        answer = c.getresponse()
        while True:
            data += answer.readline()
    except (TimeoutError, http.client.HTTPException):
        return data
    finally:
        c.close()


def look(moment):
    """Fails if a secret can be read anywhere."""
    found = []
    for path in PATHS:
        found += search("GET " + path, node.request("GET", "/v1/" + path).body)
    for alloc in [a for a in node.ask("/v1/allocations") if a["JobID"] == "user"]:
        found += search("alloc", node.request("GET", "/v1/allocation/" + alloc["ID"]).body)
        for words in (("alloc", "status", "-verbose", alloc["ID"]), ("alloc", "why", alloc["ID"])):
            done = node.drover(*words)
            found += search(" ".join(words), (done.out + done.err).encode())
    for words in (("volume", "status"), ("volume", "status", "a"), ("volume", "claims"), ("status",), ("node", "status", "-verbose"), ("leaks",)):
        done = run_command(words, env={"DROVER_ADDR": "unix://" + node.socket_path})
        found += search(" ".join(words), (done.out + done.err).encode())
    with open(node.log_path, "rb") as f:
        found += search("log", f.read())
    for where, data in [*files(), *processes(), ("events", stream())]:
        found += search(where, data)
    case.equal(found, [], "secrets that can be read " + moment)


def rules(*lines):
    with open(base + "/rules.new", "w", encoding="ascii") as f:
        f.write("\n".join(lines) + "\n")
    os.rename(base + "/rules.new", base + "/rules")


def calls(method):
    return csi.calls(base + "/calls", method) if os.path.exists(base + "/calls") else []


def volume(name, **more):
    return {"Volumes": [dict({"ID": name, "Name": name, "PluginID": "p", "RequestedCapacityMin": 1 << 20, "RequestedCapabilities": [MODE],
                              "Secrets": SECRETS, "MountOptions": {"MountFlags": ["noatime", FLAG]}}, **more)]}


def fails(method, path, body=None, status=400):
    """Makes a request that the plugin refuses with the bytes of its own request."""
    answer = node.request(method, path, body)
    case.equal((answer.status, search("the answer", answer.body)), (status, []), answer.text)
    case.contains(answer.text, HIDDEN)


def kill_during(method, request):
    """Kills the supervisor while this method of the plugin is called."""
    before = len(calls(method))
    rules(method + "=slow:2000")
    thread = threading.Thread(target=quietly, args=(request,))
    thread.start()
    case.until(lambda: len(calls(method)) > before, 60, "a call of " + method)
    node.replace_supervisor()
    thread.join()
    rules()
    case.until(is_healthy, 60, "the plugin to be healthy again")
    look("after a crash during " + method)


def quietly(request):
    try:
        request()
    except (OSError, http.client.HTTPException):
        pass


def is_healthy():
    found = node.request("GET", "/v1/plugin/csi/p")
    return found.status == 200 and (found.json["NodesHealthy"], found.json["ControllersHealthy"]) == (1, 1)


def job():
    made = volumes.job("user", "a", "sleep 1000")
    made["Job"]["TaskGroups"][0]["Volumes"]["data"].update(MODE)
    return made


def test_requests_that_cannot_be_read():
    for secrets in ({"a": 982451653000017}, {"a": ["Zq7-pa"]}, ["Zq7-pa"], "Zq7-pa", {"a": {"b": "Zq7-pa"}}):
        answer = node.request("PUT", "/v1/volume/csi/a", volume("a", Secrets=secrets))
        case.equal((answer.status, search("the answer", answer.body)), (400, []), answer.text)
    text = json.dumps(volume("a", Secrets={"a": "Zq7-pa"})).encode()
    for body in (text[:-5], text.replace(b"Zq7-pa", b"Zq7-pa\\x"), text.replace(b"Zq7-pa", b"Zq7-pa\\u0000"), text.replace(b'"Zq7-pa"', b"Zq7-pa")):
        answer = node.request("PUT", "/v1/volume/csi/a", body)
        case.equal((answer.status, search("the answer", answer.body)), (400, []), answer.text)
    look("after requests that cannot be read")


def test_create():
    rules("CreateVolume=echo:3")
    fails("PUT", "/v1/volume/csi/a/create", volume("a"))
    look("after a failed creation")
    kill_during("CreateVolume", lambda: node.request("PUT", "/v1/volume/csi/a/create", volume("a")))
    node.do("PUT", "/v1/volume/csi/a/create", volume("a"))
    case.equal(csi.entries(calls("CreateVolume")[-1]["secrets"]), SECRETS, "the secrets that arrived")
    look("after the creation")


def test_register():
    rules("ValidateVolumeCapabilities=echo:3")
    fails("PUT", "/v1/volume/csi/b", volume("b", ExternalID="b"))
    kill_during("ValidateVolumeCapabilities", lambda: node.request("PUT", "/v1/volume/csi/b", volume("b", ExternalID="b")))
    node.do("PUT", "/v1/volume/csi/b", volume("b", ExternalID="b"))
    look("after the registration")
    # What is read is written back, without secrets: they stay.
    node.do("PUT", "/v1/volume/csi/b", {"Volumes": [node.ask("/v1/volume/csi/b")]})
    case.equal(csi.entries(calls("ValidateVolumeCapabilities")[-1]["secrets"]), SECRETS, "the secrets that were kept")


def test_mount():
    for method in ("ControllerPublishVolume", "NodeStageVolume", "NodePublishVolume"):
        rules(method + "=echo:3")
        node.register(job())
        case.until(lambda: [a for a in node.allocs("user") if a["ClientStatus"] == "failed"], 60, "the alloc to fail at " + method)
        case.contains(node.events(node.allocs("user")[0]["ID"]), HIDDEN)
        look("after a failed " + method)
        rules()
        node.purge("user")
        case.until(lambda: node.ask("/v1/volume/csi/a/claims") == [], 60, "the claim to be released")
    for method in ("ControllerPublishVolume", "NodeStageVolume", "NodePublishVolume"):
        kill_during(method, lambda: node.register(job()))
        node.wait_running("user", seconds=60)
        if method != "NodePublishVolume":
            node.purge("user")
            case.until(lambda: node.ask("/v1/volume/csi/a/claims") == [], 60, "the claim to be released")
    case.equal(csi.entries(calls("NodePublishVolume")[-1]["secrets"]), SECRETS, "the secrets that arrived")
    case.equal(csi.entries(calls("NodePublishVolume")[-1]["publish_context"]), {"device": "a@bad-node"}, "the context that arrived")
    look("while it is mounted")


def test_expand():
    path = "/v1/volume/csi/a/create"
    rules("ControllerExpandVolume=echo:3")
    answer = node.request("PUT", path, volume("a", RequestedCapacityMin=1 << 21))
    case.equal((answer.status >= 400, search("the answer", answer.body)), (True, []), answer.text)
    case.contains(answer.text, HIDDEN)
    kill_during("ControllerExpandVolume", lambda: node.request("PUT", path, volume("a", RequestedCapacityMin=1 << 21)))


def test_snapshot():
    body = {"Snapshots": [{"SourceVolumeID": "a", "Name": "s"}]}
    rules("CreateSnapshot=echo:3")
    fails("PUT", "/v1/volumes/snapshot", body)
    kill_during("CreateSnapshot", lambda: node.request("PUT", "/v1/volumes/snapshot", body))
    node.do("PUT", "/v1/volumes/snapshot", body)
    case.equal(csi.entries(calls("CreateSnapshot")[-1]["secrets"]), SECRETS, "the secrets that arrived")


def test_release():
    for method in ("NodeUnpublishVolume", "NodeUnstageVolume", "ControllerUnpublishVolume"):
        before = len(calls(method))
        rules(method + "=echo:13")
        node.do("DELETE", "/v1/job/user")
        case.until(lambda: len(calls(method)) > before, 60, "a call of " + method)
        look("after a failed " + method)
        kill_during(method, lambda: None)
        case.until(lambda: node.ask("/v1/volume/csi/a/claims") == [], 60, "the claim to be released")
        node.purge("user")
        if method != "ControllerUnpublishVolume":
            node.register(job())
            node.wait_running("user", seconds=60)


def test_delete():
    rules("DeleteVolume=echo:3")
    fails("DELETE", "/v1/volume/csi/a/delete", status=500)
    kill_during("DeleteVolume", lambda: node.request("DELETE", "/v1/volume/csi/a/delete"))
    node.request("DELETE", "/v1/volume/csi/a/delete")
    node.do("DELETE", "/v1/volume/csi/b")
    case.until(lambda: node.ask("/v1/volumes", type="csi") == [], 20, "no volumes")
    look("at the end")


def command(*words, code=0, stdin=None):
    done = run_command(("var", *words), env={"DROVER_ADDR": "unix://" + node.socket_path}, stdin=stdin)
    case.equal((done.code, search("drover var", (done.out + done.err).encode())), (code, []), done.err)


def test_variables():
    path, spec = "/v1/var/some/path", case.write(base + "/spec.json", json.dumps({"Path": "some/path", "Items": SECRETS}))
    wrong = [{"Items": {"a": 982451653000017}}, {"Items": ["Zq7-pa"]}, {"Items": "Zq7-pa"}, {"Items": {"a": {"b": "Zq7-pa"}}},
             {"Items": {"a": "Zq7-pa" * 20000}}, {"Items": SECRETS, "Lock": {"TTL": "1s"}}]
    for body in wrong + [json.dumps(b).encode()[:-3] for b in wrong] + [json.dumps(wrong[3]).encode().replace(b"Zq7-pa", b"Zq7-pa\\u0000")]:
        answer = node.request("PUT", path, body)
        case.equal((answer.status, search("the answer", answer.body)), (400, []), answer.text)
    for query in ("?lock-acquire&cas=0", "?cas=x", "?namespace=none", "?lock-release"):
        answer = node.request("PUT", path + query, {"Items": SECRETS, "Lock": {"ID": "x"}})
        case.equal((answer.status, search("the answer", answer.body)), (400, []), answer.text)
    look("after requests for variables that are refused")
    command("put", "-out", "none", "@" + spec)
    command("put", "-out", "none", "@" + spec, code=1)  # the conflict's answer has them, and is not printed
    command("put", "-out", "none", "some/path", "@" + spec, "more=@" + spec, code=1)
    command("put", "-force", "-out", "none", "other", "-", stdin=json.dumps({"Items": SECRETS}).encode())
    case.equal(node.ask(path)["Items"], SECRETS)
    look("after variables were written")
    command("lock", "-shell=false", "@" + spec, "/bin/true")
    for _ in range(5):
        thread = threading.Thread(target=quietly, args=(lambda: [node.request("PUT", "/v1/var/many/%d" % i, {"Items": SECRETS}) for i in range(200)],))
        thread.start()
        node.replace_supervisor()
        thread.join()
    case.equal(node.ask(path)["Items"], SECRETS)
    look("after crashes while variables were written")
    for found in node.ask("/v1/vars"):
        case.equal(node.request("DELETE", "/v1/var/" + found["Path"]).status, 204)
    look("after variables were deleted")
    os.unlink(spec)


def test_the_processes_that_have_secrets_leave_no_core():
    node.ask("/v1/volumes/external", plugin_id="p")  # csi-helper runs when it is needed
    for name in ("csi-helper", "supervisor"):
        pid = node.processes()[name]
        with open("/proc/%d/status" % pid, encoding="utf-8") as f:
            uid = int(re.search(r"^Uid:\t(\d+)", f.read(), re.M).group(1))
        # The kernel gives the files of a process without cores to root.
        case.equal((uid != 0, os.stat("/proc/%d/environ" % pid).st_uid), (True, 0), "users of " + name)
        before = set(os.listdir("/"))  # the working directory
        node.kill(name, signal.SIGSEGV)
        node.wait_log("%s (pid %d) was killed by signal 11 (Segmentation fault)\n" % (name, pid))
        node.wait_ready()
        case.equal(set(os.listdir("/")) - before, set(), "cores of " + name)


def test_no_leaks_are_left():
    node.purge("plugin-p")
    case.until(lambda: node.ask("/v1/agent/leaks") == [], 20, "no leaks")


# The agent inherits that cores are permitted, as far as this machine does.
resource.setrlimit(resource.RLIMIT_CORE, (resource.getrlimit(resource.RLIMIT_CORE)[1],) * 2)
base = case.directory()
os.chmod(base, 0o777)
rules()
with volumes.Node('log_level = "debug"') as node:
    script = 'exec %s "$${CSI_ENDPOINT#unix://}" "$@"' % os.path.join(build_dir(), "tests", "csi_bad")
    node.register(api.job("plugin-p", "/bin/sh", ["-c", script, "csi_bad", "attach=%s/attached" % base, "mounts=yes", "rules=%s/rules" % base,
                                                  "requests=%s/calls" % base], CSIPluginConfig={"ID": "p", "Type": "monolith", "MountDir": "/csi"}))
    case.until(is_healthy, 30, "the plugin to be healthy")
    case.run(globals())
