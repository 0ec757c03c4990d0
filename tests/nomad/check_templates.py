#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the same jobs with templates on drover, in a cluster and alone, and on a client of the servers' own program: their files, what changes do,
and the events are the same, except for the differences that are listed here and in docs/templates.md. For `make check-nomad NOMAD=path`.

    tests/nomad/isolated.py tests/nomad/check_templates.py PATH [test_…]…"""
import base64
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from lib import api, case  # noqa: E402
import alike  # noqa: E402
from alike import ALONE, THEIRS, WAITS, has, restarts, running, task  # noqa: E402
from real import S  # noqa: E402

QUICK = {"Splay": 0, "Wait": {"Min": 0, "Max": 0}}
# The variable of the job; "v" is what a test changes.
OWN = '{{ with nomadVar (print "nomad/jobs/" (env "NOMAD_JOB_ID")) }}%s{{ end }}'


# Texts of the original client and of drover that say the same.
SAME = [
    (r"Template failed: \(dynamic\): ", "Template failed: local/v: "),
    (r"(Template successfully ran script /bin/sh) with arguments: \[.*\](\. Exit code: 0)", r"\1\2"),
    (r"Template ran script /bin/sh with arguments \[.*\] on change but it exited with (code )?code: 3", "Template failed to run script /bin/sh on change: Exit code: 3"),
    ("Template script failed, task is being killed", "Template failed: local/v: Exit code: 3"),
]
# Wrong templates of which drover's events differ, and why.
DIFFER = {
    "outside": "Failed Validation, as with a job that the servers refuse, instead of Task hook failed", "directory": "the same instead of Killing",
    "source": "Killing, as with all wrong templates, instead of Task hook failed",
}


def template(data, dest="local/v", **more):
    return {"EmbeddedTmpl": data, "DestPath": dest, **QUICK, **more}


def texts(alloc):
    """Returns the events of the task with their texts. The original client may tell of a task that has failed what was missing for a moment."""
    found = [(e["Type"], e["DisplayMessage"].replace(alloc["JobID"], "@job").replace(alloc["ID"], "@alloc")) for e in alloc["TaskStates"]["t"]["Events"] or ()]
    if alloc["JobID"].endswith(THEIRS):
        for theirs, ours in SAME:
            found = [(kind, re.sub(theirs, ours, text)) for kind, text in found]
        while len(found) > 1 and found[-1][0] == "Template" and "Killing" in [kind for kind, _ in found]:
            found.pop()
    return found


def kinds(alloc):
    return [kind for kind, _ in texts(alloc)]


def without_missing(alloc):
    """Returns the kinds of events without those about values that came late, because a machine is busy."""
    return [kind for kind in kinds(alloc) if kind != "Template"]


def compare(names, value, what):
    """Waits until this value is the same of all allocs of each job."""
    odd = {}

    def same():
        for name in names:
            odd.pop(name, None)
            found = {n: value(a) for n, a in both.allocs(name).items()}
            if any(seen != found[THEIRS] for seen in found.values()):
                odd[name] = found
        return not odd
    try:
        case.until(same, 30, what)  # the last update of a client may reach the servers late
    except AssertionError:
        print("    %d of %d jobs are the same" % (len(names) - len(odd), len(names)))
        raise AssertionError("%s differ:\n%s" % (what, "\n".join("%s %s: %s" % (name, n, v) for name, f in odd.items() for n, v in f.items()))) from None
    print("    %s: %d are the same" % (what, len(names)))


def wait_text(name, text):
    both.until(name, lambda a: text in both.said(a), "write " + repr(text))


SHOW = "for f in %s; do echo \"$f\"; stat -Lc %%a:%%s \"$NOMAD_TASK_DIR/../$f\" || echo none; base64 -w 0 \"$NOMAD_TASK_DIR/../$f\"; echo; done; "
# Texts of templates, by what they use.
DATA = {
    "var": OWN % "{{ .a }}|{{ .b.Value }}|{{ .Keys }}|{{ .Values }}|{{ .Path }}" .replace("{{ .Path }}", "") + OWN % "{{ range $k, $v := . }}{{ $k }}={{ $v }};{{ end }}",
    "tuples": OWN % "{{ range .Tuples }}<{{ .K }} {{ .V }}>{{ end }}{{ range .Keys }}{{ . }},{{ end }}{{ .Metadata.Namespace }}",
    "missing-key": OWN % "[{{ .none }}]",
    "list": '{{ range nomadVarList "listed" }}{{ .Path }} {{ .Namespace }} {{ . }};{{ end }}[{{ len (nomadVarList "none") }}][{{ len (nomadVarListSafe "listed") }}]',
    "exists": '{{ nomadVarExists "listed/a" }} {{ nomadVarExists "listed/none" }} {{ if nomadVarExists "listed" }}x{{ end }}',
    "service": '{{ range nomadService "web" }}{{ .Name }} {{ .Address }}:{{ .Port }} {{ .Tags }} {{ .Datacenter }};{{ end }}[{{ len (nomadService "none") }}]',
    "service-1": '{{ range nomadService 1 (env "KEY") "web" }}{{ .Port }};{{ end }}',
    "service-2": '{{ range nomadService 2 (env "KEY") "web" }}{{ .Port }};{{ end }}',
    "service-9": '{{ range nomadService 9 "key" "web" }}{{ .Port }};{{ end }}',
    "services": '{{ range nomadServices }}{{ .Name }} {{ .Tags }};{{ end }}',
    "env": '{{ env "NOMAD_TASK_NAME" }} {{ env "OWN" }} {{ env "node.datacenter" }} {{ env "node.class" }} {{ env "node.region" }} {{ env "attr.kernel.name" }} {{ env "attr.none" }} [{{ env "NONE" }}]{{ envOrDefault "NONE" "d" }} {{ mustEnv "OWN" }} {{ env "NOMAD_META_m" }}',
    "map": '{{ $m := parseJSON "{\\"a\\": 1, \\"n\\": null}" }}{{ $m.a }} {{ $m.none }} {{ $m.n }}',
    "text": 'no newline, "quotes" & <html> ü \\ %d {{ "a" | toUpper }}{{/* said */}} {{- " b" }}\n\n\t{{ toJSON (split "," "a,b") }}',
    "empty": "{{/* nothing */}}",
}
KEYS = ("a", "b", "c", "10.0.0.1", "drover")


def files_of(alloc):
    """Returns {name: (mode and size, content)} of what the task has shown."""
    lines = both.said(alloc).split("\n")
    return {lines[i]: (lines[i + 1], base64.b64decode(lines[i + 2]).decode().replace(alloc["JobID"], "@job"))
            for i in range(0, len(lines) - 3, 3)}


def test_files():
    """Also the order in which a count and a key take services, which is a matter of hashes."""
    for path in ("listed/a", "listed/b/c", "listed/b", "other"):
        both.do_apart("/v1/var/" + path, {"Path": path, "Items": {"x": path}})
    for node in both.nodes:
        both.put("files", node, a="first", b='two "words"\n', c="")
    both.run_apart(lambda: api.job("web", group={"Tasks": [task("t", WAITS)], "Services": [
        {"Name": "web", "Provider": "nomad", "Tags": ["b", "a"][:i], "PortLabel": str(8080 + i)} for i in range(3)]}))
    for node in both.apart():
        both.servers[node].wait("web", ["running"])
        case.until(lambda n=node: len(both.servers[n].ask("/v1/service/web")) == 3, 60, "three services")
    made = [template("plain\n", "local/f/plain")]
    made += [template(data, "local/f/" + name) for name, data in DATA.items()]
    made += [template(data.replace('env "KEY"', '"%s"' % key), "local/f/%s-%s" % (name, key)) for name, data in DATA.items() if 'env "KEY"' in data for key in KEYS]
    made += [template("mode", dest + "/mode" + perms, Perms=perms) for dest in ("local", "secrets/deep/er", "${NOMAD_ALLOC_DIR}") for perms in ("", "600", "0640", "777", "0444", "0000")]
    made += [template("[[ env \"OWN\" ]] {{ x }}", "local/f/delims", LeftDelim="[[", RightDelim="]]"), template("<% print 1 >", "local/f/delims2", LeftDelim="<%", RightDelim=">")]
    made += [template("x", dest) for dest in ("local/.hidden", "local/../local/./x", "top", "sub/x")]
    names = [t["DestPath"].replace("${NOMAD_ALLOC_DIR}", "../alloc") for t in made]
    both.run("files", [task("t", SHOW % " ".join(names) + "echo on; " + WAITS, Templates=made, Env={"OWN": "mine", "KEY": "k"}, Meta={"m": "meta"})], "service")
    both.wait_said("files")
    found = {n: files_of(a) for n, a in both.allocs("files").items()}
    theirs = found.pop(THEIRS)
    case.equal([k for k, v in theirs.items() if v[0] == "none"], [], "files that the original client did not make")
    for node, ours in found.items():
        if node == ALONE:  # its services have other ids, by which a count and a key take them, and the node's address
            ours, theirs = ({k: (mode.split(":")[0], text.replace("127.0.0.1", "")) for k, (mode, text) in files.items() if "service-" not in k} for files in (ours, theirs))
        odd = {k: (ours.get(k), theirs[k]) for k in theirs if ours.get(k) != theirs[k]}
        print("    %s: %d of %d files are the same" % (node, len(theirs) - len(odd), len(theirs)))
        case.equal(odd, {}, "files of drover and of the original client")
    both.purge("files")
    for node in both.apart():
        both.servers[node].purge("web")


def test_owners():
    wanted = {"none": {}, "uid": {"Uid": 1}, "gid": {"Gid": 2}, "both": {"Uid": 3, "Gid": 4}, "root": {"Uid": 0, "Gid": 0}}
    both.run("owners", [task("t", "cd $NOMAD_TASK_DIR; stat -c '%n %u:%g %a' " + " ".join(wanted) + "; echo on; " + WAITS,
                             Templates=[template("x", "local/" + name, Perms="640", **more) for name, more in wanted.items()])])
    both.wait_said("owners")
    compare(["owners"], both.said, "owners of files")
    both.purge("owners")


# Only with what the shell itself has.
READ = "for f in %s; do while IFS= read -r line; do echo \"$f: $line\"; done <$f; done; "


def test_exec_driver():
    for node in both.nodes:
        both.put("exec", node, v="1")
    made = [template(OWN % "value {{ .v }}" + "\n{{ env \"NOMAD_TASK_DIR\" }} {{ env \"NOMAD_SECRETS_DIR\" }} {{ env \"NOMAD_ALLOC_DIR\" }}\n", dest)
            for dest in ("local/a/b", "secrets/s", "${NOMAD_ALLOC_DIR}/shared", "${NOMAD_TASK_DIR}/t", "sub/x")]
    files = "/local/a/b /secrets/s /alloc/shared /local/t /sub/x"
    script = READ % files + "echo on; while read -r line </local/a/b && [ \"$line\" = 'value 1' ]; do sleep 0.1; done; " + READ % "/local/a/b" + WAITS
    both.run("exec", [task("t", script, "exec", Templates=[{**t, "ChangeMode": "noop"} for t in made] + [template("FROM=file\n", "secrets/env", Envvars=True, ChangeMode="noop")])])
    both.wait_said("exec")
    for node in both.nodes:
        both.put("exec", node, v="2")
    wait_text("exec", "/local/a/b: value 2\n")
    compare(["exec"], lambda a: (both.said(a), without_missing(a)), "what tasks of the driver exec see, and their events")
    both.purge("exec")


def test_once():
    """A template with once stays as it is when the other one changes."""
    for node in both.nodes:
        both.put("once", node, v="1")
    made = [template(OWN % "once {{ .v }}\n", "local/once", Once=True), template(OWN % "value {{ .v }}\n", "local/v", ChangeMode="noop")]
    both.run("once", [task("t", "cat $NOMAD_TASK_DIR/once; while ! grep -q 2 $NOMAD_TASK_DIR/v; do sleep 0.1; done; cat $NOMAD_TASK_DIR/once $NOMAD_TASK_DIR/v; " + WAITS,
                           Templates=made)])
    wait_text("once", "once 1\n")
    for node in both.nodes:
        both.put("once", node, v="2")
    wait_text("once", "value 2\n")
    if "Once" in both.server.ask("/v1/job/once-" + THEIRS)["TaskGroups"][0]["Tasks"][0]["Templates"][0]:
        compare(["once"], lambda a: (both.said(a), without_missing(a)), "files with once")
    else:
        print("    these servers do not know it")
    both.purge("once")


def test_services_that_go_away():
    body = "<{{ range nomadService \"gone\" }}{{ .Port }};{{ end }}>\n"
    both.run("watch", [task("t", LOOP, Templates=[template(body, ChangeMode="noop")])])
    wait_text("watch", "<>\n")
    both.run_apart(lambda: api.job("gone", group={"Tasks": [task("t", WAITS)], "Services": [{"Name": "gone", "Provider": "nomad", "PortLabel": "8099"}]}))
    wait_text("watch", "<8099;>\n")
    for node in both.apart():
        both.servers[node].purge("gone")
    wait_text("watch", "<8099;>\n<>\n")
    compare(["watch"], lambda a: (both.said(a), without_missing(a)), "services that come and go")
    both.purge("watch")


LINES = """# a comment
A=plain
B="two words" # said
C='single $HOME "x"'
  export D=exported
