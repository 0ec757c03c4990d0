#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each row of the tables in PRIVSEP.md and docs/advisories.md names tests, and each of these exists. Files that documents and comments name
exist too, and the keys of containers are those of their table."""
import glob
import os
import re
import subprocess

from lib import ROOT, case

TEST = re.compile(r"`(?:(\d{4}) (test_\w+)|(unit|fuzz)/(\w+))`")
# What the threat model must cover for each actor: files of other allocations, files of the host, other processes, requests to the
# privileged helpers, secrets, denial of service, the control API, servers of the cluster.
REACHES = {"files", "host", "processes", "helpers", "secrets", "service", "api", "servers"}


def table(path, first):
    """Returns the rows of the table whose first heading is `first`."""
    with open(ROOT + path, encoding="utf-8") as f:
        lines = f.read().split("\n| %s |" % first)[1].split("\n\n")[0].splitlines()
    return [[c.strip() for c in line.strip("|").split("|")] for line in lines[2:]]


def exists(number, name, kind, program):
    directory = ROOT + "/tests/" + (kind or "system")
    if kind:
        return os.path.exists("%s/%s.c" % (directory, program))
    files = glob.glob("%s/*/%s_*.py" % (directory, number))
    if not files:
        return False
    with open(files[0], encoding="utf-8") as f:
        return "def %s(" % name in f.read()


def check_rows(rows, shown_by):
    for row in rows:
        named = TEST.findall(row[shown_by])
        assert named, "the row names no test: " + " | ".join(row)
        for test in named:
            assert exists(*test), "test %s, named in the row %s, does not exist" % (" ".join(test).strip(), row[0])


def test_each_advisory_has_a_test():
    for first in ("advisory", "advisory of an engine"):
        rows = table("/docs/advisories.md", first)
        assert len(rows) > 25, rows
        check_rows(rows, 3)


def test_each_fault_that_a_probe_finds_has_a_test():
    rows = table("/docs/health.md", "fault")
    assert len(rows) >= 12, rows
    check_rows(rows, 3)


def test_each_cell_of_the_threat_model_has_a_test():
    rows = table("/PRIVSEP.md", "actor")
    check_rows(rows, 3)
    said = {}
    for who, reaches, _, _ in rows:
        words = set(reaches.split(", "))
        case.equal(words - REACHES, set(), "unknown words in the rows of " + who)
        case.equal(words & said.setdefault(who, set()), set(), "listed twice for " + who)
        said[who] |= words
    case.equal({who: REACHES - words for who, words in said.items() if words != REACHES}, {}, "what is missing for each actor")


def test_each_kind_of_line_in_the_journal_is_documented():
    with open(ROOT + "/supervisor/core/journal_kinds.def", encoding="utf-8") as f:
        kinds = re.findall(r'^JOURNAL_KIND\((\w+), "([0-9a-f]{32})"\)', f.read(), re.M)
    case.equal([[row[0], row[1].strip("`")] for row in table("/docs/journal.md", "kind")], [list(k) for k in kinds])


def test_each_function_of_templates_is_documented_once():
    with open(ROOT + "/template/tpl_functions.def", encoding="utf-8") as f:
        functions = re.findall(r'^TPL_FUNCTION\("(\w+)"', f.read(), re.M)
    documented = [name for row in table("/docs/templates.md", "functions") for name in re.findall(r"`(\w+)`", row[0])]
    case.equal(sorted(documented), sorted(functions))


def test_each_metric_is_documented():
    made = subprocess.run([ROOT + "/tools/metrics-doc"], stderr=subprocess.PIPE, text=True, check=False)
    case.equal((made.returncode, made.stderr), (0, ""))


def files_of_the_tree():
    for directory, below, names in os.walk(ROOT):
        below[:] = [d for d in below if d != ".git" and not d.startswith("build")]
        yield from (os.path.relpath(os.path.join(directory, n), ROOT) for n in names)


def test_each_file_that_a_document_or_comment_names_exists():
    """Documents name files in backquotes, by the end of their path; comments name documents."""
    files = list(files_of_the_tree())
    known = {"/".join(f.split("/")[i:]) for f in files for i in range(f.count("/") + 1)}
    missing = []
    for f in files:
        if f.endswith(".md"):
            pattern = re.compile(r"`([\w./-]+\.(?:c|h|def|md|py|sh|proto|1))`")
        elif re.search(r"\.(c|h|def|proto|py|sh|mk)$|(^|/)Makefile$", f):
            pattern = re.compile(r"\b([A-Za-z][\w-]*\.md)\b")
        else:
            continue
        with open(os.path.join(ROOT, f), encoding="utf-8") as text:
            missing += ["%s: %s" % (f, name) for name in pattern.findall(text.read()) if name not in known]
    case.equal(missing, [], "names of files that do not exist")


def test_every_key_of_a_container_is_documented():
    with open(os.path.join(ROOT, "supervisor/driver/container_keys.c"), encoding="utf-8") as f:
        known = set(re.findall(r'^\t\{ "(\w+)", KEY_', f.read(), re.M))
    with open(os.path.join(ROOT, "docs/containers.md"), encoding="utf-8") as f:
        documented = {key for line in f if line.startswith("| `") for key in re.findall(r"`(\w+)`", line.split("|")[1])}
    case.equal(sorted(known ^ documented), [], "keys that only the code or only the table has")



def test_every_key_of_a_container_has_a_test():
    """A cell has "NUMBER" or "NUMBER part of the name of a test", and without a number it is a test of 2710."""
    tests = {}
    for path in glob.glob(ROOT + "/tests/system/*/[0-9]*.py"):
        with open(path, encoding="utf-8") as text:
            tests[os.path.basename(path)[:4]] = re.findall(r"^def test_(\w+)", text.read(), re.M)
    with open(os.path.join(ROOT, "docs/containers.md"), encoding="utf-8") as f:
        rows = [line.split("|")[1:5] for line in f if line.startswith("| `")]
    case.equal(len(rows) > 30, True, "rows")
    missing = []
    for key, _, _, cell in rows:
        for part in cell.split(";"):
            number, words = re.match(r"\s*(\d{4})?\s*(.*?)\s*$", part).groups()
            if not (number or words) or not any(words.replace(" ", "_") in name for name in tests.get(number or "2710", [])):
                missing.append((key.strip(), part.strip()))
    case.equal(missing, [], "keys whose tests do not exist")


case.run(globals())
