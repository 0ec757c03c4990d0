# SPDX-License-Identifier: Apache-2.0
"""Reads metrics in Prometheus' text format and as OpenMetrics, strictly: an agent's answer that breaks a rule fails the test.

    found = exposition.parse(text)
    found["nomad_client_tasks_running"].one()
    found["drover_task_cpu_seconds_total"].value(task="web")
"""
import os
import re
import shutil
import subprocess

from . import case

NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*\Z")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|\Z)')
TYPES = {False: {"gauge", "counter", "histogram", "untyped"}, True: {"gauge", "counter", "histogram", "unknown"}}
ESCAPES = {'\\"': '"', "\\\\": "\\", "\\n": "\n"}


def check(text):
    """Lets promtool check the text, if this machine has it: Debian's package prometheus, or PROMETHEUS=directory."""
    program = shutil.which("promtool", path=os.environ.get("PROMETHEUS") or os.environ["PATH"])
    if not program:
        case.skip("there is no promtool")
    done = subprocess.run([program, "check", "metrics"], input=text.encode(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    case.equal((done.returncode, done.stdout.decode()), (0, ""), "promtool check metrics")


class Family:
    def __init__(self, name):
        self.name, self.kind, self.help, self.samples = name, None, None, []

    def values(self, **labels):
        """Returns the values of the samples that have these labels."""
        return [v for _, found, v in self.samples if all(found.get(k) == w for k, w in labels.items())]

    def value(self, **labels):
        found = self.values(**labels)
        case.equal(len(found), 1, "samples of %s with %s in %s" % (self.name, labels, self.samples[:5]))
        return found[0]

    def one(self):
        return self.value()


def read_labels(text):
    found, at = {}, 0
    while at < len(text):
        m = LABEL.match(text, at)
        assert m, "labels %r" % text
        assert m[1] not in found, "label %s twice in %r" % (m[1], text)
        found[m[1]] = re.sub(r'\\["\\n]', lambda e: ESCAPES[e[0]], m[2])
        at = m.end()
    assert not text.endswith(","), "labels %r" % text
    return found


def read_sample(line):
    m = re.match(r"([a-zA-Z_][a-zA-Z0-9_]*)(?:\{(.*)\})? (\S+)\Z", line)
    assert m, "sample %r" % line
    return m[1], read_labels(m[2] or ""), float(m[3])


def belongs(name, family, openmetrics):
    """A sample's name is its family's, or has a suffix of the family's type."""
    if family.kind == "histogram":
        return name in [family.name + s for s in ("_bucket", "_sum", "_count")]
    if family.kind == "counter" and openmetrics:
        return name == family.name + "_total"
    return name == family.name


def check_histogram(family):
    """The buckets of each histogram grow, and the last one has its count."""
    for count in [(labels, v) for name, labels, v in family.samples if name.endswith("_count")]:
        labels = [(found, v) for name, found, v in family.samples
                  if name.endswith("_bucket") and {k: v for k, v in found.items() if k != "le"} == count[0]]
        bounds = [float(found["le"]) for found, _ in labels]
        assert bounds == sorted(set(bounds)) and bounds[-1] == float("inf"), bounds
        assert [v for _, v in labels] == sorted(v for _, v in labels), labels
        case.equal(labels[-1][1], count[1], family.name)


def parse(text, openmetrics=False):
    """Returns the families by the name of their samples."""
    families, current, seen = {}, None, set()
    assert text.endswith("\n"), "the last line has no end"
    lines = text.split("\n")[:-1]
    if openmetrics:
        case.equal(lines.pop(), "# EOF", "the last line")
    for line in lines:
        if line.startswith("# "):
            word, name, rest = line[2:].split(" ", 2)
            assert word in ("HELP", "TYPE") and NAME.match(name), line
            if current is None or current.name != name:
                assert name not in families, "family %s is not in one piece" % name
                current = families[name] = Family(name)
            attribute = "help" if word == "HELP" else "kind"
            assert getattr(current, attribute) is None and not current.samples, "%s of %s twice" % (word, name)
            setattr(current, attribute, rest)
            continue
        name, labels, value = read_sample(line)
        assert current and current.kind in TYPES[openmetrics] and current.help, line
        assert belongs(name, current, openmetrics), "%s in family %s, which is a %s" % (name, current.name, current.kind)
        key = (name, tuple(sorted(labels.items())))
        assert key not in seen, "%s twice" % line
        seen.add(key)
        current.samples.append((name, labels, value))
    for family in families.values():
        assert family.samples, "family %s has no sample" % family.name
        if family.kind == "histogram":
            check_histogram(family)
    return {f.name + ("_total" if openmetrics and f.kind == "counter" else ""): f for f in families.values()}
