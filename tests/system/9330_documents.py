#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What PRIVSEP.md and docs/advisories.md say is shown by tests: each row of their tables names some, and each named one exists."""
import os
import re

from lib import ROOT, case

TEST = re.compile(r"`(?:(\d{4}) (test_\w+)|(unit|fuzz)/(\w+))`")
# What the threat model has to say of each actor. Files of other allocations, files of the host, other processes, requests to the
# privileged helpers, secrets, denial of service, the control API, servers of the cluster.
REACHES = {"files", "host", "processes", "helpers", "secrets", "service", "api", "servers"}


def table(path, first):
    """Rows of the table whose head's first cell is `first`, without head and rule."""
    with open(ROOT + path, encoding="utf-8") as f:
        lines = f.read().split("\n| %s |" % first)[1].split("\n\n")[0].splitlines()
    return [[c.strip() for c in line.strip("|").split("|")] for line in lines[2:]]


def exists(number, name, kind, program):
    directory = ROOT + "/tests/" + (kind or "system")
    if kind:
        return os.path.exists("%s/%s.c" % (directory, program))
    files = [directory + "/" + f for f in os.listdir(directory) if f.startswith(number + "_")]
    if not files:
        return False
    with open(files[0], encoding="utf-8") as f:
        return "def %s(" % name in f.read()


def check_rows(rows, shown_by):
    for row in rows:
        named = TEST.findall(row[shown_by])
        assert named, "no test shows the row: " + " | ".join(row)
        for test in named:
            assert exists(*test), "%s is named by %s, and is not there" % (" ".join(test).strip(), row[0])


def test_each_advisory_has_a_test():
    rows = table("/docs/advisories.md", "advisory")
    assert len(rows) > 25, rows
    check_rows(rows, 3)


def test_each_cell_of_the_threat_model_has_a_test():
    rows = table("/PRIVSEP.md", "who")
    check_rows(rows, 3)
    said = {}
    for who, reaches, _, _ in rows:
        words = set(reaches.split(", "))
        case.equal(words - REACHES, set(), "words that are none: " + who)
        case.equal(words & said.setdefault(who, set()), set(), "said twice of " + who)
        said[who] |= words
    case.equal({who: REACHES - words for who, words in said.items() if words != REACHES}, {}, "what is not said")


case.run(globals())
