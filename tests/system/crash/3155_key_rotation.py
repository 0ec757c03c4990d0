# SPDX-License-Identifier: Apache-2.0
# timeout: 600
# takes: 30
"""The supervisor dies at each step of a rotation of the keys that sign tokens: after each kill there is one active key of each algorithm, tokens stay
valid, and the rotation is made up for."""
from lib import case
from lib.crash_page import page
from lib.crash_sweep import check_reached, each_pass
from lib import crash, jwt

# How many passes of each point are tested. Rows are written one after the other: those of the old keys and of the new ones.
POINTS = {"ROW_SIGNING_KEY": 6, "ROW_SIGNING_KEY_COMMITTED": 6, "SUP_BEFORE_COMMIT": 6, "SUP_AFTER_COMMIT": 6, "SUP_AFTER_SEND": 6}
PRINT = 'echo $NOMAD_TOKEN $(cat $NOMAD_SECRETS_DIR/nomad_k.jwt) >$NOMAD_ALLOC_DIR/data/tokens; exec sleep 100000'


def rotate(node, tokens, disturbed):
    before = jwt.active(node)
    node.kill_launcher()
    jwt.age_keys(node, 31)
    node.revive()
    node.wait_ready()
    case.equal(jwt.active(node), before, "keys before the rotation")

    def replaced():
        node.do("PUT", "/v1/system/gc")
        return set(jwt.active(node).values()).isdisjoint(before.values())
    with disturbed():
        case.until(replaced, 30, "new keys")
    known = {k["kid"] for k in jwt.keys(node)}
    case.equal(known >= set(before.values()), True, "old keys are known")
    case.equal([jwt.verify(node, token) for token in tokens], [True, True], "the first tokens")


def test_each_step():
    with crash.Node(env=page.env) as node:
        node.register(crash.job("tokens", then=PRINT, Identity={"Env": True}, Identities=[{"Name": "k", "File": True}]))
        alloc = node.wait_running("tokens")[0]["ID"]
        tokens = case.until(lambda: len(crash.alloc_data(node, alloc, "tokens")) == 2 and crash.alloc_data(node, alloc, "tokens"), 20, "two tokens")
        for point, passes in POINTS.items():
            each_pass("rotation", lambda disturbed: rotate(node, tokens, disturbed), point, passes)
        node.purge("tokens")
    check_reached(POINTS)


case.run(globals())
