# SPDX-License-Identifier: Apache-2.0
"""Several templates of one task: where their files are, whose variables win, and what happens when their outputs change at once, or cannot be followed by
what change_mode says."""
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


def run(name, script, *templates, **more):
    node.register(api.job(name, "/bin/sh", ["-c", script], Templates=list(templates), **more))
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


def test_signals_and_scripts_of_the_same_change_are_all_made():
    put("both", "1")
    script = {"Command": "/bin/sh", "Args": ["-c", "echo script $(cat local/c) >local/part; mv local/part local/told"], "Timeout": 5 * 10**9}
    alloc = run("both", "trap 'echo signal $(cat local/g)' HUP; echo on; while :; do [ ! -e local/told ] || { cat local/told; rm local/told; }; sleep 0.1; done",
                template(VARIABLE % "both", "local/g", "signal", ChangeSignal="SIGHUP"), template(VARIABLE % "both", "local/c", "script", ChangeScript=script))
    node.wait_said(alloc, b"on\n")
    put("both", "2")
    node.wait_said(alloc, b"signal 2\n")
    node.wait_said(alloc, b"script 2\n")


def test_a_script_that_fails_kills_the_task_only_if_it_says_so():
    put("fails", "1")
    script = {"Command": "/bin/sh", "Args": ["-c", "exit 3"], "Timeout": 5 * 10**9}
    once = {"RestartPolicy": {"Attempts": 0, "Mode": "fail"}, "ReschedulePolicy": {"Attempts": 0, "Unlimited": False}}
    allocs = [run("fails-%d" % fatal, "echo on; " + LOOP, template(VARIABLE % "fails", "local/c", "script", ChangeScript={**script, "FailOnError": fatal}), group=once)
              for fatal in (False, True)]
    for alloc in allocs:
        node.wait_said(alloc, b"on\n")
    put("fails", "2")
    node.wait_allocs("fails-1", [(0, "run", "failed")])
    case.contains(events(allocs[1]), "Killing")
    case.until(lambda: "Task hook failed" in events(allocs[0]), 30, "the event about the script")
    found = node.ask("/v1/allocation/" + allocs[0]["ID"])
    case.equal((found["ClientStatus"], "Killing" in events(allocs[0])), ("running", False), "the other task")


def test_a_signal_for_a_task_that_waits_for_its_restart():
    put("between", "1")
    alloc = run("between", "cat local/v; echo .; end=$NOMAD_ALLOC_DIR/data/end; [ ! -e $end ] || exec sleep 1000; while [ ! -e $end ]; do sleep 0.1; done; exit 1",
                template(VARIABLE % "between", "local/v", "signal", ChangeSignal="SIGHUP"),
                group={"RestartPolicy": {"Attempts": 100, "Interval": 10**12, "Delay": 3 * 10**9, "Mode": "fail"}})
    node.wait_said(alloc, b"1.\n")
    case.write("%s/alloc/%s/alloc/data/end" % (node.data, alloc["ID"]), "")
    case.until(lambda: "Restarting" in events(alloc), 30, "the end of the task")
    put("between", "2")
    node.wait_said(alloc, b"2.\n")
    case.equal("Killing" in events(alloc), False, "events %s" % events(alloc))


def test_destinations_with_variables():
    """Also an absolute one, which is below the task's directory."""
    alloc = run("where", "cd $NOMAD_TASK_DIR; cat $(uname -n).conf absolute; cat $NOMAD_SECRETS_DIR/blue.env; echo $A; exec sleep 1000",
                template("named\n", "local/${node.unique.name}.conf", "noop"), template("absolute\n", "/local/absolute", "noop"),
                template("A=b\n", "${NOMAD_SECRETS_DIR}/${NOMAD_META_color}.env", "restart", Envvars=True), Meta={"color": "blue"})
    node.wait_said(alloc, b"named\nabsolute\nA=b\nb\n")


with api.Node() as node:
    case.run(globals())
