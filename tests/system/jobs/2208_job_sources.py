#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The source of a job is kept with each version: it is shown, survives a restart, follows reverts, and is deleted with its version."""
import json
import os
import shutil
import sqlite3
import tempfile

from lib import api, case

JOB = """# The source of a job.
variable "text" {
  default = "one"
}
variable "counts" {
  type = map(number)
}
variable "silent" {
  default = true
}
job "source" {
  group "g" {
    count = var.counts["g"]
    task "t" {
      driver = "raw_exec"
      config {
        command = "/bin/sleep"
        args    = ["1000"]
      }
    }
  }
}
"""


def submission(name, version):
    return node.ask("/v1/job/%s/submission" % name, version=version)


def missing(name, version):
    node.refused(404, "job source not found", "GET", "/v1/job/%s/submission?version=%d" % (name, version))


def rows(name):
    """Returns the versions of which state.db has the source. The agent holds the lock of the file, so a copy is read."""
    with tempfile.TemporaryDirectory() as copy:
        for part in ("", "-wal"):
            shutil.copy(node.data + "/state/state.db" + part, copy)
        db = sqlite3.connect(copy + "/state.db")
        found = db.execute("SELECT key FROM meta WHERE key GLOB ?", ("local_source/default/%s/*" % name,)).fetchall()
        db.close()
    return sorted(int(key.rpartition("/")[2]) for key, in found)


def with_source(made, text, **more):
    return dict(made, Submission={"Source": text, "Format": "hcl2", **more})


def test_the_command_sends_the_source_and_its_values():
    path, values = case.write(base + "/source.nomad.hcl", JOB), case.write(base + "/values.hcl", "counts = { g = 2 }\n")
    node.drover("job", "run", "-detach", "-var-file", values, "-var", "text=it's 50% + é", path, env={"NOMAD_VAR_silent": "false", "NOMAD_VAR_x": "y"})
    made = submission("source", 0)
    modified = node.ask("/v1/job/source")["JobModifyIndex"]
    case.equal(made, {"Source": JOB, "Format": "hcl2", "VariableFlags": {"text": "it's 50% + é", "silent": "false"},
                      "Variables": "counts = { g = 2 }\n\n", "Namespace": "default", "JobID": "source", "Version": 0,
                      "JobModifyIndex": modified})
    node.drover("job", "run", "-detach", "-var-file", values, "-var", "counts={g = 1}", path)
    case.equal((submission("source", 1)["Variables"], submission("source", 1)["VariableFlags"] or {}),
               ("counts = { g = 2 }\n\ncounts = {g = 1}", {}))
    # A registration that changes nothing makes no version, and the source stays.
    node.drover("job", "run", "-detach", "-var-file", values, "-var", "counts={g = 1}", case.write(base + "/same.nomad.hcl", "# another text\n" + JOB))
    case.equal((submission("source", 1)["Source"], rows("source")), (JOB, [0, 1]))
    plain = case.write(base + "/plain.json", json.dumps(api.job("plain")))
    node.drover("job", "run", "-detach", plain)
    made = submission("plain", 0)
    case.equal((made["Format"], json.loads(made["Source"])["Job"]["ID"]), ("json", "plain"))
    for version in ("", "?version=", "?version=-1", "?version=x"):
        node.refused(400, "Unable to parse job submission version parameter", "GET", "/v1/job/source/submission" + version)
    missing("source", 7)
    missing("none", 0)


def test_the_command_shows_the_source():
    case.equal(node.drover("job", "inspect", "-hcl", "-version", "0", "source").out, JOB)
    r = node.drover("job", "inspect", "-hcl", "-with-vars", "-version", "0", "source")
    case.equal(r.out, JOB)
    case.equal(r.err, "To register this source with the values that it had:\n"
                      "  drover job inspect -hcl -version 0 source | drover job run -var 'text=it'\\''s 50% + é' -var silent=false "
                      "-var-file VALUES -\nVALUES is a file with:\ncounts = { g = 2 }\n\n")
    case.equal(json.loads(node.drover("job", "inspect", "-version", "0", "source").out)["Job"]["TaskGroups"][0]["Count"], 2)
    case.equal(json.loads(node.drover("job", "inspect", "source").out)["Job"]["TaskGroups"][0]["Count"], 1)
    case.equal(json.loads(node.drover("job", "inspect", "-json", "source").out)["ID"], "source")
    for words, part in ((("-hcl", "-json"), "exclude each other"), (("-with-vars",), "-with-vars needs -hcl"),
                        (("-version", "9"), "has no version 9"), (("-hcl", "-version", "9"), "has no version 9"),
                        (("-t", "{{ .Job.ID"), "-t: parse: "), (("-t", "{{ .ID.x.y }}"), "-t: execute: "),
                        (("-t", "{{ key \"x\" }}"), "-t: kv.block(x) cannot be used here"), (("-t", "{{ env \"PATH\" }}"), "env")):
        case.contains(node.drover("job", "inspect", *words, "source", code=1).err, part)
    for text, said in (("{{ .ID }} {{ .JobModifyIndex }} {{ .Priority }}", "source %d 50\n" % node.ask("/v1/job/source")["JobModifyIndex"]),
                       ("{{ range .TaskGroups }}{{ .Name }}{{ end }}", "g\n")):
        case.equal(node.drover("job", "inspect", "-json", "-t", text, "source").out, said)
    case.equal(node.drover("node", "status", "-t", "{{ range . }}{{ .Status }}{{ end }}").out, "ready\n")


