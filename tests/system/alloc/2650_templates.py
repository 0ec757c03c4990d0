# SPDX-License-Identifier: Apache-2.0
# takes: 150
"""Templates of a whole agent: where their files are, what they show, and what follows when that changes."""
import os
import signal
import time

from lib import agent, api, case, traces

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
    where = ("local/a/b.conf", "secrets/x/y", "${NOMAD_ALLOC_DIR}/shared.txt", "local/.hidden", "local/zero")
    files = [template("{{ env \"NOMAD_TASK_NAME\" }} %d" % i, dest, Perms=("0640", "0600", "", "444", "0000")[i]) for i, dest in enumerate(where)]
    for driver in ("exec", "raw_exec"):
        user = {} if driver == "exec" else {"User": "nobody"}
        runs("where-" + driver, files,
             "cd $NOMAD_TASK_DIR/..; for f in local/a/b.conf secrets/x/y $NOMAD_ALLOC_DIR/shared.txt local/.hidden local/zero; do stat -c %a:%U $f; cat $f; echo; done; ",
             "".join("%s:nobody\nt %d\n" % (mode, i) for i, mode in enumerate(("640", "600", "644", "444", "644"))), driver=driver, **user)


def test_variables_of_an_output_are_in_the_environment():
    runs("env", [template("A=\"b c\" # said\nexport D='${NOMAD_TASK_NAME}'\nE={{ env \"A\" }}.\n", "secrets/env", Envvars=True)],
         "echo \"$A|$D|$E\"; ", "b c|${NOMAD_TASK_NAME}|.\n")


def test_env_knows_the_node():
    runs("env-node", [template("{{ env \"node.unique.name\" }} {{ env \"node.datacenter\" }} {{ env \"attr.kernel.name\" }} {{ env \"node.region\" }}\n", "local/v")],
         "cat local/v; ", "%s dc1 linux global\n" % os.uname().nodename)


def test_sockaddr_knows_the_interfaces():
    shown = '{{ sockaddr "GetAllInterfaces | include \\"name\\" \\"^lo$\\" | include \\"type\\" \\"ipv4\\" | %s" }}'
    runs("interfaces", [template(shown % 'join \\"string\\" \\",\\"' + " " + shown % 'attr \\"flags\\"' + "\n", "local/v")],
         "cat local/v; ", "127.0.0.1/8 up|loopback|running\n")


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
    script = {"Command": "/bin/sh", "Args": ["-c", "cp local/v local/part; mv local/part local/copy"], "Timeout": 5000000000}
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


def failed(name, templates):
    """Registers a job whose task must fail. Returns the message of its event Killing."""
    node.register(job(name, templates, group={"RestartPolicy": {"Attempts": 0, "Mode": "fail"}, "ReschedulePolicy": {"Attempts": 0, "Unlimited": False}}))
    node.wait_allocs(name, [(0, "run", "failed")])
    found = [text for kind, text in events(name) if kind == "Killing"]
    case.equal(len(found), 1, "events %s" % events(name))
    return found[0]


def test_a_wrong_template_fails_its_task():
    for i, (data, more, said) in enumerate((
            ("{{ if }}", {}, "Template failed: local/v: "),
            ("{{ .a.b.c }}", {"ErrMissingKey": True}, "Template failed: local/v: "),
            ("{{ range loop 1000000000 }}{{ end }}", {}, "the template needs too many steps"),
            ("=x", {"Envvars": True}, "line 1: its key must be"),
            ("{{ file \"/etc/passwd\" }}", {}, "it is neither in the task's local/ nor in"),
            ("{{ file \"../../../x\" }}", {}, "it is neither in the task's local/ nor in"),
            ("{{ file \"secrets/x\" }}", {}, "it is neither in the task's local/ nor in"),
            ("{{ plugin \"x\" }}", {}, "plugin"))):
        case.contains(failed("wrong-%d" % i, [template(data, "local/v", **more)]), said)


