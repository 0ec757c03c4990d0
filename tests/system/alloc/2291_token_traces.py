# SPDX-License-Identifier: Apache-2.0
# takes: 60
"""Tokens of tasks, tokens of ACLs and variables are where they belong, and nowhere else: no file, log, entry of the journal, event, answer, argument or
environment has them while tasks run, after a restart, after errors and afterwards. state.db has the tokens of tasks encrypted; rows of an earlier version are
encrypted at the next start."""
import base64
import contextlib
import json
import os
import sqlite3
import uuid

from lib import agent, api, case, journal, state, task_api, traces

HOUR = 3600 * 10**9
IDENTITIES = {"Identity": {"Env": True, "File": True},
              "Identities": [{"Name": "a", "Env": True, "File": True, "TTL": HOUR}, {"Name": "b", "File": True, "Filepath": "secrets/b"}]}
FILES = ("nomad_token", "nomad_a.jwt", "b")


def register(name, **more):
    tasks = [api.task(driver, "/bin/sleep", ["1000"], driver, **IDENTITIES) for driver in ("raw_exec", "exec")]
    node.register(api.job(name, group={"Tasks": tasks, **more}))
    return node.wait_running(name)[0]["ID"]


def secrets(alloc):
    """Returns the directories of secrets of the alloc's tasks, as their processes see them, by the task's name."""
    return {words["NOMAD_TASK_NAME"]: "/proc/%d/root%s" % (pid, words["NOMAD_SECRETS_DIR"])
            for pid, words in traces.of_tasks().items() if words["NOMAD_ALLOC_ID"] == alloc}


def own(alloc, task="raw_exec"):
    """Returns the directory of secrets of a raw_exec task: it is the only one below the agent's data that others than the task see."""
    return ["%s/alloc/%s/%s/secrets" % (node.data, alloc, task)]


def tokens(alloc, other_than=()):
    """Returns the tokens in the files of the tasks raw_exec and exec, when they run, in processes that are none of these."""
    def found():
        at = secrets(alloc)
        if set(at) != {"raw_exec", "exec"} or set(at.values()) & set(other_than):
            return None
        texts = [traces.read("%s/%s" % (at[task], name)) for task in ("raw_exec", "exec") for name in FILES]
        return texts if all(texts) else None
    return case.until(found, 30, "the tokens of " + alloc)


def check_nowhere(marks, job, but=(), when=""):
    parts = [mark.split(b".")[-1] for mark in marks]  # of a token its signature
    found = traces.find(node, parts, job, but=but, journal=logged) + traces.in_processes(parts, "environ", traces.of_tasks())
    case.equal(found, [], when)


@contextlib.contextmanager
def stopped():
    """Stops the whole agent, but no task, and starts it again."""
    node.kill_launcher()
    yield
    node.start()
    node.wait_ready()


def restart(alloc):
    """Restarts the tasks; returns the tokens with which they start."""
    before = secrets(alloc).values()
    node.do("POST", "/v1/client/allocation/%s/restart" % alloc, {"AllTasks": True})
    return tokens(alloc, before)


def test_tokens_of_tasks():
    alloc = register("tokens")
    marks = tokens(alloc)
    case.equal(len(set(marks)), 6, "different tokens")
    case.equal((len(traces.in_files(node.data, marks)) >= len(FILES), len(traces.in_processes(marks, "environ")) >= 4), (True, True), "whether they can be found at all")
    check_nowhere(marks, "tokens", own(alloc), "while it runs")
    for task in ("raw_exec", "exec"):
        case.equal(node.drover("alloc", "exec", "-task", task, alloc, "printenv", "NOMAD_TOKEN", env={"DROVER_TOKEN": node.token}).out.strip().encode() in marks, True)
    check_nowhere(marks, "tokens", own(alloc), "after a session")
    node.replace_supervisor()
    check_nowhere(marks, "tokens", own(alloc), "after a restart of the supervisor")
    case.equal(restart(alloc), marks, "the tokens of a second start")
    check_nowhere(marks, "tokens", own(alloc), "after a restart of the tasks")
    node.do("DELETE", "/v1/job/tokens")
    case.until(lambda: node.ask("/v1/allocation/" + alloc)["ClientStatus"] == "complete", 30, "the end")
    case.until(lambda: traces.in_files(own(alloc)[0], marks) == [], 20, "the secrets of the ended task to be removed")
    check_nowhere(marks, "tokens", (), "after the tasks")
    node.purge("tokens")
    case.equal(traces.in_files(node.data, [mark.split(b".")[-1] for mark in marks]), [], "files after the job")


