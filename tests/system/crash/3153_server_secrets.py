# SPDX-License-Identifier: Apache-2.0
# timeout: 900
# takes: 60
"""Processes of a node of servers die while these sign the tokens of a task and send the variables of its template: at the start, when a variable changes,
and when a token is renewed. The task never has a part of them, the servers are asked again only for what has not arrived, and nothing secret is left
when the task has ended."""
import contextlib
import hashlib
import os
import secrets

from lib import case, cluster, jwt
from lib.crash_page import page
from lib.crash_sweep import ALL, SUPERVISOR, check_reached, counted, kill_at, spread, sweep
from lib import crash

S = 10**9
PATH = "nomad/jobs/far"
TEMPLATE = {"EmbeddedTmpl": "{{ with nomadVar \"%s\" }}SUM={{ .sum }}\nTEXT={{ .text }}\n{{ end }}" % PATH, "DestPath": "secrets/env", "Envvars": True,
            "ChangeMode": "restart", "Splay": 0, "Wait": {"Min": 0, "Max": 0}}
# Each start checks its variables and its token, shows both, and then checks the files again and again.
USE = 'wrong() { echo $1 >>$NOMAD_ALLOC_DIR/data/half; }; file() { cat $NOMAD_SECRETS_DIR/nomad_k.jwt; }; ' \
      '[ "$(printf %s "$TEXT" | md5sum)" = "$SUM  -" ] || wrong variables; [ "$NOMAD_TOKEN_k" = "$(file)" ] || wrong token; ' \
      'echo $SUM $NOMAD_TOKEN_k >$NOMAD_ALLOC_DIR/data/.seen; mv $NOMAD_ALLOC_DIR/data/.seen $NOMAD_ALLOC_DIR/data/seen; while :; do ' \
      '(. $NOMAD_SECRETS_DIR/env; [ "$(printf %s "$TEXT" | md5sum)" = "$SUM  -" ]) || wrong file; [ "$NOMAD_TOKEN_k" = "$(file)" ] || wrong token; sleep 0.05; done'
# Points of the other processes that take part, and those that `make check` tests.
OTHERS = [p for p in crash.POINTS if p.startswith(("REN", "EXE", "MNT", "FILE", "ROW_ALLOC", "ROW_RUN", "ROW_NOMAD_JOB", "ROW_ACKED"))]
MUST = ["REN_BEFORE_RENDER", "REN_AFTER_RENDER", "EXE_TASK_BEFORE_RENAME", "EXE_AFTER_EXEC", "ROW_ALLOC", "ROW_RUN"]


def put(servers):
    """Writes other variables. Returns the secret of them, and the sum that the task shows."""
    word = secrets.token_hex(16)
    items = {"text": word * 500, "sum": hashlib.md5((word * 500).encode()).hexdigest()}
    servers.put_variable(PATH, items)
    return word, items["sum"]


def seen(node, alloc, wanted):
    """Waits until the task shows this sum. Returns its token."""
    def so():
        node.revive()
        found = crash.alloc_data(node, alloc, "seen")
        return found[:1] == [wanted] and found[1]
    return case.until(so, 60, "the task to see " + wanted)


def end_task(servers, node, alloc, texts, shown):
    """Stops the task, and checks that nothing of its secrets is left, but for the file in which it has shown them, and the log of the database."""
    servers.stop_alloc(alloc)
    servers.wait_alloc(alloc, ["complete"], 60)
    os.unlink("%s/alloc/%s/alloc/data/%s" % (node.data, alloc, shown))
    case.until(lambda: crash.secrets(node) == [], 30, "the secrets to be unmounted")
    case.equal([path for path in crash.holders(node, texts) if not path.startswith(node.data + "/state/")], [], "files with secrets")
    servers.remove_alloc(alloc)
    crash.wait_nothing_left(node, 60)
    case.equal(crash.unexplained(node), [], "objects without a row")


def wait_forgotten(node, texts):
    """The log of the database is truncated soon after the end of a task."""
    case.until(lambda: crash.holders(node, texts) == [], 30, "no file to have a secret")
    case.equal([text for text in texts if text in node.log()], [], "secrets in the log")


def signed(servers, alloc, after):
    """Returns how many requests for tokens of the alloc the servers have answered."""
    return sum(any(i["AllocID"] == alloc for i in c["args"]["Identities"]) for c in servers.calls("Alloc.SignIdentities", after))