def test_a_killed_worker_of_the_renderer():
    """It renders the change of a task that runs: this goes on, and gets its change from the next one."""
    quick = {"Wait": {"Min": 0, "Max": 0}, "Splay": 0, "ChangeMode": "noop"}
    slow = "{{ with nomadVar \"nomad/jobs/slow\" }}{{ if eq .x.Value \"2\" }}{{ range loop 3000 }}{{ range loop 3000 }}{{ end }}{{ end }}{{ end }}{{ .x }}{{ end }}"
    put("nomad/jobs/slow", x="1")
    node.register(job("slow", [template(slow, "local/v", **quick)], "while [ $(cat local/v) != 2 ]; do sleep 0.1; done; echo changed; "))
    alloc = node.wait_running("slow")[0]
    renderer = node.processes()["template-renderer"]
    case.until(lambda: not agent.children(renderer), 30, "the end of all renderings")
    put("nomad/jobs/slow", x="2")
    os.kill(case.until(lambda: agent.children(renderer), 10, "a worker")[0], signal.SIGKILL)
    node.wait_said(alloc, b"changed")
    case.equal((task_of("slow")["Restarts"], [kind for kind, _ in events("slow") if kind in ("Killing", "Template")]), (0, []), events("slow"))
    node.purge("slow")


ONCE = {"RestartPolicy": {"Attempts": 0, "Mode": "fail"}, "ReschedulePolicy": {"Attempts": 0, "Unlimited": False}}
ENDLESS = {
    "loops": ("{{ range loop 1000000000000 }}{{ end }}", "the template needs too many steps"),
    "recurses": ("{{ define \"a\" }}{{ template \"a\" }}{{ end }}{{ template \"a\" }}", "the template needs too many levels"),
    "branches": ("{{ define \"a\" }}{{ executeTemplate \"b\" }}{{ executeTemplate \"b\" }}{{ end }}{{ define \"b\" }}{{ executeTemplate \"a\" }}{{ end }}{{ template \"a\" }}",
                 "the template needs too many levels"),
    "prints": ("{{ range loop 1000000 }}" + 1024 * "x" + "{{ end }}", "the output is larger than 16777216 bytes"),
    "repeats": ("{{ sprig_repeat 100000000 \"0123456789\" | len }}", "the template needs too much memory"),
    "doubles": ("{{ $s := \"x\" }}{{ range loop 100 }}{{ $s = print $s $s }}{{ end }}", "the template needs too much memory"),
    "searches": ("{{ $s := printf \"%1000000s\" \"\" }}{{ range loop 1000000 }}{{ if regexMatch \"( |x)*y\" $s }}{{ end }}{{ end }}",
                 "the template needs too many steps"),
}


def test_templates_without_end_harm_nobody():
    """Each fails with one sentence; another task gets its change meanwhile, and no process of the agent is another one afterwards."""
    quick = {"Wait": {"Min": 0, "Max": 0}, "Splay": 0, "ChangeMode": "noop"}
    put("nomad/jobs/good", x="1")
    node.register(job("good", [template(VARIABLE % "good", "local/v", **quick)], "while [ $(cat local/v) != 2 ]; do sleep 0.1; done; echo changed; "))
    alloc = node.wait_running("good")[0]
    before = {name: pid for name, pid in node.processes().items() if name in ("supervisor", "template-renderer")}
    for i in range(3):
        for name, (text, _) in ENDLESS.items():
            node.register(job("endless-%s-%d" % (name, i), [template(text, "local/v")], group=ONCE))
    put("nomad/jobs/good", x="2")
    node.wait_said(alloc, b"changed")
    for name, (_, said) in ENDLESS.items():
        for i in range(3):
            made = "endless-%s-%d" % (name, i)
            node.wait_allocs(made, [(0, "run", "failed")])
            found = [text for kind, text in events(made) if kind == "Killing"]
            # A machine that is busy may need more than the time that a rendering has.
            right = said in found[0] or "it takes more time or memory to evaluate than is allowed" in found[0]
            case.equal((len(found), right), (1, True), "%s: %s" % (made, events(made)))
            node.purge(made)
    case.equal({name: node.processes().get(name) for name in before}, before, "processes")
    node.purge("good")


