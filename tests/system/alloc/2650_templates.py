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


with api.Node() as node:
    case.run(globals())
