# SPDX-License-Identifier: Apache-2.0
"""Compares facts about dockerd and drover, {name: value} each: each difference must be a row of a table in docs/differences.md, and each row a
difference. A row begins with the name between backquotes, where `*` stands for anything."""
import os
import re
import sys

DOCUMENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "differences.md")


def rows(heading):
    """Returns the first column of the table below this heading."""
    with open(DOCUMENT, encoding="utf-8") as f:
        part = f.read().split("\n## %s\n" % heading, 1)[1].split("\n## ", 1)[0]
    return re.findall(r"^\| `([^`]+)` \|", part, re.M)


def fits(key, pattern):
    return re.fullmatch(re.escape(pattern).replace(r"\*", ".*"), key)


def report(heading, cases):
    """cases: {name: {engine: facts}}. Prints differences that are no row, and rows that are no difference in any case; with -v all differences. Returns
    whether there were any."""
    known, found, new = rows(heading), set(), []
    for case, of in cases.items():
        docker, ours = of["dockerd"], of["drover"]
        differ = sorted(k for k in set(docker) | set(ours) if docker.get(k) != ours.get(k))
        print("%s: %d facts, %d differ" % (case, len(set(docker) | set(ours)), len(differ)))
        for key in differ:
            is_new = not any(fits(key, p) for p in known)
            if is_new or "-v" in sys.argv:
                print("%s%s" % ("new: " if is_new else "", key), *("    %-7s %s" % (engine, facts.get(key)) for engine, facts in of.items()), sep="\n")
            new += [key] * is_new
        found.update(differ)
    gone = [p for p in known if not any(fits(k, p) for k in found)]
    for pattern in gone:
        print("no difference any more: " + pattern)
    return bool(new or gone)