def test_a_template_does_not_replace_a_directory_of_the_task():
    for i, dest in enumerate(("local", "secrets/", "local/..", "${NOMAD_ALLOC_DIR}", "alloc/logs")):
        name = "directory-%d" % i
        node.register(job(name, [template("x", dest)], group={"RestartPolicy": {"Attempts": 0, "Mode": "fail"},
                                                              "ReschedulePolicy": {"Attempts": 0, "Unlimited": False}}))
        node.wait_allocs(name, [(0, "run", "failed")])
        case.contains(events(name), ("Failed Validation", "the destination of template %s is a directory" % dest))


LARGE = "{{ range loop 1100 }}" + 1024 * "x" + "{{ end }}"


def test_a_file_that_cannot_be_written_is_named():
    first = template("x", "local/first")
    for i, (one, said) in enumerate((
            (template("x", "local/v", Uid=1), "write \"local/v\": Operation not permitted: a template can have another owner than the task's user (uid, gid) "
             "only if that user is root"),
            (template(LARGE, "secrets/v"), "write \"secrets/v\": No space left on device: a task has 1 MiB and 1024 files for its secrets"),
            (template("x", "local/first/x"), "write \"local/first/x\": Not a directory"))):
        name = "unwritable-%d" % i
        node.register(job(name, [first, one], driver="exec"))
        case.until(lambda name=name: node.allocs(name) and "Driver Failure" in [kind for kind, _ in events(name)], 30, "a failure")
        case.contains(dict(events(name))["Driver Failure"], said)
        node.purge(name)


def test_a_changed_file_that_does_not_fit_is_named_and_the_old_one_stays():
    put("nomad/jobs/grows", x="1")
    text = "{{ with nomadVar \"nomad/jobs/grows\" }}{{ if eq .x.Value \"1\" }}small{{ else }}" + LARGE + "{{ end }}{{ end }}"
    node.register(job("grows", [template(text, "secrets/v", ChangeMode="noop", Splay=0, Wait={"Min": 0, "Max": 0})], SHOW.replace("local", "secrets"), driver="exec"))
    alloc = node.wait_running("grows")[0]
    node.wait_said(alloc, b"small.")
    put("nomad/jobs/grows", x="2")
    said = "write \"secrets/v\": No space left on device"
    case.until(lambda: any(said in text for _, text in events("grows")), 30, "the event about a file that does not fit")


def test_slow_templates_of_one_job_leave_places_for_others():
    """In the order of their requests, the quick one would be the last."""
    slow = [template("{{ range loop 6000000 }}{{ end }}", "local/v")]
    node.register(job("slow", slow, count=12))
    case.until(lambda: len(node.allocs("slow")) == 12, case.LEAST_S, "allocations")
    node.register(job("quick", [template("1", "local/v")]))
    node.wait_running("quick")
    waiting = [a["ID"] for a in node.allocs("slow") if a["ClientStatus"] == "pending"]
    case.equal(len(waiting) >= 4, True, "%d slow ones wait" % len(waiting))
    for name in ("slow", "quick"):
        node.purge(name)


def test_files_of_16_mib():
    """All files of a start have at most 32 MiB."""
    large = "{{ range loop 16000 }}" + 1023 * "x" + "\n{{ end }}"
    node.register(job("large", [template(large, "local/v"), template(large, "alloc/v")], "wc -c <local/v; tail -c 1 alloc/v | wc -l; ", driver="exec"))
    node.wait_said(node.wait_running("large")[0], b"16384000\n1\n")
    node.purge("large")
    case.contains(failed("too-large", [template(large, "local/%d" % i) for i in range(3)]), "the files of this task have more than 32 MiB")


