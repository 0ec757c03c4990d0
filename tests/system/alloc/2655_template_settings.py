# SPDX-License-Identifier: Apache-2.0
"""client { template { … } } of a whole agent: denied functions, and how long a changed value waits."""
from lib import agent, api, case

SETTINGS = """client { template {
  function_denylist = ["plugin", "writeToFile", "toUpper", "sprig_*"]
  wait { min = "1h" max = "2h" }
  wait_bounds { max = "0s" }
} }
"""
HOURS = 3600 * 10**9
VARIABLE = "{{ with nomadVar \"nomad/jobs/waits\" }}{{ .x }}{{ end }}"


def job(name, *templates, script=""):
    return api.job(name, "/bin/sh", ["-c", script + "exec sleep 1000"], Templates=[{"Splay": 0, "ChangeMode": "noop", **t} for t in templates])


def put(x):
    node.do("PUT", "/v1/var/nomad/jobs/waits", {"Path": "nomad/jobs/waits", "Items": {"x": x}})


def test_a_denied_function_fails_the_task():
    for name in ("toUpper", "sprig_upper"):
        node.register(job(name, {"EmbeddedTmpl": "{{ \"a\" | %s }}" % name, "DestPath": "local/x"}))
        failed = node.wait_allocs(name, [(0, "run", "failed")])[0]
        case.contains(" ".join(e["DisplayMessage"] for e in failed["TaskStates"]["t"]["Events"]), "error calling %s: function is disabled" % name)
    # It is not a part of other functions' work, and not called.
    node.register(job("called", {"EmbeddedTmpl": "{{ \"A\" | toLower }}{{ if false }}{{ toUpper \"x\" }}{{ end }}", "DestPath": "local/x"}, script="cat local/x; "))
    node.wait_said(node.wait_running("called")[0], b"a")


def test_a_wait_block_replaces_the_agents_wait_within_its_bounds():
    put("1")
    node.register(job("waits", {"EmbeddedTmpl": VARIABLE, "DestPath": "local/agents"},
                      {"EmbeddedTmpl": VARIABLE, "DestPath": "local/own", "Wait": {"Min": HOURS, "Max": 2 * HOURS}},
                      script="while [ $(cat local/own) != 2 ]; do sleep 0.1; done; cat local/agents local/own; "))
    alloc = node.wait_running("waits")[0]
    put("2")
    node.wait_said(alloc, b"12")


def test_templates_do_not_see_the_agents_environment():
    """CVE-2019-14802: they saw the variables of the agent's process."""
    text = "<{{ env \"OF_AGENT\" }}|{{ envOrDefault \"OF_AGENT\" \"none\" }}>"
    node.register(job("agents", {"EmbeddedTmpl": text, "DestPath": "local/x"}, script="cat local/x; "))
    node.wait_said(node.wait_running("agents")[0], b"<|none>")


def test_attributes_without_effect_are_named():
    made = job("grace", {"EmbeddedTmpl": "x", "DestPath": "local/x", "VaultGrace": HOURS},
               {"EmbeddedTmpl": "x", "DestPath": "local/y", "ChangeMode": "script", "ChangeScript": {"Command": "/bin/true", "RunOnFirstRender": True}})
    said = node.do("POST", "/v1/validate/job", made)["Warnings"]
    case.contains(said, 'task "t": template "local/x": vault_grace has no effect')
    case.equal(len(said.splitlines()), 1, said)


with api.Node(agent.config_args(SETTINGS), env={"OF_AGENT": "a secret"}) as node:
    case.run(globals())