def test_reverts_scalings_and_stops_keep_the_source():
    made = api.job("kept")
    node.register(with_source(made, "first", VariableFlags={"a": "b"}))
    made["Job"]["Meta"] = {"a": "b"}
    node.register(with_source(made, "second"))
    node.do("POST", "/v1/job/kept/revert", {"JobID": "kept", "JobVersion": 0})
    case.equal((submission("kept", 2)["Source"], submission("kept", 2)["VariableFlags"]), ("first", {"a": "b"}))
    node.do("POST", "/v1/job/kept/scale", {"Count": 2, "Target": {"Group": "g"}})
    case.equal(submission("kept", 3)["Source"], "first")
    node.do("DELETE", "/v1/job/kept")
    case.equal((submission("kept", 4)["Source"], rows("kept")), ("first", [0, 1, 2, 3, 4]))
    # A job that is registered without a source has none, whatever the older versions have.
    node.register(made)
    missing("kept", 5)
    case.contains(node.drover("job", "inspect", "-hcl", "kept", code=1).err, 'version 5 of job "kept" was registered without its source')


def test_a_restart_keeps_sources():
    before = submission("source", 1)
    node.kill("supervisor")
    case.equal(submission("source", 1), before)
    missing("kept", 5)


def test_versions_that_are_forgotten_take_their_sources_along():
    made = api.job("many", count=0)
    for i in range(9):
        made["Job"]["Meta"] = {"n": str(i)}
        node.register(with_source(made, "source %d" % i))
    kept = [j["Version"] for j in node.ask("/v1/job/many/versions")["Versions"]]
    case.equal((kept, rows("many")), ([8, 7, 6, 5, 4, 3], [3, 4, 5, 6, 7, 8]))
    missing("many", 2)
    node.purge("many")
    case.until(lambda: rows("many") == [], 20, "the sources of a purged job to be deleted")
    missing("many", 8)
    node.register(made)
    missing("many", 0)
    # A job that is registered again while its purge waits for its allocations.
    node.register(with_source(made, "again"))
    node.do("DELETE", "/v1/job/many?purge=true")
    missing("many", 0)


def test_large_sources_are_left_out():
    made = api.job("large")
    answer = node.register(with_source(made, "x" * 999900, Variables="y" * 100))
    case.equal((answer["Warnings"], len(submission("large", 0)["Source"])), ("", 999900))
    made["Job"]["Meta"] = {"a": "b"}
    answer = node.register(with_source(made, "x" * 999900, Variables="y" * 99, VariableFlags={"a": "b"}))
    case.contains(answer["Warnings"], "the job's source is not stored: with its variables it has 1000001 bytes, the limit is 1000000")
    missing("large", 1)
    case.equal(node.ask("/v1/job/large")["Version"], 1)
    # The whole request is limited too; then the command leaves the source out.
    path = case.write(base + "/huge.nomad.hcl", "# " + "é\t" * 400000 + "\n" + JOB)
    out = node.drover("job", "run", "-detach", "-var", "counts={g = 1}", path).out
    case.contains(out, "Warning: the job's source is not stored, because the request with it is too large")
    missing("source", node.ask("/v1/job/source")["Version"] + 1)


def test_wrong_sources_are_refused():
    made = api.job("wrong")
    for value, part in (({"Source": 1}, "Source"), ({"Source": "x", "VariableFlags": ["a"]}, "VariableFlags"), ([], "Submission: expected an object")):
        node.refused(400, part, "POST", "/v1/jobs", dict(made, Submission=value))
    case.equal(node.request("GET", "/v1/job/wrong").status, 404)
    node.register(dict(made, Submission=None))
    missing("wrong", 0)
    made["Job"]["Meta"] = {"a": "b"}
    node.register(with_source(made, ""))
    missing("wrong", 1)


def test_sources_are_not_in_memory():
    pid = node.processes()["supervisor"]

    def memory():
        with open("/proc/%d/status" % pid, encoding="ascii") as f:
            return int(f.read().split("RssAnon:")[1].split()[0])
    made = api.job("big", count=0)
    text = os.urandom(450000).hex()
    node.register(with_source(made, text))
    before = memory()
    for i in range(40):
        made["Job"]["ID"] = "big-%d" % i
        node.register(with_source(made, text))
    case.equal(submission("big-39", 0)["Source"], text)
    print("    40 sources of 900 kB: %d kB more" % (memory() - before))
    case.equal(memory() - before < 12000, True, "memory")


base = case.directory()
with api.Node() as node:
    case.run(globals())