def test_what_waiting_templates_hold_is_limited():
    """Files wait for the one whose value is missing. At the node's limit the task that holds most fails, and no other."""
    large = "{{ range loop 15000 }}" + 1023 * "x" + "\n{{ end }}"
    missing = template("{{ with nomadVar \"never/there\" }}{{ .x }}{{ end }}", "local/m")
    small = "held-small"
    node.register(job(small, [template("x" * 1000, "local/v"), missing]))
    for i in range(9):
        node.register(job("held-%d" % i, [template(large, "local/%d" % k) for k in range(2)] + [missing], group=ONCE))

    def told():
        return [i for i in range(9) if node.allocs("held-%d" % i) and "all together hold more than 256 MiB" in " ".join(text for _, text in events("held-%d" % i))]
    case.until(told, 60, "a task that fails")
    case.equal((len(told()), node.allocs(small)[0]["ClientStatus"]), (1, "pending"), "tasks that failed, and the small one")
    for i in range(9):
        node.purge("held-%d" % i)
    node.purge(small)


def test_the_values_of_a_task_are_limited():
    def asking(first, n):
        return "".join("{{ with nomadVar \"n/%d\" }}{{ .x }}{{ end }}" % i for i in range(first, first + n))
    case.contains(failed("needs", [template(asking(512 * k, 512), "local/%d" % k) for k in range(5)]), "the templates of this task ask for more than 2048 values")
    node.register(job("needs-less", [template(asking(0, 512), "local/%d" % k) for k in range(4)]))
    case.until(lambda: node.allocs("needs-less") and ", and 509 more" in " ".join(text for _, text in events("needs-less")), 30, "the event about what is missing")
    node.purge("needs-less")


def test_no_template_reads_another_tasks_file_by_a_link():
    """The task b made a link into a's directory, and then wants its template to show the file."""
    link = "umask 077; printf mine >local/mine; ln -s mine local/own; ln -s ../../a/local/secret local/l; ln -s ../a/local/secret $NOMAD_ALLOC_DIR/l; mkfifo local/fifo; "
    put("nomad/jobs/reads", x="1")
    text = "{{ with nomadVar \"nomad/jobs/reads\" }}{{ if ne .x.Value \"1\" }}{{ file .x.Value }}{{ end }}{{ end }}"
    for path, said in (("local/l", "a link of the task leads out of its directories"), ("../alloc/l", "a link of the task leads out of its directories"),
                       ("local/fifo", "is neither a file nor a directory")):
        put("nomad/jobs/reads", x="1")
        node.register(api.job("reads", tasks=None, group={"Tasks": [
            api.task("a", "/bin/sh", ["-c", "echo sesame >local/secret; " + WAIT], driver="exec"),
            api.task("t", "/bin/sh", ["-c", link + "echo made; " + WAIT], driver="exec",
                     Templates=[template(text, "local/v", ChangeMode="noop", Splay=0, Wait={"Min": 0, "Max": 0})])]}))
        alloc = node.wait_running("reads")[0]
        node.wait_said(alloc, b"made")
        put("nomad/jobs/reads", x="local/own")
        shown = "%s/alloc/%s/t/local/v" % (node.data, alloc["ID"])
        case.until(lambda shown=shown: os.path.getsize(shown) == 4, 30, "a file of the task in its template")
        put("nomad/jobs/reads", x=path)
        case.until(lambda said=said: any(said in text for _, text in events("reads")), 30, "the event about " + path)
        node.purge("reads")


def test_at_most_three_needs_are_named():
    names = "".join("{{ with nomadVar \"more/%d\" }}{{ .x }}{{ end }}" % i for i in range(5))
    node.register(job("more", [template(names, "local/v")], "cat local/v; "))
    need = "nomad.var.block(more/%d@default.global)"
    first = "Missing: " + ", ".join(need % i for i in range(3)) + ", and 2 more"
    case.until(lambda: node.allocs("more") and ("Template", first) in events("more"), 30, "the event")
    why = node.drover("alloc", "why", node.allocs("more")[0]["ID"]).out
    case.contains(why, first)
    for i in (0, 1, 2):
        put("more/%d" % i, x=str(i))
    case.until(lambda: ("Template", "Missing: %s, %s" % (need % 3, need % 4)) in events("more"), 30, "the second event")
    for i in (3, 4):
        put("more/%d" % i, x=str(i))
    node.wait_said(node.wait_running("more")[0], b"01234")


