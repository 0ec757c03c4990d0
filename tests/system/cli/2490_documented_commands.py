#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each command that the manual and the documents show is run with a real agent: in a pipe, and on terminals of 60 and 80 columns, where
its output must fit."""
import glob
import json
import os
import re

from lib import ROOT, api, case, screen, volumes
from lib.fake_api import run_command

JOB = """job "web" {
  group "a-group-with-a-long-name" {
    network {
      port "http" {}
    }
    update {
      min_healthy_time = "100ms"
    }
    service {
      name     = "web-frontend"
      port     = "http"
      provider = "nomad"
      check {
        type     = "tcp"
        interval = "2s"
        timeout  = "1s"
      }
    }
    task "main" {
      driver = "raw_exec"
      action "greet" {
        command = "/bin/echo"
        args    = ["hello"]
      }
      config {
        command = "/usr/bin/python3"
        args    = ["-m", "http.server", "${NOMAD_PORT_http}"]
      }
    }
  }
}
"""
PARENT = """
job "%s" {
  type = "batch"
  %s
  group "g" {
    task "t" {
      driver = "raw_exec"
      config { command = "/bin/true" }
    }
  }
}
"""

# The command lines that the test runs for each command of the manual; {alloc} and the like are replaced. A number is the exit code, 0 if there is none.
# Commands that change something come in an order in which each can succeed. None: it has tests of its own, because it runs until it is
# ended or needs a terminal.
RUNS = (
    ("version", "version"), ("help", "help", "help job run"), ("config validate", "config validate {config}", (1, "config validate /nowhere")),
    ("fmt", "fmt -check {file}"), ("job init", "job init {dir}/made.nomad.hcl"),
    ("job validate", "job validate {file}", (1, "job validate {bad}")), ("job plan", (1, "job plan {file}")),
    ("job run", "job run {file}", (1, "job run {bad}")), ("job status", "job status", "job status web"),
    ("status", "status", "status -verbose", "status web"), ("job allocs", "job allocs web"), ("job deployments", "job deployments web"),
    ("job history", "job history web"), ("job inspect", "job inspect web"), ("job eval", "job eval -detach web"),
    ("job tag apply", "job tag apply -name first web"), ("job tag unset", "job tag unset -name first web"),
    ("job promote", (1, "job promote web")), ("job revert", (1, "job revert web 99")),
    ("alloc status", "alloc status", "alloc status {alloc}", "alloc status -verbose {alloc}"), ("alloc why", "alloc why {alloc}", "alloc why web"),
    ("service list", "service list"), ("service info", "service info web-frontend"), ("service delete", (1, "service delete web-frontend none")),
    ("alloc checks", "alloc checks {alloc}"), ("alloc stats", "alloc stats {alloc}"), ("alloc logs", "alloc logs {alloc}"),
    ("alloc fs", "alloc fs {alloc}", "alloc fs -stat {alloc} alloc"), ("alloc exec", "alloc exec -t=false {alloc} /bin/echo hello"),
    ("action", "action -t=false -job web greet"), ("job action", "job action -t=false -job web greet"),
    ("alloc signal", "alloc signal -s SIGCONT {alloc}"), ("job restart", "job restart web"), ("alloc restart", "alloc restart {alloc}"),
    ("eval list", "eval list"), ("eval status", "eval status {eval}"), ("agent-info", "agent-info"),
    ("node status", "node status", "node status -self", "node status -self -stats -verbose"), ("node config", "node config -servers"),
    ("node eligibility", "node eligibility -enable"), ("node meta apply", "node meta apply rack=r1"), ("node meta read", "node meta read"),
    ("server members", (1, "server members")), ("plugin status", "plugin status", "plugin status local"),
    ("volume create", "volume create {volume}"), ("volume status", "volume status", "volume status demo"),
    ("volume claims", "volume claims", "volume claims demo"), ("volume doctor", "volume doctor", "volume doctor demo"),
    ("volume modify", (1, "volume modify demo tier=fast")),
    ("volume group-snapshot create", (1, "volume group-snapshot create local group none")),
    ("volume group-snapshot list", "volume group-snapshot list -plugin local"),
    ("volume group-snapshot status", (1, "volume group-snapshot status local none")),
    ("volume group-snapshot delete", (1, "volume group-snapshot delete local none")),
    ("volume snapshot create", (1, "volume snapshot create demo")), ("volume snapshot list", "volume snapshot list -plugin local"),
    ("volume snapshot delete", "volume snapshot delete local none"), ("volume deregister", "volume deregister -yes demo"),
    ("volume init", "volume init {dir}/made.volume.hcl"), ("volume detach", (1, "volume detach demo 00000000")),
    ("volume register", "volume register {known}"), ("volume delete", "volume delete -yes demo"),
    ("deployment list", "deployment list"), ("deployment status", "deployment status {deployment}"),
    ("deployment pause", "deployment pause {deployment}"), ("deployment resume", "deployment resume -detach {deployment}"),
    ("deployment promote", (1, "deployment promote -detach {deployment}")), ("deployment fail", "deployment fail {deployment}"),
    ("job dispatch", "job dispatch -detach called"), ("job periodic force", "job periodic force -detach timed"),
    ("job scale", "job scale -detach web 2"), ("alloc stop", "alloc stop -detach {alloc}"),
    ("image list", "image list"), ("image pull", (1, "image pull 127.0.0.1:1/none")), ("image remove", (1, "image remove none")),
    ("namespace list", "namespace list"), ("namespace apply", "namespace apply other"), ("namespace status", "namespace status other"),
    ("namespace delete", "namespace delete other"), ("operator api", "operator api /v1/jobs"), ("operator metrics", "operator metrics -format prometheus", (1, "operator metrics -format xml")), ("operator root keyring list", "operator root keyring list"),
    ("operator root keyring rotate", "operator root keyring rotate"), ("operator root keyring remove", (1, "operator root keyring remove none")),
    ("var put", "var put -force config/web color=blue", (1, "var put config/web color=red")), ("var get", "var get config/web", "var get -item color config/web"),
    ("var list", "var list", "var list config/"), ("var lock", "var lock config/web true"), ("var purge", "var purge config/web"),
    ("var init", "var init {dir}/made.nv.hcl"),
    # This agent has no ACLs; with them these commands run in 2480.
    ("acl bootstrap", (1, "acl bootstrap")), ("acl policy apply", (1, "acl policy apply p {file}")), ("acl policy info", (1, "acl policy info p")),
    ("acl policy list", (1, "acl policy list")), ("acl policy delete", (1, "acl policy delete p")),
    ("acl role create", (1, "acl role create -name r -policy p")), ("acl role info", (1, "acl role info r")), ("acl role list", (1, "acl role list")),
    ("acl role update", (1, "acl role update -name s r")), ("acl role delete", (1, "acl role delete r")),
    ("acl token create", (1, "acl token create -policy p")), ("acl token info", (1, "acl token info a")), ("acl token list", (1, "acl token list")),
    ("acl token self", (1, "acl token self")), ("acl token update", (1, "acl token update -name n a")), ("acl token delete", (1, "acl token delete a")),
    ("leaks", "leaks"), ("cleanup", "cleanup -dry-run"), ("node drain", (1, "node drain")),
    ("probe", "probe"), ("job logs", "job logs web"), ("node events", "node events"), ("node land", (1, "node land")), ("node retire", (1, "node retire -cancel")), ("node rejoin", (1, "node rejoin -data-dir /nonexistent")),
    ("job stop", "job stop web"), ("job start", "job start web"), ("job stop", "job stop -purge web"), ("system gc", "system gc"),
    ("agent", None), ("monitor", None), ("event stream", None))
# Their output is not a page: JSON, files and logs keep their lines.
AS_IT_IS = ("job inspect", "operator api", "operator metrics", "alloc logs", "job logs", "alloc exec", "action", "job action", "fmt", "job init", "volume init", "var init")


LISTED = re.findall(r"^  ([\w-]+(?: [\w-]+)*)  +\S", run_command(["help"]).out, re.M)


def documented():
    """Returns the commands of the manual, of code blocks and of text in documents, as lists of words without `drover`."""
    found = []
    with open(ROOT + "/docs/drover.1", encoding="utf-8") as f:
        found += [re.split(r"\s+", line)[3:] for line in f if line.startswith(".It Nm Cm ")]
    for path in ["README.md", "HACKING.md", "PRIVSEP.md", "CONTRIBUTING.md", *glob.glob("docs/*.md", root_dir=ROOT)]:
        with open("%s/%s" % (ROOT, path), encoding="utf-8") as f:
            text = f.read()
        found += [w.split() for w in re.findall(r"^\$ (?:build/)?drover ([^#&\n]*)", text, re.M)]
        found += [w.split() for w in re.findall(r"`drover ([^_`][^`]*)`", text)]
    return found


def name_of(words):
    """Returns the command that these words call, such as "job run"; None if there is none."""
    return next((n for n in (" ".join(words[:i]) for i in (4, 3, 2, 1)) if n in LISTED), None)


def test_every_command_that_a_document_shows_exists_with_its_flags():
    for words in documented():
        name = name_of(words)
        case.equal(name is None, False, "a command of the documents that does not exist: %s" % words)
        known = run_command(name.split() + ["-help"]).out
        for flag in [w for w in words if re.fullmatch("-[a-z][a-z-]+", w)]:
            case.equal(bool(re.search(r"%s\b" % flag, known)), True, "%s in %s" % (flag, words))


def test_every_command_of_the_help_is_in_the_manual_and_is_run_here():
    case.equal(sorted(set(LISTED) - {runs[0] for runs in RUNS}), [], "commands without a run")
    case.equal(sorted(set(LISTED) - {name_of(words) for words in documented()}), [], "commands without documentation")


def write(name, text):
    path = "%s/%s" % (base, name)
    with open(path, "w", encoding="utf-8", opener=lambda p, flags: os.open(p, flags, 0o600)) as f:
        f.write(text if isinstance(text, str) else json.dumps(text))
    return path


def fill(words):
    """Replaces {alloc} and the like by what exists now."""
    values = dict(files)
    if "{alloc}" in words or "{eval}" in words:
        alloc = case.until(lambda: [a for a in node.allocs("web") if a["ClientStatus"] == "running"], 30, "an allocation")[-1]
        values.update(alloc=alloc["ID"][:8], eval=alloc["EvalID"][:8])
    if "{deployment}" in words:
        values["deployment"] = node.ask("/v1/job/waits/deployment")["ID"][:8]
    return words.format(**values).split()


def prepare(name):
    """Brings back what the last run of this command has changed."""
    quiet = {"DROVER_ADDR": address}
    if name == "volume create":
        run_command(["volume", "delete", "-yes", "demo"], env=quiet)
    elif name in ("volume deregister", "volume delete"):
        run_command(["volume", "create", files["volume"]], env=quiet)
    elif name == "volume register":
        # The volume "demo" as the plugin knows it, which it still does when it is deregistered.
        run_command(["volume", "create", files["volume"]], env=quiet)
        files["known"] = write("known.json", dict(volume, ExternalID=node.ask("/v1/volume/csi/demo")["ExternalID"]))
        run_command(["volume", "deregister", "-yes", "demo"], env=quiet)
    elif name.startswith("deployment "):
        if "waits" in [j["ID"] for j in node.ask("/v1/jobs")]:
            node.purge("waits")
        node.do("POST", "/v1/jobs", waits)
    elif name in ("job init", "volume init"):
        for path in glob.glob(base + "/made.*"):
            os.unlink(path)
    elif name == "namespace delete":
        run_command(["namespace", "apply", "other"], env=quiet)


def check_run(name, code, words, width):
    prepare(name)
    filled = fill(words)
    if width == 0:
        r = run_command(filled, env={"DROVER_ADDR": address})
        case.equal(r.code, code, "drover %s: %s%s" % (" ".join(filled), r.out, r.err))
        case.equal([line for line in r.err.splitlines() if code and not line.startswith("drover: ")], [], "errors of %s" % words)
        case.equal("\x1b" in r.out + r.err, False, words)
        return
    shown = screen.Screen(filled, width, {"DROVER_ADDR": address})
    case.equal(shown.code, code, "drover %s: %s" % (" ".join(filled), shown.text))
    if name not in AS_IT_IS:
        screen.check_fits(shown, width, words)


def test_every_command_runs_and_fits_the_terminal():
    for width in (0, 60, 80):
        for name, *runs in RUNS:
            for run in runs:
                if run is not None:
                    check_run(name, *(run if isinstance(run, tuple) else (0, run)), width)


def test_the_help_of_every_command_fits_the_terminal():
    for name in LISTED:
        for width in (60, 80):
            screen.check_fits(screen.Screen(name.split() + ["-help"], width), width, name)


base = case.directory()
with volumes.Node() as node:
    address = "unix://" + node.socket_path
    files = {"dir": base, "file": write("web.nomad.hcl", JOB), "bad": write("bad.nomad.hcl", JOB.replace("raw_exec", "no_such_driver")),
             "config": write("agent.hcl", 'log_level = "warn"\n')}
    node.start_plugin()
    volume = {"ID": "demo", "Name": "demo", "PluginID": "local", "RequestedCapacityMin": 1 << 20,
              "RequestedCapabilities": [{"AccessMode": "single-node-writer", "AttachmentMode": "file-system"}]}
    files["volume"] = write("volume.json", volume)
    for parent, block in (("called", "parameterized {\n}"), ("timed", 'periodic { \ncrons = ["0 0 1 1 *"]\n }')):
        case.equal(run_command(["job", "run", write(parent + ".nomad.hcl", PARENT % (parent, block))], env={"DROVER_ADDR": address}).code, 0)
    waits = api.job("waits", group={"Update": {"MaxParallel": 1, "HealthCheck": "manual"}})
    case.run(globals())
