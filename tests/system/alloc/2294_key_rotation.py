# SPDX-License-Identifier: Apache-2.0
"""Keys that sign tokens are replaced after 30 days, and deleted when no token needs them any more. The test makes them older in state.db while the
agent does not run."""
from lib import agent, api, case, jwt, task_api

S = 10**9
FOLLOW = "echo default $NOMAD_TOKEN; while :; do new=$(cat $NOMAD_SECRETS_DIR/nomad_k.jwt); [ \"$new\" = \"$old\" ] || echo token $new; old=$new; sleep 0.05; done"
IDENTITIES = {"Identity": {"Env": True}, "Identities": [{"Name": "k", "File": True, "TTL": 4 * S, "ChangeMode": "noop"}]}


def start(name):
    """Starts a task that prints its tokens. Returns its alloc, and the tokens by their algorithms."""
    node.register(api.job(name, "/bin/sh", ["-c", FOLLOW], **IDENTITIES))
    alloc = node.wait_running(name)[0]
    case.until(lambda: len(printed(alloc)) >= 2, 60, "two tokens")
    return alloc, {jwt.parts(token)[0]["alg"]: token for token in printed(alloc)[:2]}


def printed(alloc):
    return [line.split()[1] for line in node.logs(alloc).decode().split("\n")[:-1]]


def key_of(token):
    return jwt.parts(token)[0]["kid"]


def restart(days, state="active"):
    node.kill_launcher()
    jwt.age_keys(node, days, state)
    node.start()
    node.wait_ready()
    node.do("PUT", "/v1/system/gc")


def test_keys_are_replaced_after_30_days_and_their_tokens_stay_valid():
    alloc, old = start("old")
    before = jwt.active(node)
    case.equal({alg: key_of(token) for alg, token in old.items()}, before)
    restart(29)
    case.equal(jwt.active(node), before, "keys of 29 days")
    restart(2)
    case.until(lambda: set(jwt.active(node).values()).isdisjoint(before.values()), 60, "new keys")
    after = jwt.active(node)
    case.equal({k["kid"] for k in jwt.keys(node)}, {*before.values(), *after.values()}, "the public keys")
    case.equal({alg: jwt.verify(node, token) for alg, token in old.items()}, {"EdDSA": True, "RS256": True}, "whether old tokens are valid")
    case.equal(task_api.Door(node, alloc).status("GET", "/v1/services", token=old["EdDSA"]), 200, "a request with an old token")
    case.until(lambda: key_of(printed(alloc)[-1]) == after["RS256"], 60, "a renewed token by the new key")
    _, new = start("new")
    case.equal({alg: (key_of(token), jwt.verify(node, token)) for alg, token in new.items()}, {alg: (kid, True) for alg, kid in after.items()}, "new tokens")
    # Not before the last allocation that may have tokens of them has ended.
    restart(1, "inactive")
    case.equal({k["kid"] for k in jwt.keys(node)}, {*before.values(), *after.values()}, "keys that a token needs")
    node.purge("old")
    restart(60, "inactive")
    case.until(lambda: {k["kid"] for k in jwt.keys(node)} == set(after.values()), 60, "the old keys to be deleted")
    case.equal(jwt.active(node), after)
    node.purge("new")


def test_requests_to_rotate_share_a_key_that_is_being_made():
    """Each gets a new one, and no two of an algorithm are active."""
    before = jwt.active(node)
    waiting = [api.Connection(node, case.LEAST_S) for _ in range(5)]
    for c in waiting:
        c.request("PUT", "/v1/operator/keyring/rotate")
    waiting.pop().close()  # this client does not wait for its answer
    found = [api.Answer(c.getresponse()) for c in waiting]
    for c in waiting:
        c.close()
    case.equal([a.status for a in found], [200] * 4)
    after = jwt.active(node)
    case.equal(set(after.values()) & set(before.values()), set(), "old keys that are active")
    case.equal(after["RS256"] in [a.json["Key"]["KeyID"] for a in found], True, "the last answer")


def test_the_timer_of_garbage_collection_replaces_keys():
    """Of two keys, the one that is old enough is replaced, and nobody asks for it."""
    with api.Node(agent.config_args('client {\n gc_interval = "1s"\n}\n')) as timed:
        timed.register(api.job("signs", "/bin/sleep", ["1000"], **IDENTITIES))
        timed.wait_running("signs")
        for old, young in (("EdDSA", "RS256"), ("RS256", "EdDSA")):
            before = jwt.active(timed)
            timed.kill_launcher()
            jwt.age_keys(timed, 31, algorithm=old)
            jwt.age_keys(timed, 29, algorithm=young)
            timed.start()
            timed.wait_ready()
            case.until(lambda: jwt.active(timed)[old] != before[old], 60, "a new key of " + old)
            case.equal(jwt.active(timed)[young], before[young], "the key of 29 days")
            timed.do("PUT", "/v1/operator/keyring/rotate")  # so that both are young again
        timed.purge("signs")


with api.Node() as node:
    case.run(globals())