def test_sources_and_files():
    shared = "${NOMAD_ALLOC_DIR}/made"
    node.register(api.job("files", tasks=None, group={"Tasks": [
        api.task("first", "/bin/sh", ["-c", "printf '{{ file \"../alloc/said\" }}|{{ env \"NOMAD_TASK_NAME\" }}' > $NOMAD_ALLOC_DIR/made; printf hello > $NOMAD_ALLOC_DIR/said"],
                 Lifecycle={"Hook": "prestart"}),
        api.task("t", "/bin/sh", ["-c", "cat local/v; " + WAIT], Templates=[{"SourcePath": shared, "DestPath": "local/v"}])]}))
    node.wait_said(node.wait_running("files")[0], b"hello|t")


def test_a_file_is_followed_however_it_changes():
    """Written again, replaced, removed and made again; and, within a minute, reached by a link that leads elsewhere."""
    made = template("{{ file (print (env \"NOMAD_ALLOC_DIR\") \"/data/at/f\") }}", "local/v", ChangeMode="signal", ChangeSignal="SIGHUP", Splay=0, Wait={"Min": 0, "Max": 0})
    node.register(api.job("ways", group={"Tasks": [
        api.task("first", "/bin/sh", ["-c", "cd $NOMAD_ALLOC_DIR/data; mkdir a b; printf 1 > a/f; printf 5 > b/f; ln -s a at"], Lifecycle={"Hook": "prestart"}),
        api.task("t", "/bin/sh", ["-c", "trap 'cat local/v; echo .' HUP; cat local/v; echo .; while :; do sleep 0.1; done"], Templates=[made])]}))
    alloc, said = node.wait_running("ways")[0], b"1.\n"
    node.wait_said(alloc, said)
    data = "%s/alloc/%s/alloc/data/" % (node.data, alloc["ID"])

    def write(path, text):
        with open(data + path, "w", encoding="ascii") as f:
            f.write(text)

    def replace():
        write("a/new", "3")
        os.rename(data + "a/new", data + "a/f")

    def remake():
        os.unlink(data + "a/f")
        write("a/f", "4")

    def lead():
        os.symlink("b", data + "new")
        os.rename(data + "new", data + "at")
    for number, change in enumerate((lambda: write("a/f", "2"), replace, remake, lead), 2):
        change()
        said += b"%d.\n" % number
        case.until(lambda: node.request_logs(alloc).body == said, case.LEAST_S, "the file after change %d" % number)


def test_a_template_reads_the_file_of_an_earlier_one():
    quick = {"Wait": {"Min": 0, "Max": 0}, "Splay": 0, "ChangeMode": "noop"}
    inner = "<{{ with nomadVar \"nomad/jobs/reader\" }}{{ .x }}{{ end }}>"
    node.register(job("reader", [template(inner, "secrets/inner", **quick), template("{{ file \"secrets/inner\" }}{{ file \"local/../secrets/inner\" }}\n", "local/v", **quick)],
                      "while :; do cp local/v new; cmp -s new old || { cat new; mv new old; }; sleep 0.1; done; "))
    event = ("Template", "Missing: file(local/../secrets/inner), file(secrets/inner), nomad.var.block(nomad/jobs/reader@default.global)")
    case.until(lambda: node.allocs("reader") and event in events("reader"), 30, "the event")
    case.contains(node.drover("alloc", "why", node.allocs("reader")[0]["ID"]).out, "file(secrets/inner): another template of this task, which waits too, writes it")
    put("nomad/jobs/reader", x="1")
    alloc = node.wait_running("reader")[0]
    node.wait_said(alloc, b"<1><1>\n")
    put("nomad/jobs/reader", x="2")
    node.wait_said(alloc, b"<2><2>\n")
    node.replace_supervisor()
    put("nomad/jobs/reader", x="3")
    node.wait_said(alloc, b"<3><3>\n")
    node.purge("reader")


