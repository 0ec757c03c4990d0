# SPDX-License-Identifier: Apache-2.0
"""Passwords, tokens and keys of artifacts are seen by the servers that they are for, and can be read nowhere else: not while an artifact is fetched,
not afterwards, and not in the errors of what cannot be fetched."""
import base64
import contextlib
import glob
import os
import signal
import socket
import threading
import urllib.parse

from lib import agent, api, case, helper, traces, web

# Of the job's text.
PASSWORD, TOKEN, HEADER, OPTION, KEY, SESSION, GIT, SSH = MARKS = [
    b"pw-Zq7paW0rd9KxTz", b"tk-MIIxZ3kQ8vNfirst", b"hd-8sQpLx02mZ", b"op-u7Yt5Rw1/=&x", b"ak-wJalrXUtnFEMI/K7MDENG", b"st-a/session+token==", b"gp-b6Hq0Vn3",
    b"-----BEGIN OPENSSH PRIVATE KEY-----\nc3NoLXByaXZhdGUta2V5LW1hcms\n"]
# Of the agent's environment, which the configuration hands to the fetcher.
OF_AGENT = b"ag-kX93hsLwqP/zz"
CONFIG = 'client { artifact { set_environment_variables = "AWS_ACCESS_KEY_ID,AWS_SECRET_ACCESS_KEY" } }\n'


def text(mark):
    return mark.decode()


def quoted(mark):
    return urllib.parse.quote(mark, safe="")


def held(answer):
    """Answers when `go` is set."""
    def send(h):
        asked.append(h.path.split("?")[0])
        go.wait(60)
        answer(h)
    return send


def hidden(h):
    """Answers those that have all the secrets."""
    query = dict(urllib.parse.parse_qsl(h.path.partition("?")[2]))
    good = (h.headers["Authorization"] == "Basic " + base64.b64encode(b"me:" + PASSWORD).decode() and h.headers["X-Secret"] == text(HEADER)
            and query == {"token": text(TOKEN), "more": text(OPTION)})
    h.reply(b"of http\n", 200 if good else 403)


def bucket(h):
    """The signature is checked elsewhere."""
    h.reply(b"of s3\n", 200 if h.headers["X-Amz-Security-Token"] == text(SESSION) and "Authorization" in h.headers else 403)


def behind_password(data):
    def send(h):
        if h.headers["Authorization"] == "Basic " + base64.b64encode(b"me:" + GIT).decode():
            h.reply(data)
        else:
            h.reply(b"", 401, [("WWW-Authenticate", "Basic realm=x")])
    return send


def sources(port):
    """Returns artifacts that have all the secrets, by name."""
    at = "127.0.0.1:%d" % port
    return {
        "http": {"GetterSource": "http://me:%s@%s/hidden?token=%s" % (quoted(PASSWORD), at, quoted(TOKEN)), "GetterHeaders": {"X-Secret": text(HEADER)},
                 "GetterOptions": {"more": text(OPTION)}},
        "s3": {"GetterSource": "s3::http://%s/bucket/key" % at, "GetterOptions": {
            "aws_access_key_id": "AKIDEXAMPLE", "aws_access_key_secret": text(KEY), "aws_access_token": text(SESSION)}},
        "git": {"GetterSource": "git::http://me:%s@%s/r.git" % (quoted(GIT), at), "RelativeDest": "local/r"},
    }


def job(name, artifacts, script=""):
    return api.job(name, "/bin/sh", ["-c", script + "exec sleep 1000"], Artifacts=artifacts, driver="exec")