def test_renewed_tokens():
    node.register(api.job("renewed", Identities=[{"Name": "a", "Env": True, "File": True, "TTL": 4 * 10**9, "ChangeMode": "noop"}]))
    alloc = node.wait_running("renewed")[0]["ID"]
    marks = set()

    def renewed():
        marks.add(traces.read(own(alloc, "t")[0] + "/nomad_a.jwt"))
        marks.discard(b"")
        return len(marks) >= 3
    case.until(renewed, 60, "renewed tokens")
    check_nowhere(marks, "renewed", own(alloc, "t"))
    node.purge("renewed")


def test_rows_of_an_earlier_version_are_encrypted():
    """Schema 10 had the default tokens in the column json, and those of other identities in the column client."""
    alloc = register("earlier")
    marks = tokens(alloc)
    (sealed, text, client), = state.query(node, "SELECT tokens, json, client FROM alloc WHERE id = ?", [uuid.UUID(alloc).bytes])
    words = state.unseal(node, "default tokens of " + alloc, sealed).decode().split("\0")[:-1]
    default, record = dict(zip(words[::2], words[1::2])), json.loads(client)
    case.equal([default[task].encode() for task in ("raw_exec", "exec")], [marks[0], marks[3]])
    for one in record["identities"]:
        about = "token %s of %s/%s" % (one["name"], alloc, one["task"])
        one["token"] = state.unseal(node, about, base64.b64decode(one.pop("sealed"))).decode()
    case.equal(sorted(one["token"].encode() for one in record["identities"]), sorted(marks[1:3] + marks[4:]))
    tasks = traces.of_tasks()
    with stopped():
        with contextlib.closing(sqlite3.connect(node.data + "/state/state.db", isolation_level=None)) as db:
            db.execute("UPDATE alloc SET json = ?, client = ? WHERE id = ?",
                       [json.dumps(dict(json.loads(text), SignedIdentities=default)), json.dumps(record), uuid.UUID(alloc).bytes])
            db.execute("ALTER TABLE alloc DROP COLUMN tokens")
            db.execute("PRAGMA user_version = 10")
        case.equal(traces.in_files(node.data + "/state", marks) != [], True, "tokens that are not encrypted")
    case.until(lambda: traces.in_files(node.data + "/state", marks) == [], 60, "no token in state.db and its log")
    check_nowhere(marks, "earlier", own(alloc))
    case.equal(traces.of_tasks(), tasks, "the tasks")
    case.equal(restart(alloc), marks, "the tokens of a second start")
    node.purge("earlier")


def test_without_the_key_tasks_continue_and_get_default_tokens_when_it_is_back():
    alloc = register("lost")
    marks, key, tasks = tokens(alloc), node.data + "/state/seal.key", traces.of_tasks()
    with stopped():
        os.rename(key, key + ".kept")
    text = "allocation %s: its tasks start without their default tokens, which cannot be read" % alloc[:8]
    case.until(lambda: text.encode() in logged.log(), 10, text)
    case.equal(traces.of_tasks(), tasks, "the tasks")
    with stopped():
        os.rename(key + ".kept", key)
    case.equal(traces.of_tasks(), tasks, "the tasks")
    found = restart(alloc)
    case.equal((found[0], found[3]), (marks[0], marks[3]), "the default tokens of a second start")
    node.purge("lost")