def test_a_template_that_begins_to_read_another_ones_file():
    """The output of the other one is not kept, as the task has it."""
    quick = {"Wait": {"Min": 0, "Max": 0}, "Splay": 0, "ChangeMode": "noop"}
    put("nomad/jobs/begins", x="1")
    text = "{{ with nomadVar \"nomad/jobs/begins\" }}{{ if eq .x.Value \"2\" }}{{ file \"secrets/inner\" }}{{ end }}{{ .x }}.{{ end }}"
    node.register(job("begins", [template("inner", "secrets/inner", **quick), template(text, "local/v", **quick)],
                      "while :; do cp local/v new; cmp -s new old || { cat new; mv new old; }; sleep 0.1; done; "))
    alloc = node.wait_running("begins")[0]
    node.wait_said(alloc, b"1.")
    put("nomad/jobs/begins", x="2")
    node.wait_said(alloc, b"1.inner2.")
    node.purge("begins")


def test_a_template_does_not_wait_for_a_later_one():
    other = template("x", "local/other")
    case.contains(failed("later", [template("{{ file \"local/other\" }}", "local/v"), other]), "local/v: it reads local/other, which a later template of this task writes")
    case.contains(failed("itself", [other, template("{{ file \"local/./v\" }}", "local/v")]), "local/v: it reads local/v, which it writes")


def test_a_script_that_runs_after_the_first_start():
    script = {"Command": "/bin/sh", "Args": ["-c", "echo \"$(cat local/v)\" >>local/ran"], "Timeout": 5 * 10**9, "RunOnFirstRender": True}
    put("nomad/jobs/first", x="1")
    node.register(job("first", [template(VARIABLE % "first", "local/v", ChangeMode="script", ChangeScript=script, Splay=0, Wait={"Min": 0, "Max": 0})],
                      "touch local/ran; tail -f local/ran & trap 'exit 1' TERM; wait; ", group={"RestartPolicy": {"Attempts": 3, "Interval": 10**12, "Delay": 10**8, "Mode": "fail"}}))
    alloc = node.wait_running("first")[0]
    node.wait_said(alloc, b"1\n")
    case.until(lambda: [kind for kind, _ in events("first")].count("Task hook message") == 1, 30, "the event")
    node.replace_supervisor()
    put("nomad/jobs/first", x="2")
    node.wait_said(alloc, b"1\n2\n")
    case.until(lambda: [kind for kind, _ in events("first")].count("Task hook message") == 2, 30, "the second event")
    # The next start is not the first one.
    node.do("PUT", "/v1/client/allocation/%s/restart" % alloc["ID"], {})
    case.until(lambda: task_of("first")["Restarts"] == 1 and task_of("first")["State"] == "running", 30, "the restart")
    put("nomad/jobs/first", x="3")
    case.until(lambda: node.logs(alloc).endswith(b"1\n2\n3\n"), 30, "the change after the restart")
    case.equal(node.logs(alloc).count(b"2\n2\n"), 0, "a run at the second start")
    node.purge("first")


def test_a_template_that_is_rendered_once():
    put("nomad/jobs/once", x="1")
    quick = {"Wait": {"Min": 0, "Max": 0}, "Splay": 0}
    node.register(job("once", [template(VARIABLE % "once", "local/v", Once=True, **quick), template(VARIABLE % "once", "local/w", ChangeMode="noop", **quick)],
                      "while [ $(cat local/w) != 2 ]; do sleep 0.1; done; cat local/v local/w; "))
    alloc = node.wait_running("once")[0]
    put("nomad/jobs/once", x="2")
    node.wait_said(alloc, b"12")
    # A restarted task has the same file again.
    node.do("PUT", "/v1/client/allocation/%s/restart" % alloc["ID"], {})
    case.until(lambda: node.logs(alloc).count(b"12") == 2, 30, "the restarted task to have both files")