class Bed:
    def __init__(self, servers, node):
        self.servers, self.node, self.me, self.alloc, self.texts = servers, node, servers.wait_node()["ID"], None, []

    def begin(self):
        """Runs a task whose variables are there. Returns their secret and sum, and the last call before."""
        word, shown = put(self.servers)
        before = self.servers.last_call()
        made = crash.job("far", driver="exec", then=USE, Templates=[TEMPLATE], Identities=[{"Name": "k", "Env": True, "File": True, "TTL": 3600 * S}],
                         KillTimeout=S // 10)  # the shell is pid 1, which ignores the first signal
        self.alloc = self.servers.run_job(made["Job"], self.me)[0]
        return word, shown, before

    def finish(self, words, token, before, signings, reads):
        """signings, reads: how often the servers may have answered."""
        case.equal(jwt.parts(token)[1]["nomad_allocation_id"], self.alloc, "the alloc of the token")
        case.equal(crash.alloc_data(self.node, self.alloc, "half"), [], "parts that the task saw")
        case.equal(crash.conflicts(self.node), [], "tasks that ran twice at a time")
        found = signed(self.servers, self.alloc, before), len(self.servers.calls("Variables.Read", before))
        case.equal((found[0] <= signings, found[1] <= reads), (True, True), "requests for tokens and variables: %s" % (found,))
        secret = [*words, token.split(".")[2]]
        self.texts += secret
        end_task(self.servers, self.node, self.alloc, secret, "seen")

    def start(self, disturbed):
        """A start. A process that dies costs one more of each request at most, because its answer may be lost with it."""
        with disturbed() as dies:
            word, shown, before = self.begin()
            token = seen(self.node, self.alloc, shown)
        self.finish([word], token, before, 1 + dies, 1 + dies)

    def change(self, disturbed):
        """A variable changes. No token is signed again, whoever dies. A supervisor that starts again reads the variable again."""
        word, shown, before = self.begin()
        token = seen(self.node, self.alloc, shown)
        with disturbed() as dies:
            other, shown = put(self.servers)
            case.equal(seen(self.node, self.alloc, shown), token, "the token of the restarted task")
        self.finish([word, other], token, before, 1, 2 + 2 * dies)


@contextlib.contextmanager
def beds():
    with cluster.servers() as servers, cluster.node_of(servers, kind=crash.Node, env=page.env) as node:
        made = Bed(servers, node)
        yield made
        wait_forgotten(node, made.texts)


def passes_of(cycle):
    found = {}
    cycle(lambda: counted(found))
    return found


def test_at_the_start():
    with beds() as made:
        sweep("start", made.start, SUPERVISOR, 3)
        sweep("start", made.start, crash.OF_SERVERS, 4)
        sweep("start", made.start, OTHERS if ALL else MUST, 1)


def test_the_supervisor_dies_while_a_call_is_on_its_way():
    """A call of the start is not sent yet, or is answered: the supervisor dies before it can know that."""
    with beds() as made:
        node = made.node
        passes = passes_of(made.start)
        for point in crash.OF_SERVERS:
            for skip in spread(passes[point], 2):
                begun = []
                kill_at(node, point, "supervisor", lambda: begun.extend(made.begin()), skip)
                word, shown, before = begun
                token = seen(node, made.alloc, shown)
                made.finish([word], token, before, 2, 2)


def test_when_a_variable_changes():
    with beds() as made:
        sweep("change", made.change, SUPERVISOR, 3)
        sweep("change", made.change, crash.OF_SERVERS, 2)
        sweep("change", made.change, OTHERS if ALL else MUST, 1)


# A task that reads its file all the time: each token that it shows is a whole one.
FOLLOW = 'while :; do new=$(cat $NOMAD_SECRETS_DIR/nomad_s.jwt); [ "$new" = "$old" ] || echo $new >>$NOMAD_ALLOC_DIR/data/s; old=$new; sleep 0.02; done'


def test_when_a_token_is_renewed():
    with beds() as bed:
        servers, node = bed.servers, bed.node
        made = crash.job("renewed", then=FOLLOW, Identities=[{"Name": "s", "File": True, "TTL": 4 * S}])
        alloc = servers.run_job(made["Job"], bed.me)[0]

        def tokens():
            return crash.alloc_data(node, alloc, "s")

        def cycle(disturbed):
            before = len(tokens())

            def renewed():
                node.revive()
                return len(tokens()) > before
            with disturbed():
                case.until(renewed, 60, "a new token")
        case.until(tokens, 60, "the first token")
        sweep("renewal", cycle, SUPERVISOR, 2)
        sweep("renewal", cycle, crash.OF_SERVERS, 2)
        sweep("renewal", cycle, OTHERS if ALL else ["EXE_TASK_BEFORE_RENAME"], 1)
        found = tokens()
        case.equal([t for t in found if jwt.parts(t)[1]["nomad_allocation_id"] != alloc], [], "tokens of others")
        bed.texts += [t.split(".")[2] for t in found]
        end_task(servers, node, alloc, bed.texts, "s")


def test_each_point_was_reached():
    check_reached([*MUST, *SUPERVISOR, *crash.OF_SERVERS])


case.run(globals())
