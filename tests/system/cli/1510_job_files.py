#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Job files in HCL: job run, plan, validate and init, and fmt."""
import json
import os
import time

from lib import api, case
from lib.fake_api import run_command

JOB = """# A job with variables.
variable "text" {
  type    = string
  default = "hello"
}

variable "counts" {
  type = map(number)
}

locals {
  greeting = upper("${var.text} from ${file("name.txt")}")
}

job "hcl" {
  group "g" {
    count = var.counts["g"]

    task "t" {
      driver = "raw_exec"

      config {
        command = "/bin/sh"
        args    = ["-c", "echo ${local.greeting} on ${node.unique.name}; exec sleep 1000"]
      }

      resources {
        cpu    = 20
        memory = 20
      }
    }
  }
}
"""


def write(name, text):
    path = base + "/" + name
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


def drover(*words, code=0, **kwargs):
    env = dict(kwargs.pop("env", {}), DROVER_ADDR="unix://" + node.socket_path)
    r = run_command(words, env=env, **kwargs)
    case.equal(r.code, code, "drover %s: %s%s" % (" ".join(words), r.out, r.err))
    return r


def test_a_job_file_runs():
    path = write("job.nomad.hcl", JOB)
    out = drover("job", "run", "-detach", "-var", "counts={g = 2}", path).out
    case.contains(out, 'Job "hcl" is registered')
    allocs = node.wait_running("hcl", 2)
    node.wait_said(allocs[0], b"\n")
    logs = drover("alloc", "logs", allocs[0]["ID"]).out
    name = node.ask("/v1/nodes")[0]["Name"]
    case.equal(logs, "HELLO FROM WORLD on %s\n" % name)


def test_plan_and_validate_read_the_same_file():
    path = base + "/job.nomad.hcl"
    drover("job", "plan", "-var", "counts={g = 2}", path)
    out = drover("job", "plan", "-var", "counts={g = 3}", path, code=1).out
    case.contains(out, "Count")
    case.contains(drover("job", "validate", "-var", "counts={g = 1}", path).out, "The job is valid")


def test_values_come_from_files_the_environment_and_standard_input():
    path = base + "/job.nomad.hcl"
    values = write("values.hcl", 'text   = "good day"\ncounts = { g = 1 }\n')
    made = json.loads(drover("job", "run", "-output", "-var-file", values, path).out)["Job"]
    args = made["TaskGroups"][0]["Tasks"][0]["Config"]["args"]
    case.equal(args[1], "echo GOOD DAY FROM WORLD on ${node.unique.name}; exec sleep 1000")
    made = json.loads(drover("job", "run", "-output", "-var-file", write("values.json", '{"text": "json", "counts": {"g": 1}}'), path).out)["Job"]
    case.contains(made["TaskGroups"][0]["Tasks"][0]["Config"]["args"][1], "echo JSON FROM WORLD")
    made = json.loads(drover("job", "run", "-output", "-var-file", values, path, env={"NOMAD_VAR_text": "env"}).out)["Job"]
    case.contains(made["TaskGroups"][0]["Tasks"][0]["Config"]["args"][1], "GOOD DAY")
    made = json.loads(drover("job", "run", "-output", "-var", "counts={g = 1}", path, env={"NOMAD_VAR_text": "env"}).out)["Job"]
    case.contains(made["TaskGroups"][0]["Tasks"][0]["Config"]["args"][1], "ENV FROM WORLD")
    text = 'job "in" {\n  type = "batch"\n}\n'
    case.equal(json.loads(drover("job", "run", "-output", "-", stdin=text.encode()).out)["Job"]["Type"], "batch")


def test_inspect_shows_the_job_of_a_file():
    path = write("shown.nomad.hcl", JOB)
    words = ("job", "inspect", "-var", "counts={g = 2}")
    wanted = drover("job", "run", "-output", "-var", "counts={g = 2}", path).out
    case.equal(drover(*words, path).out, wanted)
    text = JOB.replace('file("name.txt")', '"here"')
    case.equal(json.loads(drover(*words, "-json", "-", stdin=text.encode()).out)["TaskGroups"][0]["Count"], 2)
    case.contains(drover(*words, "-hcl", path, code=1).err, "for registered jobs")
    case.contains(drover("job", "inspect", "shown.nomad.hcl", code=1).err, 'job "shown.nomad.hcl"')


def test_json_is_read_as_before():
    path = write("job.json", json.dumps(api.job("json")["Job"]))
    case.equal(json.loads(drover("job", "run", "-output", path).out)["Job"]["ID"], "json")
    r = drover("job", "run", "-var", "a=b", path, code=1)
    case.equal(r.err, "drover: %s is JSON: -var and -var-file are for HCL\n" % path)


def test_problems_name_their_line():
    path = write("bad.nomad.hcl", 'job "bad" {\n  gruop "g" {}\n  priority = "high"\n}\n')
    r = drover("job", "run", path, code=1)
    case.equal(r.err, "drover: %s:3:14: wrong value: \"high\" is not a number\n"
                      "  3 |   priority = \"high\"\n"
                      "    |              ^^^^^^\n"
                      "drover: %s:2:3: unknown block \"gruop\" in a job block: did you mean \"group\"?\n"
                      "  2 |   gruop \"g\" {}\n"
                      "    |   ^^^^^\n"
                      "drover: %s has 2 errors\n" % (path, path, path))
    r = drover("job", "run", base + "/job.nomad.hcl", code=1)
    case.contains(r.err, 'variable "counts" has no value: set it with -var counts=')
    r = drover("job", "run", "-var", "counts={g = 1}", "-var", "txet=a", base + "/job.nomad.hcl", code=1)
    case.contains(r.err, 'declares no variable "txet": did you mean "text"?')