def test_services_come_and_go():
    quick = {"Wait": {"Min": 0, "Max": 0}, "Splay": 0, "ChangeMode": "noop"}
    text = "{{ range nomadService \"web\" }}{{ .Name }} {{ .Port }} {{ .Tags }};{{ end }}{{ range nomadServices }}{{ if eq .Name \"web\" }}all {{ .Name }}{{ .Tags }}{{ end }}{{ end }}"
    node.register(job("watcher", [template("<" + text + ">", "local/v", **quick)], "while :; do cp local/v new; cmp -s new old || { cat new; mv new old; }; sleep 0.1; done; "))
    alloc = node.wait_running("watcher")[0]
    node.wait_said(alloc, b"<>")
    node.register(api.job("web", group={"Services": [{"Name": "web", "Provider": "nomad", "Tags": ["b", "a"], "PortLabel": "8080"}]}))
    node.wait_running("web")
    node.wait_said(alloc, b"<web 8080 [a b];all web[a b]>")
    node.purge("web")
    case.until(lambda: node.logs(alloc).endswith(b">" b"<>"), 30, "the service to go")


def test_killed_processes():
    quick = {"Wait": {"Min": 0, "Max": 0}, "Splay": 0, "ChangeMode": "signal", "ChangeSignal": "SIGHUP"}
    put("nomad/jobs/kill", x="1")
    node.register(job("kill", [template(VARIABLE % "kill", "local/v", **quick)], SHOW))
    alloc = node.wait_running("kill")[0]
    node.wait_said(alloc, b"1.")
    renderer = node.wait_process("template-renderer")
    os.kill(renderer, signal.SIGSTOP)
    put("nomad/jobs/kill", x="2")
    os.kill(renderer, signal.SIGKILL)
    node.wait_said(alloc, b"2.")
    # The variable is the same before and after the restart of the agent, so the task gets no signal.
    node.replace_supervisor()
    put("nomad/jobs/kill", x="3")
    node.wait_said(alloc, b"3.")
    case.equal(node.logs(alloc).count(b"2."), 1, "how often the second value was told")
    # A change while the agent is down is applied when it is back.
    os.kill(node.wait_process("supervisor"), signal.SIGKILL)
    case.until(lambda: node.request("GET", "/v1/agent/self").status == 200, 30, "the agent")
    put("nomad/jobs/kill", x="4")
    node.wait_said(alloc, b"4.")
    case.equal(node.allocs("kill")[0]["TaskStates"]["t"]["Restarts"], 0, "restarts")


def test_a_restarted_agent_repeats_what_it_does_not_know():
    # The agent dies between the new file and the signal, and then the value is the old one again.
    splay = {"Wait": {"Min": 0, "Max": 0}, "Splay": 600 * 10**9, "ChangeMode": "signal", "ChangeSignal": "SIGHUP"}
    put("nomad/jobs/doubt", x="1")
    node.register(job("doubt", [template(VARIABLE % "doubt", "local/v", **splay)], "while :; do cp local/v new; cmp -s new old || { cat new; echo .; mv new old; }; sleep 0.1; done; "))
    alloc = node.wait_running("doubt")[0]
    node.wait_said(alloc, b"1.")
    put("nomad/jobs/doubt", x="2")
    node.wait_said(alloc, b"1.\n2.")
    put("nomad/jobs/doubt", x="1")
    node.wait_said(alloc, b"1.\n2.\n1.")
    put("nomad/jobs/doubt", x="2")
    node.wait_said(alloc, b"1.\n2.\n1.\n2.")
    os.kill(node.wait_process("supervisor"), signal.SIGKILL)
    case.until(lambda: node.request("GET", "/v1/agent/self").status == 200, 30, "the agent")
    put("nomad/jobs/doubt", x="1")
    node.wait_said(alloc, b"1.\n2.\n1.\n2.\n1.")
    node.purge("doubt")


def test_an_output_that_comes_while_files_are_written_does_not_wait_for_the_splay():
    splay = {"Wait": {"Min": 0, "Max": 0}, "Splay": 600 * 10**9, "ChangeMode": "signal", "ChangeSignal": "SIGHUP"}
    put("nomad/jobs/twice", x="1")
    node.register(job("twice", [template(VARIABLE % "twice", "local/v", **splay)], "while :; do cp local/v new; cmp -s new old || { cat new; echo .; mv new old; }; sleep 0.1; done; "))
    alloc = node.wait_running("twice")[0]
    node.wait_said(alloc, b"1.")
    writer = node.wait_process("exec-helper")
    os.kill(writer, signal.SIGSTOP)
    put("nomad/jobs/twice", x="2")
    time.sleep(1)  # so that the first output is being written when the second one comes
    put("nomad/jobs/twice", x="3")
    time.sleep(1)
    os.kill(writer, signal.SIGCONT)
    node.wait_said(alloc, b"3.")
    node.purge("twice")


