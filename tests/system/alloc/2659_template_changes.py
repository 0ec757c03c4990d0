# SPDX-License-Identifier: Apache-2.0
"""Several templates of one task: whose variables win, and what happens when their outputs change at once."""
import os
import signal
import time

from lib import api, case

QUICK = {"Wait": {"Min": 0, "Max": 0}, "Splay": 0}
VARIABLE = "{{ with nomadVar \"%s\" }}{{ .x }}{{ end }}"
LOOP = "while :; do sleep 0.1; done"


def template(data, dest, mode, **more):
    return {"EmbeddedTmpl": data, "DestPath": dest, "ChangeMode": mode, **QUICK, **more}


def put(path, x):
    node.do("PUT", "/v1/var/" + path, {"Path": path, "Items": {"x": x}})


def run(name, script, *templates):
    node.register(api.job(name, "/bin/sh", ["-c", script], Templates=list(templates)))
    return node.wait_running(name)[0]


def events(alloc):
    return [e["Type"] for e in node.ask("/v1/allocation/" + alloc["ID"])["TaskStates"]["t"]["Events"]]


def test_variables_of_a_later_template_replace_those_of_an_earlier_one():
    """In the order of the job, not of the names; and a change of one leaves those of the other."""
    put("env", "1")
    alloc = run("env", "echo \"$A|$B|$C\"; exec sleep 1000", template("A=z\nB=z\n", "secrets/zzz", "restart", Envvars=True),
                template("B=a\nC=" + VARIABLE % "env" + "\n", "secrets/aaa", "restart", Envvars=True))
    node.wait_said(alloc, b"z|a|1\n")
    put("env", "2")
    node.wait_said(alloc, b"z|a|2\n")


def test_each_template_sends_its_signal():
    put("usr1", "1")
    put("usr2", "1")
    alloc = run("signals", "trap 'echo usr1 $(cat local/1)' USR1; trap 'echo usr2 $(cat local/2)' USR2; echo on; " + LOOP,
                *(template(VARIABLE % ("usr%d" % i), "local/%d" % i, "signal", ChangeSignal="SIGUSR%d" % i) for i in (1, 2)))
    node.wait_said(alloc, b"on\n")
    put("usr1", "2")
    put("usr2", "3")
    node.wait_said(alloc, b"usr1 2\n")
    node.wait_said(alloc, b"usr2 3\n")
    case.equal(len(node.logs(alloc).splitlines()), 3, "what the task has said")


def test_a_restart_replaces_the_signals_and_scripts_of_the_same_change():
    put("mixed", "1")
    put("other", "1")
    script = {"Command": "/bin/sh", "Args": ["-c", "echo script >local/told"], "Timeout": 5 * 10**9}
    alloc = run("mixed", "trap 'echo signal' HUP; cat local/told; echo started $(cat local/r); " + LOOP, template(VARIABLE % "other", "local/n", "noop"),
                template(VARIABLE % "mixed", "local/g", "signal", ChangeSignal="SIGHUP"), template(VARIABLE % "mixed", "local/c", "script", ChangeScript=script),
                template(VARIABLE % "mixed", "local/r", "restart"))
    node.wait_said(alloc, b"started 1\n")
    # The three outputs come while another file is being written, so they are one change.
    writer = node.wait_process("exec-helper")
    os.kill(writer, signal.SIGSTOP)
    put("other", "2")
    time.sleep(1)
    put("mixed", "2")
    time.sleep(1)
    os.kill(writer, signal.SIGCONT)
    node.wait_said(alloc, b"started 2\n")
    case.equal(node.logs(alloc), b"started 1\nstarted 2\n", "what the task has said")
    found = events(alloc)
    case.equal([found.count(kind) for kind in ("Restart Signaled", "Signaling", "Task hook message")], [1, 0, 0], "events %s" % found)


with api.Node() as node:
    case.run(globals())
