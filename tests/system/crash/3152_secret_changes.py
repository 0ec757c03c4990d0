# SPDX-License-Identifier: Apache-2.0
# timeout: 900
# takes: 60
"""Processes die while secrets of a running task are replaced: variables of a template, which come with a restart, and tokens that are signed anew. The
task never has a part of them, and none is left anywhere when it has ended."""
import hashlib
import os
import secrets

from lib import case, jwt
from lib.crash_page import page
from lib.crash_sweep import ALL, SUPERVISOR, check_reached, sweep
from lib import crash

S = 10**9
# Points of the other processes that take part in a change.
OTHERS = [p for p in crash.POINTS if p.startswith(("REN", "EXE", "MNT", "FILE", "ROW_ALLOC", "ROW_RUN"))]
MUST = ("REN_BEFORE_RENDER", "REN_AFTER_RENDER", "EXE_TASK_BEFORE_RENAME", "EXEC_REAP_AFTER_CGROUP", "EXEC_AFTER_REPLY", "EXE_AFTER_EXEC", "ROW_ALLOC", "ROW_RUN",
        *SUPERVISOR)


def end_task(node, name, texts, kill=False):
    """Stops the job, whose alloc stays, and checks that nothing of its secrets does. kill: the supervisor dies then."""
    node.request("DELETE", "/v1/job/" + name)
    case.until(lambda: [a["ClientStatus"] for a in node.allocs(name)] == ["complete"], 30, "the end of the task")
    case.until(lambda: crash.secrets(node) == [], 30, "the secrets to be unmounted")
    if kill:
        node.kill("supervisor")
    last = []

    def forgotten():
        last[:] = crash.holders(node, texts)
        return not last
    try:
        case.until(forgotten, 10, "no file to have a secret")
    except AssertionError as e:
        raise AssertionError("%s: %s" % (e, last)) from None
    case.equal([text for text in texts if text in node.log()], [], "secrets in the log")
    node.purge(name)
    crash.wait_nothing_left(node)
    case.equal(crash.unexplained(node), [], "objects without a row")


VARIABLES = "{{ with nomadVar \"nomad/jobs/env\" }}SUM={{ .sum }}\nTEXT={{ .text }}\n{{ end }}"
# Each start checks its variables, and then the file again and again.
USE = '[ "$(printf %s "$TEXT" | md5sum)" = "$SUM  -" ] || echo variables >>$NOMAD_ALLOC_DIR/data/half; echo $SUM >$NOMAD_ALLOC_DIR/data/.seen; ' \
      'mv $NOMAD_ALLOC_DIR/data/.seen $NOMAD_ALLOC_DIR/data/seen; while :; do (. $NOMAD_SECRETS_DIR/env; [ "$(printf %s "$TEXT" | md5sum)" = "$SUM  -" ]) || ' \
      'echo file >>$NOMAD_ALLOC_DIR/data/half; sleep 0.05; done'


def put(node):
    """Writes other variables. Returns the secret of them, and the sum that the task shows."""
    word = secrets.token_hex(16)
    items = {"text": word * 500, "sum": hashlib.md5((word * 500).encode()).hexdigest()}
    case.until(lambda: node.request("PUT", "/v1/var/nomad/jobs/env", {"Path": "nomad/jobs/env", "Items": items}).status == 200, 20, "the variables to be written")
    return word, items["sum"]


def seen(node, name, wanted):
    def so():
        node.revive()
        return [a for a in node.allocs(name) if crash.alloc_data(node, a["ID"], "seen") == [wanted]]
    alloc = case.until(so, 30, "the task to see " + wanted)[0]
    case.equal(crash.alloc_data(node, alloc["ID"], "half"), [], "parts that the task saw")


def test_variables_of_a_template():
    template = {"EmbeddedTmpl": VARIABLES, "DestPath": "secrets/env", "Envvars": True, "ChangeMode": "restart", "Splay": 0, "Wait": {"Min": 0, "Max": 0}}
    with crash.Node(env=page.env) as node:
        def cycle(disturbed):
            first, first_sum = put(node)
            node.register(crash.job("env", driver="exec", then=USE, Templates=[template]))
            seen(node, "env", first_sum)
            with disturbed():
                second, second_sum = put(node)
                seen(node, "env", second_sum)
            case.equal(crash.conflicts(node), [], "tasks that ran twice at a time")
            end_task(node, "env", [first, second])
        sweep("variables", cycle, SUPERVISOR, 6)
        sweep("variables", cycle, OTHERS, 1)
    check_reached(MUST)


# A task that is restarted has the same token as a variable and in its file; one that gets a signal reads its file then, and all the time.
RESTARTED = 'echo $NOMAD_TOKEN_r $(cat $NOMAD_SECRETS_DIR/nomad_r.jwt) >>$NOMAD_ALLOC_DIR/data/r; exec sleep 100000'
SIGNALED = 'read_it() { new=$(cat $NOMAD_SECRETS_DIR/nomad_s.jwt); [ "$new" = "$old" ] || echo $new >>$NOMAD_ALLOC_DIR/data/s; old=$new; }; ' \
           'trap "echo hup >>$NOMAD_ALLOC_DIR/data/hup" HUP; while :; do read_it; sleep 0.02; done'


def test_tokens_that_are_renewed():
    def task(name, script, **identity):
        made = crash.job("tokens", then=script, Identities=[{"Name": name, "File": True, "TTL": 2 * S, **identity}])
        return dict(made["Job"]["TaskGroups"][0]["Tasks"][0], Name=name, Config={"command": "/bin/sh", "args": ["-c", script]})
    made = crash.job("tokens")
    made["Job"]["TaskGroups"][0]["Tasks"] = [task("r", RESTARTED, Env=True, ChangeMode="restart"), task("s", SIGNALED, ChangeMode="signal", ChangeSignal="SIGHUP")]
    checked = set()
    with crash.Node(env=page.env) as node:
        node.register(made)
        alloc = node.wait_running("tokens", 1, 30)[0]["ID"]

        def tokens(name):
            return crash.alloc_data(node, alloc, name)

        def check():
            """Verifies the tokens that were not there before."""
            pairs = tokens("r")
            case.equal(pairs[::2], pairs[1::2], "variables and files of the restarted task")
            for token in sorted({*pairs, *tokens("s")} - checked):
                case.equal(jwt.verify(node, token), True, "the signature of a token")
                checked.add(token)
            for name in ("r", "s"):
                found = os.listdir("%s/alloc/%s/%s/secrets" % (node.data, alloc, name))
                case.equal(sorted(found), ["api.sock", "nomad_%s.jwt" % name], "the secrets directory of a running task")

        def cycle(disturbed):
            before = len(tokens("r")), len(tokens("s")), len(tokens("hup"))

            def renewed():
                node.revive()
                return len(tokens("r")) > before[0] and len(tokens("s")) > before[1] and len(tokens("hup")) > before[2]
            with disturbed():
                case.until(renewed, 30, "both tasks to have new tokens")
            case.until(lambda: len(tokens("r")) % 2 == 0, 10, "the whole line")
            check()
        sweep("tokens", cycle, SUPERVISOR, 4)
        sweep("tokens", cycle, OTHERS if ALL else [p for p in MUST if p in OTHERS], 1)
        for name in ("r", "s"):
            os.unlink("%s/alloc/%s/alloc/data/%s" % (node.data, alloc, name))
        end_task(node, "tokens", [token.split(".")[2] for token in checked], kill=True)


case.run(globals())
