# SPDX-License-Identifier: Apache-2.0
"""Templates of a whole agent: where their files are, what they show, and what follows when that changes."""
import os

from lib import api, case

WAIT = "exec sleep 1000"


def template(data, dest, **more):
    return {"EmbeddedTmpl": data, "DestPath": dest, **more}


def job(name, templates, script="", **more):
    return api.job(name, "/bin/sh", ["-c", script + WAIT], Templates=templates, **more)


def task_of(name):
    return node.allocs(name)[-1]["TaskStates"]["t"]


def events(name):
    return [(e["Type"], e["DisplayMessage"]) for e in task_of(name)["Events"]]


def runs(name, templates, script, said, **more):
    node.register(job(name, templates, script, **more))
    case.until(lambda: node.allocs(name) and node.allocs(name)[0]["ClientStatus"] in ("running", "failed"), 30, "a start")
    case.equal([kind for kind, _ in events(name)][-1], "Started", "last of %s" % events(name))
    alloc = node.wait_running(name)[0]
    node.wait_said(alloc, said.encode())
    return alloc


def test_files_are_there_before_the_start():
    where = ("local/a/b.conf", "secrets/x/y", "${NOMAD_ALLOC_DIR}/shared.txt", "local/.hidden")
    files = [template("{{ env \"NOMAD_TASK_NAME\" }} %d" % i, dest, Perms=("0640", "0600", "", "444")[i]) for i, dest in enumerate(where)]
    for driver in ("exec", "raw_exec"):
        user = {} if driver == "exec" else {"User": "nobody"}
        runs("where-" + driver, files,
             "cd $NOMAD_TASK_DIR/..; for f in local/a/b.conf secrets/x/y $NOMAD_ALLOC_DIR/shared.txt local/.hidden; do stat -c %a:%U $f; cat $f; echo; done; ",
             "".join("%s:nobody\nt %d\n" % (mode, i) for i, mode in enumerate(("640", "600", "644", "444"))), driver=driver, **user)


def test_variables_of_an_output_are_in_the_environment():
    runs("env", [template("A=\"b c\" # said\nexport D='${NOMAD_TASK_NAME}'\nE={{ env \"A\" }}.\n", "secrets/env", Envvars=True)],
         "echo \"$A|$D|$E\"; ", "b c|${NOMAD_TASK_NAME}|.\n")


def put(path, **items):
    node.do("PUT", "/v1/var/" + path, {"Path": path, "Items": items})


SHOW = "trap 'cat local/v; echo .' HUP; cat local/v; echo .; while :; do sleep 0.1; done; "
VARIABLE = "{{ with nomadVar \"nomad/jobs/%s\" }}{{ .x }}{{ end }}"


def test_a_task_waits_for_what_is_missing_and_tells_it():
    path = "nomad/jobs/waits"
    node.register(job("waits", [template(VARIABLE % "waits" + "{{ range nomadService \"none\" }}x{{ end }}", "local/v")], "cat local/v; "))
    case.until(lambda: node.allocs("waits") and ("Template", "Missing: nomad.var.block(nomad/jobs/waits@default.global)") in events("waits"), 30, "the event")
    case.equal(task_of("waits")["State"], "pending", "state")
    put(path, x="there")
    node.wait_said(node.wait_running("waits")[0], b"there")


def test_the_change_modes():
    quick = {"Wait": {"Min": 0, "Max": 0}, "Splay": 0}
    put("nomad/jobs/signal", x="1")
    put("nomad/jobs/restart", x="1")
    put("nomad/jobs/script", x="1")
    put("nomad/jobs/noop", x="1")
    script = {"Command": "/bin/sh", "Args": ["-c", "cp local/v local/copy"], "Timeout": 5000000000}
    node.register(job("signal", [template(VARIABLE % "signal", "local/v", ChangeMode="signal", ChangeSignal="SIGHUP", **quick)], SHOW))
    node.register(job("restart", [template(VARIABLE % "restart", "local/v", **quick)], "cat local/v; echo .; "))
    node.register(job("script", [template(VARIABLE % "script", "local/v", ChangeMode="script", ChangeScript=script, **quick)],
                      "while :; do [ -e local/copy ] && cat local/copy && rm local/copy; sleep 0.1; done; "))
    node.register(job("noop", [template(VARIABLE % "noop", "local/v", ChangeMode="noop", **quick)],
                      "while [ $(cat local/v) != 2 ]; do sleep 0.1; done; echo changed; "))
    allocs = {name: node.wait_running(name)[0] for name in ("signal", "restart", "script", "noop")}
    node.wait_said(allocs["signal"], b"1.")
    for name in allocs:
        put("nomad/jobs/" + name, x="2")
    node.wait_said(allocs["signal"], b"2.")
    node.wait_said(allocs["restart"], b"2.")
    node.wait_said(allocs["script"], b"2")
    node.wait_said(allocs["noop"], b"changed")
    case.contains(events("signal"), ("Signaling", "Template re-rendered"), "events")
    case.contains(events("restart"), ("Restart Signaled", "Template with change_mode restart re-rendered"), "events")
    case.contains([kind for kind, _ in events("script")], "Task hook message", "events")
    case.equal([kind for kind, _ in events("noop")][-1], "Started", "the last event")


with api.Node() as node:
    case.run(globals())
