# SPDX-License-Identifier: Apache-2.0
"""contrib/completion/drover.bash: commands, verbs, flags, and ids from the agent."""
import os
import subprocess

from lib import ROOT, binary, case
from lib.fake_api import NODE, FakeApi, alloc

A1 = "aaaa1111-0000-4000-8000-000000000001"
SCRIPT = """. "$1"; shift; COMP_WORDS=(drover "$@"); COMP_CWORD=$#; _drover 2>/dev/null; printf '%s\\n' "${COMPREPLY[@]}"
"""


def complete(*words, address="unix:///nowhere"):
    directory = os.path.dirname(binary("drover"))
    env = dict(os.environ, PATH=directory + ":" + os.environ["PATH"], DROVER_ADDR=address)
    r = subprocess.run(["bash", "-c", SCRIPT, "-", ROOT + "/contrib/completion/drover.bash"] + list(words), env=env,
                       stdout=subprocess.PIPE, check=True)
    return r.stdout.decode().split()


def test_commands_and_flags_are_completed():
    case.equal(complete("jo"), ["job"])
    case.equal(complete("a"), ["action", "agent", "alloc"])
    case.equal(complete("job", "s"), ["scale", "start", "status", "stop"])
    case.equal(complete("job", "stop", "-p"), ["-purge"])
    case.equal(complete("agent", "-d"), ["-data-dir", "-dev"])
    case.equal(complete("alloc", "logs", "-std"), ["-stderr", "-stdout"])
    case.equal(complete("alloc", "exec", "-ta"), ["-task"])


def test_ids_from_the_agent_are_completed():
    with FakeApi() as api:
        api.json("GET", "/v1/allocations", [alloc(A1), alloc("bbbb" + A1[4:])])
        api.json("GET", "/v1/jobs", [{"ID": "web"}, {"ID": "db"}])
        api.json("GET", "/v1/nodes", [{"ID": NODE}])
        address = "unix://" + api.path
        case.equal(complete("alloc", "status", "a", address=address), ["aaaa1111"])
        case.equal(complete("job", "stop", "", address=address), ["web", "db"])
        case.equal(complete("node", "drain", "", address=address), [NODE[:8]])
        api.json("GET", "/v1/evaluations", [{"ID": A1}])
        api.json("GET", "/v1/deployments", [{"ID": "dddd" + A1[4:]}])
        api.json("GET", "/v1/services", [{"Namespace": "default", "Services": [{"ServiceName": "web", "Tags": []}]}])
        case.equal(complete("eval", "status", "", address=address), ["aaaa1111"])
        case.equal(complete("deployment", "promote", "", address=address), ["dddd1111"])
        case.equal(complete("service", "info", "", address=address), ["web"])
    case.equal(complete("job", "stop", "w"), [])


case.run(globals())