def test_templates_are_parsed():
    """With the engine that renders them: validate fails, plan and run warn."""
    blocks = 'template {\n data = "%s"\n destination = "local/one"\n }\n'
    good = blocks % 'a\\n{{ with nomadVar \\"x\\" }}{{ .y | toUpper }}{{ end }}'
    turned = 'template {\n data = "{{ if }} << len >>"\n destination = "local/two"\n left_delimiter = "<<"\n right_delimiter = ">>"\n }\n'
    file = 'job "texts" {\n group "g" {\n task "t" {\n driver = "raw_exec"\n config {\n command = "/bin/true"\n }\n%s }\n }\n}\n'
    for texts, said in ((blocks % "a\\n{{ nosuch 1 }}", ['task "t", template "local/one", line 2: function "nosuch" not defined: correct it, or the task cannot start']),
                        (blocks % "{{ if }}" + turned.replace("len", ""), [
                            'task "t", template "local/one", line 1: missing value for if: correct it, or the task cannot start',
                            'task "t", template "local/two", line 1: missing value for command: correct it, or the task cannot start'])):
        path = write("texts.hcl", file % texts)
        case.equal(drover("job", "validate", path, code=1).err.splitlines(), ["drover: " + line for line in said])
        case.contains(drover("job", "validate", "-json", path, code=1).err, said[0])
        for words in (("plan",), ("run", "-detach")):
            out = drover("job", *words, path, code=1 if words == ("plan",) else 0).out
            case.equal([line for line in out.splitlines() if "template" in line], ["Warning: " + line for line in said], str(words))
    path = write("texts.hcl", file % (good + turned))
    case.equal(drover("job", "validate", path).out, "The job is valid\n")
    node.purge("texts")


def test_hostile_files_end_soon():
    laughs = "".join("  l%d = [local.l%d, local.l%d, local.l%d, local.l%d]\n" % (i, *(i - 1,) * 4) for i in range(1, 30))
    files = {
        "deep": "a = " + "[" * 500000,
        "blocks": "a {\n" * 100000,
        "laughs": 'locals {\n  l0 = "lol"\n%s}\njob "j" {\n  region = jsonencode(local.l29)\n}\n' % laughs,
        "heredoc": 'job "j" {\n  region = <<EOT\n%sEOT\n}\n' % ("x" * 99 + "\n") * 100000,
        "garbage": "\x00\x01\ufffd\x7f" * 1000,
    }
    for name, text in files.items():
        path = write(name + ".hcl", text)
        began = time.monotonic()
        r = drover("job", "run", "-output", path, code=1)
        print("    %s: %.2f s" % (name, time.monotonic() - began))
        case.equal(0 < len(r.err) < 4000, True, "%s: %d bytes" % (name, len(r.err)))


def test_init_writes_a_job_that_runs():
    path = base + "/example.nomad.hcl"
    case.contains(drover("job", "init", path).out, "is written")
    drover("fmt", "-check", path)
    case.contains(drover("job", "init", path, code=1).err, "exists already")
    short = base + "/short.nomad.hcl"
    drover("job", "init", "-short", short)
    drover("fmt", "-check", short)
    with open(short, encoding="utf-8") as f:
        case.equal("#" in f.read(), False)
    both = [json.loads(drover("job", "run", "-output", p).out) for p in (path, short)]
    case.equal(both[0], both[1])
    case.contains(drover("job", "validate", path).out, "The job is valid")


def test_fmt_aligns_and_keeps_the_rest():
    ugly = 'job "f" {\ntype="batch"   # why\n  priority   =   3\n  group   "g"{\n    task "t" { driver="exec" }\n  }\n}\n'
    pretty = 'job "f" {\n  type     = "batch" # why\n  priority = 3\n  group "g" {\n    task "t" { driver = "exec" }\n  }\n}\n'
    os.mkdir(base + "/tree")
    os.mkdir(base + "/tree/below")
    one, two = write("tree/a.nomad.hcl", ugly), write("tree/below/b.nomad", ugly)
    os.chmod(one, 0o640)
    r = drover("fmt", "-check", base + "/tree", code=1)
    case.equal(r.out, one + "\n")
    case.equal(open(one, encoding="utf-8").read(), ugly)
    case.equal(drover("fmt", "-recursive", base + "/tree").out, one + "\n" + two + "\n")
    case.equal([open(p, encoding="utf-8").read() for p in (one, two)], [pretty, pretty])
    case.equal(os.stat(one).st_mode & 0o777, 0o640)
    case.equal(drover("fmt", "-recursive", base + "/tree").out, "")
    case.equal(drover("fmt", "-", stdin=ugly.encode()).out, pretty)
    case.equal(drover("fmt", "-list=false", "-write=false", write("c.hcl", ugly)).out, pretty)
    case.contains(drover("fmt", write("bad.hcl", "a = \n"), code=1).err, "bad.hcl:1:5: expected a value")
    case.contains(drover("fmt", write("text.txt", "a = 1\n"), code=1).err, "only files named .hcl or .nomad")
    case.contains(drover("fmt", base + "/none.hcl", code=1).err, "none.hcl: No such file")


base = case.directory()
write("name.txt", "world")
with api.Node() as node:
    case.run(globals())