E=
F="tab\\tnew\\nline \\u00e9"
G=a=b=c
H="a"'b'c
I= spaced
J = wide
K=x#y
L="#"
M='it''s'
N.o-p=dotted
lower=ü
Q=trail   

R=a\\nb
S="${NOMAD_TASK_NAME}"
T=$HOME
A=again
"""


def test_variables_of_env():
    for name, lines in (("env", LINES), *(("env%d" % i, line) for i, line in enumerate(("X='a", 'X="a', "X", "=x", "X Y=1", "1=2", "é=1", "X=\r\nY=2", "export =1", 'X="\\q"')))):
        both.run(name, [task("t", "printf '[%s]' " + " ".join('"$%s"' % k for k in "ABCDEFGHIJKLMQRSTXY") + "; env | grep -aE '^(lower|N.o-p|1|X Y|é)=' | sort; echo on; ",
                             Templates=[template(lines, "local/e", Envvars=True)])])
    odd = []
    for name in ["env"] + ["env%d" % i for i in range(10)]:
        found = both.until(name, lambda a: a["ClientStatus"] in ("complete", "failed"), "end")
        seen = {n: (a["ClientStatus"], both.said(a) if a["ClientStatus"] == "complete" else "") for n, a in found.items()}
        if any(one != seen[THEIRS] for one in seen.values()):
            odd.append((name, seen))
        both.purge(name)
    case.equal(odd, [], "variables")


LOOP = "while :; do cp $NOMAD_TASK_DIR/v new; cmp -s new old || { cat new; mv new old; }; sleep 0.1; done"
CHANGES = {
    "noop": ({"ChangeMode": "noop"}, LOOP),
    "file": ({"ChangeMode": "noop"}, "printf 'value 2\\n' > $NOMAD_TASK_DIR/mine; " + LOOP),
    "restart": ({"ChangeMode": "restart"}, "cat $NOMAD_TASK_DIR/v; " + WAITS),
    "signal": ({"ChangeMode": "signal", "ChangeSignal": "SIGUSR1"}, "trap 'echo signal; cat $NOMAD_TASK_DIR/v' USR1; cat $NOMAD_TASK_DIR/v; " + WAITS),
    "script": ({"ChangeMode": "script", "ChangeScript": {"Command": "/bin/sh", "Args": ["-c", "cp $NOMAD_TASK_DIR/v $NOMAD_TASK_DIR/copy.n; mv $NOMAD_TASK_DIR/copy.n $NOMAD_TASK_DIR/copy"],
                                                         "Timeout": 5 * S}},
               "cat $NOMAD_TASK_DIR/v; while :; do [ -e $NOMAD_TASK_DIR/copy ] && cat $NOMAD_TASK_DIR/copy && rm $NOMAD_TASK_DIR/copy; sleep 0.1; done"),
    "script-fails": ({"ChangeMode": "script", "ChangeScript": {"Command": "/bin/sh", "Args": ["-c", "exit 3"], "Timeout": 5 * S}},
                     LOOP),
    "script-kills": ({"ChangeMode": "script", "ChangeScript": {"Command": "/bin/sh", "Args": ["-c", "exit 3"], "Timeout": 5 * S, "FailOnError": True}},
                     "cat $NOMAD_TASK_DIR/v; " + WAITS),
}


FILE = '{{ if eq .v.Value "1" }}value 1\n{{ else }}{{ file (print (env "NOMAD_TASK_DIR") "/mine") }}{{ end }}'


def test_change_modes():
    for name, (more, script) in CHANGES.items():
        for node in both.nodes:
            both.put(name, node, v="1")
        both.run(name, [task("t", script, Templates=[template(OWN % (FILE if name == "file" else "value {{ .v }}\n"), **more)])], group=restarts(1))
    for name in CHANGES:
        wait_text(name, "value 1\n")
    for name in CHANGES:
        for node in both.nodes:
            both.put(name, node, v="2")
    for name in CHANGES:
        if name == "script-kills":
            both.until(name, lambda a: a["ClientStatus"] == "failed", "fail")
        else:
            wait_text(name, "value 2\n")
    both.until("script-fails", has("Task hook failed"), "tell it")
    # A client that needs more than three seconds for the first value says that it is missing.
    compare(CHANGES, lambda a: (a["TaskStates"]["t"]["Restarts"], both.said(a), [e for e in texts(a) if e[0] != "Template"]), "what tasks see and their events")
    both.purge(*CHANGES)


def test_a_blocked_task():
    body = "".join('{{ with nomadVar "more/%d" }}{{ .x }}{{ end }}' % i for i in range(5))
    both.run("blocked", [task("t", "cat $NOMAD_TASK_DIR/v; echo; echo on; " + WAITS, Templates=[template(body)])])
    both.until("blocked", has("Template"), "tell what is missing")
    compare(["blocked"], texts, "events of a blocked task")
    for i in range(5):
        if i == 3:
            both.until("blocked", has("Template", count=2), "tell what is still missing")
            compare(["blocked"], texts, "events while some are missing")
        both.do_apart("/v1/var/more/%d" % i, {"Path": "more/%d" % i, "Items": {"x": str(i)}})
    both.wait_said("blocked")
    # A client may say what is missing between the last two values, too.
    compare(["blocked"], lambda a: (both.said(a), [e for e in texts(a) if e[0] != "Template"]), "output and events")
    both.purge("blocked")


WRONG = {
    "syntax": template("{{ if }}"), "function": template("{{ nobody }}"), "denied": template('{{ plugin "x" }}'), "key": template(OWN % "{{ .none }}", ErrMissingKey=True),
    "map": template('{{ $m := parseJSON "{}" }}{{ $m.x }}', ErrMissingKey=True), "number": template('{{ parseInt "x" }}'), "env": template('{{ mustEnv "NONE" }}'),
    "outside": template("x", "${OUT}"), "absolute": template("x", "${ABSOLUTE}"), "file": template('{{ file "/etc/passwd" }}'), "nil": template("{{ .a.b.c }}"),
    "lines": template("=x", Envvars=True), "source": {"SourcePath": "local/none", "DestPath": "local/v", **QUICK}, "directory": template("x", "local"),
}


def test_wrong_templates():
    for name, made in WRONG.items():
        for node in both.nodes:
            both.put("wrong-" + name, node, v="1")
        both.run("wrong-" + name, [task("t", "echo started", Templates=[made], Env={"OUT": "../../../outside", "ABSOLUTE": "/tmp/outside"})])
    names = ["wrong-" + name for name in WRONG]
    for name in names:
        both.until(name, lambda a: a["ClientStatus"] in ("failed", "complete"), "fail")
    print("    " + "\n    ".join("%s: %s" % (name, why) for name, why in DIFFER.items()))
    compare([name for name in names if name[6:] not in DIFFER], lambda a: (a["ClientStatus"], kinds(a)), "events of wrong templates")
    for name in DIFFER:
        for alloc in both.allocs("wrong-" + name).values():
            case.equal(alloc["ClientStatus"], "failed", name)
    both.purge(*names)
    case.equal(os.path.exists("/tmp/outside"), False, "a file outside")


with alike.pair(alone=True) as both:
    case.run(globals())
