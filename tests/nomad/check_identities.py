#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the same jobs with identities on drover, in a cluster and alone, and on a client of the servers' own program: the variables and files that
their tasks find, the heads and claims of the tokens, what a renewal does, and the events are the same, except for the differences that are
listed here. For `make check-nomad NOMAD=path`.

    tests/nomad/isolated.py tests/nomad/check_identities.py PATH [test_…]…"""
import base64
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from lib import case  # noqa: E402
import alike  # noqa: E402
import real  # noqa: E402
from alike import ALONE, THEIRS, WAITS, restarts, task  # noqa: E402
from real import S  # noqa: E402

TOKEN = r"ey[\w-]+\.[\w-]+\.[\w-]+"
# Differences: the mode of files, and how an agent that works alone signs the default token.
MODE = ("644:", "600:")
ALG = ("RS256", "EdDSA")
# Writes variables and files with tokens. A task of the driver exec has only what the shell itself has, so it does not show owners and modes.
VARIABLES = "NOMAD_TOKEN NOMAD_TOKEN_a NOMAD_TOKEN_b NOMAD_TOKEN_c NOMAD_TOKEN_brief"
FILES = "secrets/nomad_token secrets/nomad_a.jwt secrets/nomad_b.jwt secrets/nomad_c.jwt secrets/own secrets/nomad_brief.jwt"
SHOW = {
    "raw_exec": "for v in %s; do printenv $v | sed \"s/^/$v /\"; done; cd $NOMAD_TASK_DIR/..; "
                "for f in %s; do [ ! -e $f ] || echo $f $(stat -c %%a:%%u $f) $(cat $f); done; echo on; " % (VARIABLES, FILES),
    "exec": "for v in %s; do eval \"echo $v \\$$v\"; done; for f in %s; do [ ! -e /$f ] || { IFS= read -r line </$f; echo $f $line; }; done; echo on; " % (VARIABLES, FILES)}
NAMED = [{"Name": "a", "Env": True, "File": True, "TTL": 3600 * S, "Audience": ["one"]}, {"Name": "b", "Env": True, "Audience": ["one", "two"]},
         {"Name": "c", "File": True, "Audience": ["three"], **({} if real.older_than(1, 9) else {"Filepath": "secrets/own"})}]
HAS_NAMED = not real.older_than(1, 7)


def decoded(token, alloc):
    """Returns head and claims, without what each token has of its own."""
    head, claims = (json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))) for part in token.split(".")[:2])
    claims["life"] = claims.pop("exp") - claims["iat"] if "exp" in claims else None
    claims["late"] = claims.pop("nbf") - claims.pop("iat")
    for name, size in (("jti", 36), ("kid", 36)):
        claims.pop(name, None)
        case.equal(len(head.pop(name, " " * size)), size, name)
    text = json.dumps((head, claims), sort_keys=True)
    for value, name in ((alloc["JobID"], "@job"), (alloc["ID"], "@alloc"), (alloc["NodeID"], "@node")):
        text = text.replace(value, name)
    return text


def shown(alloc, claims=True):
    """Returns what the task has written, with the contents of its tokens or without."""
    text = re.sub(TOKEN, lambda found: decoded(found[0], alloc) if claims else "(token)", both.said(alloc))
    if alloc["JobID"].endswith(THEIRS):
        return text.replace(*MODE)
    if alloc["JobID"].endswith(ALONE):
        return "\n".join(line.replace(*reversed(ALG)) if "job:g:t:default" in line else line for line in text.split("\n"))
    return text


def kinds(alloc):
    return [e["Type"] for e in alloc["TaskStates"]["t"]["Events"]]


def same(name, value, what, without=()):
    """Checks that the value of all nodes is that of the original client."""
    found = {n: value(a) for n, a in both.allocs(name).items() if n not in without}
    for node, ours in found.items():
        case.equal(ours, found[THEIRS], "%s, %s" % (what, node))
    print("    %s: the same on %d nodes" % (what, len(found)))


def identities(*more):
    return {"Identity": {"Env": True, "File": True}, **({"Identities": [*more]} if HAS_NAMED else {})}


def test_variables_files_and_claims():
    for driver in ("raw_exec", "exec"):
        both.run("shown" + driver, [task("t", SHOW[driver] + WAITS, driver, **identities(*NAMED))])
        both.wait_said("shown" + driver)
        found = re.findall(TOKEN, both.said(both.allocs("shown" + driver)[THEIRS]))
        case.equal(len(found), 6 if HAS_NAMED else 2, "tokens that the task finds")
        same("shown" + driver, lambda a: (shown(a, False), kinds(a)), "variables, files and events with " + driver)
        # The tokens of an agent that works alone are those of today's servers.
        same("shown" + driver, shown, "%d claims with %s" % (len(found), driver), () if HAS_NAMED else (ALONE,))
        both.purge("shown" + driver)


def test_renewals():
    if not HAS_NAMED:
        print("    these servers know no named identities")
        return
    follow = "trap 'echo signal' HUP; echo on; while :; do IFS= read -r new <$NOMAD_SECRETS_DIR/nomad_brief.jwt; [ \"$new\" = \"$old\" ] || echo $new; old=$new; sleep 0.1; done"

    def tokens(alloc):
        return re.findall(TOKEN, both.said(alloc))
    jobs = {"renewed-%s-%s" % (mode, driver): (mode, driver) for mode in ("noop", "signal", "restart") for driver in ("raw_exec", "exec")}
    for name, (mode, driver) in jobs.items():
        more = {"ChangeMode": mode, **({"ChangeSignal": "SIGHUP"} if mode == "signal" else {})}
        both.run(name, [task("t", follow, driver, **identities({"Name": "brief", "File": True, "TTL": 8 * S, "Audience": ["one"], **more}))], group=restarts(0))
    for name, (mode, driver) in jobs.items():
        both.until(name, lambda a: len(tokens(a)) >= 3, "have two renewals")
        if mode != "restart":  # else each start shows the present one
            for node, alloc in both.allocs(name).items():
                case.equal(len(set(tokens(alloc))), len(tokens(alloc)), "different tokens, " + node)
        same(name, lambda a: ({decoded(t, a) for t in tokens(a)}, "signal" in both.said(a), a["TaskStates"]["t"]["Failed"]),
             "claims and effect of %s with %s" % (mode, driver))
        same(name, lambda a: set(kinds(a)) - {"Received", "Task Setup"}, "kinds of the last events with %s and %s" % (mode, driver))
    both.purge(*jobs)


with alike.pair(alone=True) as both:
    case.run(globals())