def test_while_it_is_fetched_and_afterwards():
    node.register(job("hidden", list(sources(server.port).values()), "cat local/hidden local/key local/r/a.txt; "))
    case.until(lambda: len(asked) >= 3, 30, "three requests")
    case.equal(traces.find(node, MARKS, "hidden", of_job=True), [], "while it is fetched")
    go.set()
    alloc = node.wait_running("hidden")[0]
    node.wait_said(alloc, b"of http\nof s3\nof git\n")
    case.equal(traces.find(node, MARKS, "hidden", of_job=True) + traces.in_processes(MARKS, "environ"), [], "afterwards")
    node.replace_supervisor()
    case.equal(traces.find(node, MARKS, "hidden", of_job=True) + traces.in_processes(MARKS, "environ"), [], "after a restart")


def test_the_agents_own_keys():
    node.register(job("own", [{"GetterSource": "s3::" + server.url + "/bucket/signed"}], "cat local/signed; "))
    node.wait_said(node.wait_running("own")[0], b"AKIDAGENT")
    processes = node.processes()
    case.equal(traces.find(node, [OF_AGENT], "own"), [], "what has it")
    # The launcher was started with it.
    case.equal(traces.in_processes([OF_AGENT], "environ", [node.process.pid, processes["fetcher"]]), [], "environments with it")
    case.equal(len(traces.in_processes([OF_AGENT], "environ", [node.process.pid])), 1, "whether the test can see environments")


def failing():
    """Yields (name, artifact, part of the error)."""
    all_of = sources(server.port)
    none = socket.create_server(("127.0.0.1", 0))
    closed = none.getsockname()[1]
    none.close()
    http, s3, git = all_of["http"], all_of["s3"], all_of["git"]
    yield "status", {**http, "GetterSource": http["GetterSource"].replace("/hidden", "/none")}, "status 404"
    yield "wrong", {**http, "GetterHeaders": {"X-Secret": text(HEADER) + "x"}}, "status 403"
    yield "checksum", {**http, "GetterOptions": {**http["GetterOptions"], "checksum": "md5:" + "0" * 32}}, "its md5 is"
    yield "list", {**http, "GetterOptions": {"checksum": "file:" + http["GetterSource"].replace("/hidden", "/none")}}, "status 404"
    yield "archive", {**http, "GetterOptions": {**http["GetterOptions"], "archive": "zip"}}, "the archive is damaged"
    yield "mode", {**http, "GetterMode": "dir"}, "not an archive"
    yield "subdir", {**http, "GetterSource": http["GetterSource"].replace("?", "//sub?")}, "has a subdirectory"
    for name, artifact in sources(closed).items():
        yield "closed-" + name, artifact, "onnect"
    yield "bucket", {**s3, "GetterSource": s3["GetterSource"].replace("bucket", "none")}, "status 404"
    yield "repository", {**git, "GetterSource": git["GetterSource"].replace("r.git", "none.git")}, "git failed"
    yield "password", {**git, "GetterSource": git["GetterSource"].replace(quoted(GIT), quoted(GIT) + "x")}, "git failed"
    yield "parameter", {**git, "GetterOptions": {"private_token": text(TOKEN)}}, "no parameters but ref, depth and sshkey"
    yield "sshkey", {"GetterSource": "git::ssh://git@127.0.0.1:%d/r.git" % silent.getsockname()[1], "GetterOptions": {
        "sshkey": base64.b64encode(SSH).decode()}}, "git failed"
    yield "redirect", {**git, "GetterSource": git["GetterSource"].replace("r.git", "moved")}, "git failed"
    # Sources that are not valid urls, because a password is not quoted.
    for name, between in (("slash", "/"), ("question", "?"), ("hash", "#"), ("at", "@"), ("space", " ")):
        yield "unquoted-" + name, {"GetterSource": "http://me:%s%s%s@127.0.0.1:%d/x" % (text(PASSWORD), between, text(TOKEN), server.port)}, ""
    yield "scp", {"GetterSource": "git::me:%s@127.0.0.1:r.git" % text(PASSWORD)}, ""
    yield "scheme", {"GetterSource": "me:%s@127.0.0.1/r" % text(PASSWORD)}, ""
    yield "getter", {"GetterSource": "ftp::" + http["GetterSource"]}, "ftp"