def test_a_template_that_is_rendered_once_is_not_after_a_restart_of_the_agent():
    put("nomad/jobs/kept", x="1")
    quick = {"Wait": {"Min": 0, "Max": 0}, "Splay": 0}
    node.register(job("kept", [template(VARIABLE % "kept", "local/v", Once=True, **quick), template(VARIABLE % "kept", "local/w", ChangeMode="noop", **quick)],
                      "while [ $(cat local/w) != 3 ]; do sleep 0.1; done; cat local/v local/w; "))
    alloc = node.wait_running("kept")[0]
    put("nomad/jobs/kept", x="2")
    node.replace_supervisor()
    put("nomad/jobs/kept", x="3")
    node.wait_said(alloc, b"13")
    case.equal(task_of("kept")["Restarts"], 0, "restarts")


def test_a_script_that_prints_without_end_stops_nothing_else():
    put("nomad/jobs/loud", x="1")
    script = {"Command": "/bin/sh", "Args": ["-c", "while :; do echo yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy; done"], "Timeout": 2 * 10**9}
    node.register(job("loud", [template(VARIABLE % "loud", "local/v", ChangeMode="script", ChangeScript=script, Splay=0, Wait={"Min": 0, "Max": 0})]))
    node.wait_running("loud")
    put("nomad/jobs/loud", x="2")
    case.until(lambda: any("did not end within its timeout" in text for _, text in events("loud")), 30, "the end of the script")


def test_names_that_are_no_text_fail_a_template():
    case.contains(failed("bytes", [template("{{ file (base64Decode \"/w==\") }}", "local/v")]), "it asks for a name that is not UTF-8")
    many = "{{ range loop 600 }}{{ with nomadVar (print \"many/\" .) }}{{ end }}{{ end }}"
    case.contains(failed("many", [template(many, "local/v")]), "asks for more than 512 values")


def test_what_is_rendered_is_nowhere_else():
    marks = [b"Zq7paW0rd9KxTz", b"MIIxZ3kQ8vNfirst"]
    put("nomad/jobs/hidden", x=marks[0].decode())
    body = [template(VARIABLE % "hidden", "secrets/v", Splay=0, Wait={"Min": 0, "Max": 0}),
            template("X=" + VARIABLE % "hidden", "secrets/env", Envvars=True, ChangeMode="noop")]
    node.register(job("hidden", body, "[ -n \"$X\" ] && wc -c <secrets/v; ", driver="exec"))
    alloc = node.wait_running("hidden")[0]
    node.wait_said(alloc, b"14")
    case.equal(traces.find(node, marks, "hidden"), [], "while it runs")
    node.replace_supervisor()
    put("nomad/jobs/hidden", x=marks[1].decode())
    node.wait_said(alloc, b"16")
    case.equal(traces.find(node, marks, "hidden"), [], "after a change")
    # An error shows what a template made of values, but not the values.
    put("nomad/jobs/hidden", x=marks[0].decode() + "x")
    wrong = template("{{ with nomadVar \"nomad/jobs/hidden\" }}{{ .x | parseInt }}{{ end }}", "secrets/v", Splay=0)
    node.register(job("hidden", [wrong], driver="exec", group={"ReschedulePolicy": {"Attempts": 0, "Unlimited": False}}))
    case.until(lambda: any(a["ClientStatus"] == "failed" for a in node.allocs("hidden")), 30, "the failure")
    case.equal(traces.find(node, marks, "hidden"), [], "after an error")


def test_an_idle_renderer_ends():
    case.until(lambda: "template-renderer" not in node.processes(), 120, "template-renderer, which has nothing to do, to end")


with api.Node(agent.config_args(traces.AUDIT)) as node:
    case.run(globals())
