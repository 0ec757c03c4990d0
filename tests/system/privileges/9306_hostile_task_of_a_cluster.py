# SPDX-License-Identifier: Apache-2.0
# takes: 25
"""A hostile task on a node of a cluster: by its socket `api.sock` it reads and changes nothing of another job, the node or the cluster, with its own token or
with those that it has stolen or made. 9305 is about a task of an agent that works alone, and 6142 about the look-ups of one client."""
import concurrent.futures
import json
import time
import uuid

from lib import case, task_api, traces
from lib.cluster import job, node_of, servers as cluster

BOSS = str(uuid.uuid4())
SECRET, HIDDEN = uuid.uuid4().hex, uuid.uuid4().hex
# Paths about the node that the identity of a task may read.
OPEN = {"/v1/agent/health"}


def start(name):
    """Returns the alloc, the socket of its task, and the task's token."""
    made = job(name, "/bin/sleep", ["1000"], Identity={"Name": "default", "Env": True, "Audience": ["nomadproject.io"]}, Env={"HIDDEN": HIDDEN})
    alloc = servers.run_job(made, me)[0]
    servers.wait_alloc(alloc, ["running"])
    token = case.until(lambda: [w["NOMAD_TOKEN"] for w in traces.of_tasks().values() if w["NOMAD_ALLOC_ID"] == alloc and "NOMAD_TOKEN" in w], 30, "the task")[0]
    return alloc, task_api.Door(node, {"ID": alloc}), token


def requests(*methods):
    """Returns the (method, path) of what this node answers, for objects of the other job; all else has its rights from servers."""
    return list(task_api.requests(methods, friend, me, "friend", here=True))


def check_friend():
    case.equal((friend_door.status("GET", "/v1/agent/health", token=friend_token), node.request("GET", "/v1/agent/self").status), (200, 200))
    answer = friend_door.request("GET", "/v1/var/nomad/jobs/friend", token=friend_token)
    case.equal((answer.status, answer.json["Items"]), (200, {"k": SECRET}))
    case.equal(servers.alloc(friend)["ClientStatus"], "running")


def wait_accepted():
    case.until(lambda: door.status("GET", "/v1/agent/health", token=token) == 200, case.LEAST_S, "the hostile task's token to be accepted again")


def test_its_own_token_reads_nothing_of_others():
    """What servers answer is asked with the token of the task."""
    marks = [SECRET.encode(), HIDDEN.encode(), friend_token.split(".")[2].encode(), BOSS.encode(), servers.node(me)["SecretID"].encode()]
    found, before = [], servers.last_call()
    for path in ("/v1/var/nomad/jobs/friend", "/v1/var/nomad/jobs/hostile/../friend", "/v1/vars?prefix=nomad/jobs/friend", "/v1/job/friend",
                 "/v1/allocation/" + friend, "/v1/vars?namespace=*"):
        found += traces.found_in(path, door.request("GET", path, token=token).body, [SECRET.encode()])
    for method in ("Variables.Read", "Variables.List", "Job.GetJob", "Alloc.GetAlloc"):
        case.equal({c["args"]["AuthToken"] for c in servers.calls(method, before)} <= {token}, True, "whose token asks " + method)
    case.equal(len(servers.calls("Variables.Read", before)) > 0, True, "whether servers are asked")
    for _, path in [*requests("GET"), ("GET", "/v1/client/fs/cat/%s?path=alloc/logs/t.stdout.0" % friend),
                    ("GET", "/v1/client/fs/logs/%s?task=t&type=stdout" % friend)]:
        answer = door.request("GET", path, token=token)
        found += traces.found_in(path, answer.body, marks)
        if answer.status == 200 and path not in OPEN:
            found.append("%s: %s" % (path, answer.text[:200]))
    case.equal(found, [], "what it reads")


def test_its_own_token_changes_nothing_on_the_node():
    answers = {(method, path): door.status(method, path, {}, token=token) for method, path in requests("PUT", "DELETE", "ANY")}
    case.equal((len(answers) > 10, {k: v for k, v in answers.items() if v < 400}), (True, {}), "requests that succeed")
    check_friend()


def test_stolen_and_forged_tokens():
    head, body, signature = token.split(".")
    other = friend_token.split(".")
    none = traces.base64.urlsafe_b64encode(json.dumps({"alg": "none", "typ": "JWT"}).encode()).decode().rstrip("=")
    tried = {"another task's": friend_token, "an ended task's": ended_token, "the node's": servers.node(me)["SecretID"],
             "spliced": ".".join([head, other[1], signature]), "changed": ".".join([head, body, "A" * len(signature)]), "unsigned": none + "." + body + ".",
             "random": str(uuid.uuid4())}
    for what, secret in tried.items():
        for path in ("/v1/var/nomad/jobs/friend", "/v1/agent/health", "/v1/client/stats"):
            answer = case.until(lambda p=path, s=secret: (lambda a: a.status != 429 and a)(door.request("GET", p, token=s)), case.LEAST_S, "an answer other than 429")
            case.equal((answer.status in (403, 500), SECRET in answer.text), (True, False), "%s token, %s: %d %s" % (what, path, answer.status, answer.text))
    wait_accepted()
    check_friend()


class Flood:
    """Sends `count` requests in eight threads, each with another invalid token and on a connection of its own. .statuses is set when all are answered."""

    def __init__(self, count):
        self.pool, self.statuses = concurrent.futures.ThreadPoolExecutor(8), set()
        self.sent = [self.pool.submit(door.status, "GET", "/v1/agent/health", token=str(uuid.uuid4())) for _ in range(count)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.statuses = {each.result() for each in self.sent}  # no request waits for longer than the timeout of its connection
        self.pool.shutdown()


def test_a_flood_of_invalid_tokens():
    """The task gets a look-up every 0.2 s, for which its connections wait; other tasks and operators are answered meanwhile. 429 is for requests on
    connections that were accepted before."""
    before, began = servers.last_call(), time.monotonic()
    with Flood(40) as flood:
        while not all(each.done() for each in flood.sent):
            check_friend()
            time.sleep(0.05)
    case.equal(flood.statuses <= {403, 429}, True, flood.statuses)
    asked, most = [c["args"]["AuthToken"] for c in servers.calls("ACL.WhoAmI", before)], 20 + 5 * (time.monotonic() - began + 1)
    case.equal(len(set(asked) - {BOSS, friend_token}) <= most, True, "%d look-ups, %d are allowed" % (len(asked), most))
    wait_accepted()


def test_a_flood_that_servers_do_not_answer():
    """Each look-up ends after 10 s. Tokens that were valid before are accepted meanwhile."""
    servers.fault("silent", "ACL.WhoAmI")
    with Flood(8) as flood:
        case.until(lambda: servers.unanswered("ACL.WhoAmI"), case.LEAST_S, "a look-up")
        check_friend()
    servers.clear()
    case.equal(flood.statuses <= {429, 500}, True, flood.statuses)
    wait_accepted()
    check_friend()


with cluster() as servers, node_of(servers, more="acl { enabled = true }\n") as node:
    me = servers.wait_node()["ID"]
    servers.add_token(BOSS, "management")
    node.token = BOSS
    servers.put_variable("nomad/jobs/friend", {"k": SECRET})
    friend, friend_door, friend_token = start("friend")
    _, door, token = start("hostile")
    ended, _, ended_token = start("ended")
    servers.stop_alloc(ended)
    servers.wait_alloc(ended, ["complete"])
    case.run(globals())