def answer_ssh():
    """Speaks as far as a client that trusts no host."""
    while True:
        try:
            peer, _ = silent.accept()
        except OSError:
            return
        peer.sendall(b"SSH-2.0-x\r\n")
        peer.close()


def test_what_cannot_be_fetched():
    threading.Thread(target=answer_ssh, daemon=True).start()
    for name, artifact, said in failing():
        node.register(job("fails", [artifact]))
        alloc = node.wait_allocs("fails", [(0, "run", "failed")])[0]
        shown = [e["DisplayMessage"] for e in alloc["TaskStates"]["t"]["Events"] if e["Type"] == "Failed Artifact Download"]
        case.contains(shown[0] if shown else "", said, name)
        case.equal(traces.find(node, MARKS, "fails", of_job=True) + traces.in_processes(MARKS, "environ"), [], name)
        node.purge("fails")


@contextlib.contextmanager
def known_user():
    """ssh asks for its own user, which an agent for development makes up. The fetcher may read the passwd of its start."""
    with open("/etc/passwd", encoding="utf-8") as file:
        passwd = file.read()
    uid = os.stat(node.data + "/alloc/.fetch").st_uid
    helper.mount(case.write(case.directory() + "/passwd", passwd + "fetcher:x:%d:%d::/nonexistent:/bin/false\n" % (uid, uid)), "/etc/passwd", "", 4096)
    try:
        if "fetcher" in node.processes():
            node.kill("fetcher", signal.SIGKILL)
        yield
    finally:
        helper.umount("/etc/passwd", 2)


def keys():
    return glob.glob(node.data + "/alloc/.fetch/*/key")


def test_no_key_is_left_by_a_kill():
    """While ssh, which has the key in a file, waits for a server that says nothing."""
    with known_user(), socket.create_server(("127.0.0.1", 0)) as mute:
        source = {"GetterSource": "git::ssh://git@127.0.0.1:%d/r.git" % mute.getsockname()[1], "GetterOptions": {"sshkey": base64.b64encode(SSH).decode()}}
        for victim in ("worker", "fetcher", "supervisor", "agent", "job"):
            node.register(job("key", [source]))
            case.until(keys, 60, "the key")
            if victim == "worker":
                os.kill(agent.children(node.processes()["fetcher"])[0], signal.SIGKILL)
            elif victim == "agent":
                node.kill_launcher()
                node.start()
                node.wait_ready()
            elif victim != "job":
                node.kill(victim, signal.SIGKILL)
            case.until(lambda: node.request("GET", "/v1/agent/self").status == 200, 60, "the agent")
            node.purge("key")
            case.until(lambda: os.listdir(node.data + "/alloc/.fetch") == [], 30, "the staging directory to be removed after a kill of the " + victim)
            # It is removed after a moment in the trash.
            case.until(lambda: traces.in_files(node.data, [SSH], [node.data + "/state"]) == [], 30, "no file to have the key after a kill of the " + victim)
            case.equal(traces.in_processes([SSH], "cmdline"), [], victim)


asked, go = [], threading.Event()
silent = socket.create_server(("127.0.0.1", 0))
FILES = {"/hidden": held(hidden), "/bucket/key": held(bucket),
         "/bucket/signed": lambda h: h.reply(h.headers["Authorization"].partition("Credential=")[2].encode()),
         "/moved/info/refs": lambda h: h.reply(b"", 302, [("Location", "/elsewhere?token=" + quoted(TOKEN))]),
         **{"/r.git" + path: held(behind_password(data)) for path, data in web.repository("of git\n").items()}}
with web.Server(FILES) as server, api.Node(agent.config_args(CONFIG + traces.AUDIT), env={"AWS_ACCESS_KEY_ID": "AKIDAGENT", "AWS_SECRET_ACCESS_KEY": text(OF_AGENT)}) as node:
    try:
        case.run(globals())
    finally:
        go.set()
        silent.close()
