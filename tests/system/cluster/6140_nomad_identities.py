#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 60
"""Identity tokens that servers sign for tasks: as variables and files, renewed while tasks run, and with servers that refuse, send wrong
answers or are unreachable."""
import base64
import hashlib
import json
import os
import signal
import time

from lib import case, crash, traces
from lib.cluster import displays, events, job, node_of, processes_of, servers as cluster, task_of

S = 10**9
SECONDS = 30  # for operations that take milliseconds on an idle machine
AUDIENCE = {"Audience": ["vault.example"]}
# Prints each new token.
FOLLOW = """
trap 'echo signal $(cat %s)' HUP
while :; do new=$(cat %s); [ "$new" = "$old" ] || echo token $new; old=$new; sleep 0.05; done
"""


def follow(path):
    return FOLLOW % (path, path)


def identity(name, **more):
    return {"Name": name, **AUDIENCE, **more}


def claims(token):
    part = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


def log_of(node, alloc, task="t"):
    """Returns its lines. The last may be incomplete while it is being written."""
    path = "%s/logs/%s/%s.stdout.0" % (node.data, alloc, task)
    if not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8") as f:
        text = f.read()
    return text[:text.rfind("\n") + 1]


def tokens_of(node, alloc, task="t"):
    return [line.split()[1] for line in log_of(node, alloc, task).splitlines() if line.startswith("token ")]


def told(servers, alloc, text):
    """Returns whether an event has this text. There are no events before the alloc has begun."""
    found = servers.alloc(alloc)
    return found["TaskStates"] and text in " ".join(displays(found))


def signings(servers, after=0):
    return servers.calls("Alloc.SignIdentities", after)


def number(text):
    return int.from_bytes(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), "big")