def test_variables():
    marks = [uuid.uuid4().hex.encode() for _ in range(4)]
    texts = [mark.decode() for mark in marks]
    register("variables")
    node.do("PUT", "/v1/var/own/x", {"Items": {"k": texts[0], texts[1]: "v"}})
    # Writes that fail: a conflict, a namespace, a path, a variable that is too large, a body that is no JSON, and one whose right is missing.
    for status, path, body in ((409, "own/x?cas=1", {"Items": {"k": texts[2]}}), (400, "own/x?namespace=none", {"Items": {"k": texts[2]}}),
                               (400, "own/x.y", {"Items": {"k": texts[2]}}), (400, "own/y", {"Items": {"k": texts[2] + "x" * 65536}}),
                               (400, "own/y", {"Items": {"k": [texts[2]]}}), (400, "own/y", b'{"Items": {"k": "%s' % marks[2])):
        answer = node.request("PUT", "/v1/var/" + path, body)
        case.equal((answer.status, texts[2] in answer.text), (status, False), path + ": " + answer.text)
    case.equal(node.request("PUT", "/v1/var/own/y", {"Items": {"k": texts[2]}}, headers={"X-Nomad-Token": ""}).status, 403)
    node.drover("var", "put", "-in", "json", "own/z", "-", env={"DROVER_TOKEN": node.token}, stdin=json.dumps({"Items": {"k": texts[3]}}).encode())
    case.equal(node.ask("/v1/var/own/z")["Items"], {"k": texts[3]})
    check_nowhere(marks, "variables", (), "while they are there")
    node.replace_supervisor()
    case.equal(node.ask("/v1/var/own/x")["Items"], {"k": texts[0], texts[1]: "v"})
    for path in ("own/x", "own/z"):
        case.equal(node.request("DELETE", "/v1/var/" + path).status, 204)
    check_nowhere(marks, "variables", (), "when they are deleted")
    node.purge("variables")


def status_with(header):
    with node.connect() as s:
        s.settimeout(case.LEAST_S)
        s.sendall(("GET /v1/jobs HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%s\r\n\r\n" % header).encode())
        return int(s.recv(4096).split()[1])


def test_tokens_of_acls():
    register("acls")
    made = node.do("POST", "/v1/acl/token", {"Name": "reader", "Type": "management"})
    wrong = str(uuid.uuid4())
    for secret, status in ((made["SecretID"], 200), (wrong, 403)):
        for header in ("X-Nomad-Token: " + secret, "Authorization: Bearer " + secret):
            case.equal(status_with(header), status)
    node.drover("job", "status", env={"DROVER_TOKEN": made["SecretID"]})
    node.drover("job", "status", env={"DROVER_TOKEN": wrong}, code=1)
    marks = [text.encode() for text in (node.token, made["SecretID"], wrong)]
    check_nowhere(marks, "acls", (), "while they are valid")
    node.replace_supervisor()
    case.equal(node.request("DELETE", "/v1/acl/token/" + made["AccessorID"]).status, 200)
    case.equal(node.request("GET", "/v1/jobs", headers={"X-Nomad-Token": made["SecretID"]}).status, 403)
    check_nowhere(marks, "acls", (), "when one was deleted")
    node.purge("acls")


def test_a_token_at_the_socket_of_a_task():
    node.register(task_api.job("door", script="exec sleep 1000"))
    alloc = node.wait_running("door")[0]
    door = task_api.Door(node, alloc)
    token, = [words["NOMAD_TOKEN"] for words in traces.of_tasks().values() if words["NOMAD_ALLOC_ID"] == alloc["ID"]]
    for secret, status in ((token, 200), (token[:-8] + "AAAAAAAA", 403)):
        for bearer in (False, True):
            case.equal(door.status("GET", "/v1/services", token=secret, bearer=bearer), status)
    case.equal(door.status("GET", "/v1/var/nomad/jobs/other", token=token), 403)
    check_nowhere([token.encode(), (token[:-8] + "AAAAAAAA").encode()], "door", own(alloc["ID"], "t"))
    node.purge("door")


class Journaled(api.Node):
    """Its supervisor logs to the journal."""

    def start(self, *args, **kwargs):
        self.env.update(journal.stream(self.log_path))
        return super().start(*args, **kwargs)


with journal.Journal() as logged, Journaled(args=agent.config_args("acl { enabled = true }\n" + traces.AUDIT)) as node:
    case.until(lambda: b"MESSAGE=supervisor: " in logged.log(), 10, "entries of the journal")
    node.token = node.do("POST", "/v1/acl/bootstrap")["SecretID"]
    case.run(globals())