def verify(token, key):
    """Returns whether the key made the token's RS256 signature."""
    text, _, signature = token.rpartition(".")
    n = number(key["n"])
    padded = pow(number(signature), number(key["e"]), n).to_bytes((n.bit_length() + 7) // 8, "big")
    return padded.startswith(b"\0\1\xff") and padded.endswith(hashlib.sha256(text.encode()).digest())


def test_the_servers_public_keys():
    with cluster() as servers, node_of(servers) as node:
        me = servers.wait_node()["ID"]
        alloc = servers.run_job(job("keys", "/bin/sh", ["-c", "echo token $NOMAD_TOKEN; exec sleep 1000"], Identity={"Env": True}), me)[0]
        token = case.until(lambda: tokens_of(node, alloc), SECONDS, "the token")[0]
        key, = node.ask("/.well-known/jwks.json")["keys"]
        case.equal((key["kty"], key["alg"], key["use"], key["kid"]), ("RSA", "RS256", "sig", head(token)["kid"]))
        case.equal((verify(token, key), verify(token[:-20] + token[-19:] + "A", key)), (True, False))
        node.refused(404, "OIDC Discovery endpoint disabled", "GET", "/.well-known/openid-configuration")
        servers.settings(oidc_issuer="https://nomad.example")
        case.equal(node.ask("/.well-known/openid-configuration"), {
            "issuer": "https://nomad.example", "jwks_uri": "https://nomad.example/.well-known/jwks.json",
            "id_token_signing_alg_values_supported": ["RS256", "EdDSA"], "response_types_supported": ["code"], "subject_types_supported": ["public"]})
        servers.stop_server(0)
        case.until(lambda: node.request("GET", "/.well-known/jwks.json").status == 503, SECONDS, "the keys to be unknown without servers")


def head(token):
    part = token.split(".")[0]
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


def test_tokens_are_variables_and_files():
    script = "printenv NOMAD_TOKEN NOMAD_TOKEN_my_id; cd $NOMAD_SECRETS_DIR; cat nomad_my_id.jwt; echo; cat other; echo; " \
             "cat nomad_token; echo; stat -c %a:%u * . | sort -u | tr '\\n' ' '; id -u"
    with cluster() as servers, node_of(servers) as node:
        me = servers.wait_node()["ID"]
        for driver, user in (("raw_exec", "root"), ("exec", "nobody")):
            made = job("named" + driver, "/bin/sh", ["-c", script], driver=driver, User="" if user == "root" else user,
                       Identity={"Env": True, "File": True},
                       Identities=[identity("my_id", Env=True, File=True, TTL=3600 * S), identity("unused"),
                                   identity("b", File=True, Filepath="/secrets/./other")])
            alloc = servers.run_job(made, me)[0]
            servers.wait_alloc(alloc, ["complete", "failed"])
            case.until(lambda a=alloc: log_of(node, a).count("\n") == 6, SECONDS, "the output of the task: " + log_of(node, alloc))
            default, env, named, other, again, modes = log_of(node, alloc).splitlines()
            case.equal((default, env), (again, named), driver)
            uid = "0" if user == "root" else "65534"
            case.equal(modes, "600:%s 700:%s %s" % (uid, uid, uid), "modes and owners by " + driver)
            subject = "global:default:named%s:g:t:" % driver
            case.equal([(claims(t)["sub"], claims(t)["aud"], "exp" in claims(t)) for t in (default, env, other)],
                       [(subject + "default", "nomadproject.io", False), (subject + "my_id", "vault.example", True),
                        (subject + "b", "vault.example", False)])
            asked = [i["IdentityName"] for c in signings(servers) for i in c["args"]["Identities"] if i["AllocID"] == alloc]
            case.equal(sorted(asked), ["b", "my_id"], "requests for tokens: one, and only for identities that are used")


def test_tokens_are_renewed_while_a_task_runs():
    with cluster() as servers, node_of(servers) as node:
        me = servers.wait_node()["ID"]
        allocs = []
        for driver, path in (("raw_exec", ""), ("exec", ""), ("raw_exec", "local/a"), ("exec", "/local/a")):
            where = "$NOMAD_TASK_DIR/a" if path else "$NOMAD_SECRETS_DIR/nomad_a.jwt"
            made = job("renew%s%d" % (driver, len(path)), "/bin/sh", ["-c", follow(where)], driver=driver,
                       Identities=[identity("a", File=True, Filepath=path, TTL=4 * S, ChangeMode="noop")])
            allocs.append((driver, servers.run_job(made, me)[0]))
        for driver, alloc in allocs:
            servers.wait_alloc(alloc, ["running"])
            pid = case.until(lambda a=alloc: processes_of(a), 60, "the processes of the alloc")
            case.until(lambda a=alloc: len(tokens_of(node, a)) >= 3, 60, "two renewals by " + driver)
            found = [claims(t) for t in tokens_of(node, alloc)]
            case.equal(len({c["jti"] for c in found}), len(found), "whether the tokens are new")
            case.equal([1 for old, new in zip(found, found[1:]) if new["iat"] - old["iat"] < 1], [], "whether they are renewed before half of their lifetime")
            case.equal(set(processes_of(alloc)) >= {min(pid)}, True, "processes of the task")
            case.equal(events(servers.alloc(alloc)), ["Received", "Task Setup", "Started"])
            servers.stop_alloc(alloc)
            servers.wait_alloc(alloc, ["complete"])


def test_tokens_are_renewed_during_the_shutdown_delay():
    """Tokens are renewed during the shutdown_delay too."""
    with cluster() as servers, node_of(servers) as node:
        me = servers.wait_node()["ID"]
        made = job("delay", "/bin/sh", ["-c", follow("$NOMAD_SECRETS_DIR/nomad_a.jwt")], ShutdownDelay=300 * S,
                   Identities=[identity("a", File=True, TTL=4 * S)])
        alloc = servers.run_job(made, me)[0]
        servers.wait_alloc(alloc, ["running"])
        case.until(lambda: tokens_of(node, alloc), SECONDS, "the task to print its token")
        pid = min(processes_of(alloc))
        servers.stop_alloc(alloc)
        case.until(lambda: "Waiting for shutdown delay" in events(servers.alloc(alloc)), SECONDS, "the delay to begin")
        seen = len(tokens_of(node, alloc))
        case.until(lambda: len(tokens_of(node, alloc)) >= seen + 2, 60, "two renewals within the delay")
        case.equal(pid in processes_of(alloc), True, "processes of the task")
        os.kill(pid, signal.SIGKILL)
        servers.wait_alloc(alloc, ["complete"])


def test_expired_tokens_are_renewed_when_a_task_is_restarted():
    """The task had ended so long ago that its tokens have expired."""
    script = "cd $NOMAD_ALLOC_DIR; if [ -e again ]; then %s; fi; echo token $(cat $NOMAD_SECRETS_DIR/nomad_a.jwt); touch again"
    with cluster() as servers, node_of(servers) as node:
        me = servers.wait_node()["ID"]
        made = job("anew")
        tasks = made["TaskGroups"][0]["Tasks"]
        tasks.append(job("anew", "/bin/sh", ["-c", script % follow("$NOMAD_SECRETS_DIR/nomad_a.jwt").strip()],
                         Identities=[identity("a", File=True, TTL=4 * S)])["TaskGroups"][0]["Tasks"][0])
        tasks[-1].update({"Name": "pre", "Lifecycle": {"Hook": "prestart"}})
        alloc = servers.run_job(made, me)[0]
        case.until(lambda: (servers.alloc(alloc)["TaskStates"] or {}).get("t", {}).get("State") == "running", SECONDS, "the main task to run")
        first = tokens_of(node, alloc, "pre")
        case.until(lambda: time.time() > claims(first[0])["exp"], SECONDS, "its token to expire")
        servers.call_node(me, "Allocations.Restart", {"AllocID": alloc, "TaskName": "", "AllTasks": True})
        case.until(lambda: set(tokens_of(node, alloc, "pre")) > set(first), 60, "a new token to be printed")


def test_a_new_token_signals_or_restarts_the_task():
    with cluster() as servers, node_of(servers) as node:
        me = servers.wait_node()["ID"]
        tasks = [identity("hup", File=True, TTL=4 * S, ChangeMode="signal", ChangeSignal="SIGHUP")]
        alloc = servers.run_job(job("signal", "/bin/sh", ["-c", follow("$NOMAD_SECRETS_DIR/nomad_hup.jwt")],
                                    Identities=tasks), me)[0]
        case.until(lambda: "\nsignal" in log_of(node, alloc), 60, "the signal to arrive")
        first = tokens_of(node, alloc)[0]
        heard = case.until(lambda: [line.split()[1] for line in log_of(node, alloc).splitlines() if line[:7] == "signal "],
                           SECONDS, "the token in the file at that time")
        case.equal(first in heard, False, "whether the file was replaced before the signal")
        case.until(lambda: told(servers, alloc, "Identity[hup]: new Identity token acquired"), SECONDS, "the event to be recorded")
        case.contains(events(servers.alloc(alloc)), "Signaling")
        servers.stop_alloc(alloc)
        again = servers.run_job(job("restart", "/bin/sh", ["-c", "echo token $NOMAD_TOKEN_re; exec sleep 1000"],
                                    Identities=[identity("re", Env=True, TTL=6 * S, ChangeMode="restart")]), me)[0]
        case.until(lambda: len(tokens_of(node, again)) >= 2, 60, "a restart with another token")
        found = tokens_of(node, again)
        case.equal(len(set(found)), len(found), "number of different tokens")
        case.until(lambda: told(servers, again, "Identity[re]: new token acquired"), SECONDS, "the event to be recorded")
        case.contains(events(servers.alloc(again)), "Restart Signaled")


def test_a_refused_token_fails_the_alloc_with_one_message():
    with cluster() as servers, node_of(servers) as node:
        me = servers.wait_node()["ID"]
        servers.settings(signs="refuses")
        alloc = servers.run_job(job(Identities=[identity("a", Env=True)]), me)[0]
        found = servers.wait_alloc(alloc, ["failed"])
        case.equal(events(found), ["Received", "Setup Failure"])
        case.contains(displays(found)[-1], 'pre-run hook "identity" failed: failed to fetch signed identities: '
                      "1/1 signing request was rejected: identity not found")
        case.equal(os.path.exists("%s/alloc/%s" % (node.data, alloc)), False, "directories of the alloc")


def test_requests_are_repeated_after_wrong_answers_and_errors():
    with cluster() as servers, node_of(servers) as node:
        me = servers.wait_node()["ID"]
        for kind, text in (("garbage", "returned an invalid token"), ("others", "signed an identity that was not requested"),
                           ("behind", "does not know the allocation yet")):
            servers.settings(signs=kind)
            alloc = servers.run_job(job(kind, Identities=[identity("a", Env=True)]), me)[0]
            node.wait_log(text, SECONDS)
            case.until(lambda a=alloc, t=text: told(servers, a, t), SECONDS, "the event to be recorded")
            servers.settings(signs=None)
            servers.wait_alloc(alloc, ["running"], SECONDS)
        fault = servers.fault("error", "Alloc.SignIdentities", text="no such luck")
        alloc = servers.run_job(job("error", Identities=[identity("a", Env=True)]), me)[0]
        case.until(lambda: told(servers, alloc, "no such luck"), SECONDS, "the event to be recorded")
        servers.clear(fault)
        servers.wait_alloc(alloc, ["running"], SECONDS)
        # If the clocks of server and node differ, the token is used, and renewed by the length of its lifetime.
        servers.settings(signs="expired")
        alloc = servers.run_job(job("expired", Identities=[identity("a", Env=True, TTL=3600 * S)]), me)[0]
        servers.wait_alloc(alloc, ["running"], SECONDS)
        node.wait_log("has expired already by this node's clock", SECONDS)


def test_an_alloc_that_waits_for_tokens_can_be_stopped():
    with cluster() as servers, node_of(servers):
        me = servers.wait_node()["ID"]
        servers.fault("silent", "Alloc.SignIdentities")
        known = servers.last_call()
        alloc = servers.run_job(job(Identities=[identity("a", Env=True)]), me)[0]
        case.until(lambda: [a for a in [servers.alloc(alloc)] if a["TaskStates"]], SECONDS, "the alloc to begin")
        servers.stop_alloc(alloc)
        servers.wait_alloc(alloc, ["complete"], SECONDS)
        servers.clear()
        case.equal(len(signings(servers, known)) <= 1, True, "number of requests")


def test_another_server_signs_when_one_disappears():
    with cluster(3) as servers, node_of(servers):
        me = servers.wait_node()["ID"]
        for when in ("vanish", "vanish_before"):
            servers.fault(when, "Alloc.SignIdentities", times=1, **({"after": 40} if when == "vanish" else {}))
            alloc = servers.run_job(job(when, Identities=[identity("a", Env=True)]), me)[0]
            servers.wait_alloc(alloc, ["running"], 40)


def test_tokens_outlive_the_agent_and_its_servers():
    with cluster() as servers, node_of(servers) as node:
        me = servers.wait_node()["ID"]
        script = "echo token $NOMAD_TOKEN_a $(cat $NOMAD_SECRETS_DIR/nomad_a.jwt); exec sleep 1000"
        made = job("kept", "/bin/sh", ["-c", script], Identities=[
            identity("a", Env=True, File=True, TTL=3600 * S, ChangeMode="restart")])
        made["TaskGroups"][0]["RestartPolicy"] = {"Attempts": 5, "Interval": 600 * S, "Delay": S // 10, "Mode": "fail"}
        alloc = servers.run_job(made, me)[0]
        servers.wait_alloc(alloc, ["running"])
        case.until(lambda: tokens_of(node, alloc), SECONDS, "the task to print its token")
        pid, known = task_of(alloc), servers.last_call()
        os.kill(node.processes()["supervisor"], signal.SIGKILL)
        servers.wait_call("Node.Register", known)
        case.equal(processes_of(alloc), pid, "processes of the task")
        servers.stop_server(0)
        case.until(lambda: "no server" in node.log(), SECONDS, "the link to be lost")
        os.kill(node.processes()["supervisor"], signal.SIGKILL)
        case.until(lambda: node.log().count("work comes from: nomad") == 3, SECONDS, "the supervisor to be back")
        os.kill(pid[0], signal.SIGKILL)
        case.until(lambda: len(tokens_of(node, alloc)) == 2, SECONDS, "the task to run again")
        words = [line for line in log_of(node, alloc).splitlines() if line.startswith("token")]
        case.equal(len(set(words)), 1, "the token in the variable and the file, which is the same")
        case.equal(len(set(words[0].split()[1:])), 1, "the token in the variable and the file, which is the same")
        servers.start_server(0)
        servers.wait_node()
        case.equal(len(signings(servers)), 1, "number of signed tokens")
        case.equal(len(processes_of(alloc)), 1, "number of processes")


def test_a_renewal_that_was_due_while_no_agent_ran_is_made_at_its_start():
    with cluster() as servers, node_of(servers) as node:
        me = servers.wait_node()["ID"]
        alloc = servers.run_job(job("left", "/bin/sh", ["-c", follow("$NOMAD_SECRETS_DIR/nomad_a.jwt")],
                                    Identities=[identity("a", File=True, TTL=6 * S)]), me)[0]
        servers.wait_alloc(alloc, ["running"])
        case.until(lambda: tokens_of(node, alloc), SECONDS, "the task to print its token")
        for _ in range(3):
            seen, known = len(tokens_of(node, alloc)), servers.last_call()
            servers.wait_call("Alloc.SignIdentities", known, 60)
            os.kill(node.wait_process("supervisor"), signal.SIGKILL)
            case.until(lambda n=seen: len(tokens_of(node, alloc)) > n, 60, "the file to be replaced")
        case.equal(len(processes_of(alloc)) >= 1, True, "processes of the task")


def test_a_token_is_visible_only_to_its_task():
    """Neither another task nor readers of the log or the API see it."""
    look = "cat %s/nomad_token %s/nomad_a.jwt 2>&1; cat /secrets/*; cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | " \
           "grep NOMAD_TOKEN; echo looked"
    with cluster() as servers, node_of(servers) as node:
        me = servers.wait_node()["ID"]
        made = job("secret", driver="exec", Identity={"Env": True, "File": True},
                   Identities=[identity("a", Env=True, File=True, TTL=4 * S)])
        alloc = servers.run_job(made, me)[0]
        servers.wait_alloc(alloc, ["running"])
        root = "/proc/%d/root" % next(r["task_pid"] for r in crash.records(node).values())
        secrets = root + "/secrets"
        marks = []
        for name in ("nomad_token", "nomad_a.jwt"):
            with open(secrets + "/" + name, encoding="ascii") as f:
                marks.append(f.read())
            case.equal(marks[-1][:3], "eyJ", name + " exists where the other task looks")
        for driver, user in (("exec", "nobody"), ("raw_exec", "daemon")):
            spy = job("spy" + driver, "/bin/sh", ["-c", look % (secrets, secrets)], driver=driver, User=user)
            spy["TaskGroups"][0]["Tasks"][0]["Name"] = "spy"
            other = servers.run_job(spy, me)[0]
            servers.wait_alloc(other, ["complete", "failed"])
            case.until(lambda a=other: "looked" in log_of(node, a, "spy"), SECONDS, "the output of the other task")
            words = log_of(node, other, "spy")
            case.equal([w for w in ("eyJ", "NOMAD_TOKEN") if w in words], [], driver + ": " + words)
        known = servers.last_call()
        servers.wait_call("Alloc.SignIdentities", known, 60)
        parts = [mark.split(".")[2].encode() for mark in marks]
        case.equal(traces.in_files(node.data, parts) + traces.in_processes(parts, "cmdline") + traces.in_processes(parts, "environ", traces.of_tasks()), [],
                   "files and processes with a token")
        shown = [node.log()] + [node.request("GET", path).text for path in (
            "/v1/allocations", "/v1/allocation/" + alloc, "/v1/job/secret", "/v1/node/%s/allocations" % me,
            "/v1/client/allocation/%s/stats" % alloc, "/v1/metrics")]
        for text in shown:
            case.equal("eyJ" in text, False, "tokens in " + text[:300])
        case.equal(os.stat(node.data + "/state").st_mode & 0o777, 0o700)


def test_a_file_that_leaves_the_tasks_directory_is_refused():
    with cluster() as servers, node_of(servers) as node:
        me = servers.wait_node()["ID"]
        for number, (path, text) in enumerate((
                ("../x", 'must not contain ".."'), ("secrets/../../x", 'must not contain ".."'),
                ("alloc/x", "must be local/NAME or secrets/NAME"), ("x", "must be local/NAME or secrets/NAME"),
                ("secrets/a/b", "must be local/NAME or secrets/NAME"))):
            made = job("path%d" % number, Identities=[identity("a", File=True, Filepath=path)])
            found = servers.wait_alloc(servers.run_job(made, me)[0], ["failed"])
            case.contains(displays(found)[-1], 'task "t": identity "a": filepath "%s" ' % path + text)
            case.equal(os.path.exists("%s/alloc/%s" % (node.data, found["ID"])), False, "directories of the alloc")


case.run(globals())
