#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the tree's layers: which directory may name which, by its includes and by its compiled objects.

tools/layers.py [-v]

The table `law` below has, for each room, the rooms that it may name. An arrow is an #include of another room's header, or a symbol of another room's
object that an object refers to. The check fails for an arrow that is not permitted, for a header of more than HEADER_LINES lines or with another
include guard than DROVER_<path>_H, for a cycle of calls across rooms, and for one of more than CYCLE_FILES files inside a room. The two tables of
exceptions only shrink: an exception that is no longer needed fails too. -v prints the permitted cycles. It reads the objects in $DROVER_BUILD (default build/), so run it after `make`.
"""
import os
import re
import subprocess
import sys

HEADER_LINES = 150
CYCLE_FILES = 6
BASE = ("common", "model", "model/engine", "proto")
PROCESSES = ("launcher", "mount-helper", "file-helper", "exec-helper", "executor", "csi-helper", "heartbeat", "check-helper", "job-parser",
             "fetcher", "template-renderer", "listener", "image-fetcher", "image-unpacker", "network-helper", "holder", "cli")
# The supervisor's layers, lowest first: each may name those on lines before it, but not those on its own line.
LAYERS = (
    ("core",),
    ("audit",),  # the file of the audit log
    ("source/source.h",),  # work and the node's state: how higher layers request claims and report changes
    ("table",),
    ("node", "http"),
    ("driver",),
    ("volume", "image"),
    ("service",),
    ("health",),
    ("alloc",),
    ("acl",),
    ("source",),  # source_api.h: what a source adds to the API
    ("metrics",),
    ("api",),
    ("server", "cluster"),
)
# The rooms of the embedded server, lowest first; supervisor/server/ itself (local.c) puts them together.
SERVER = ("base", "feed", "sign", "acl", "capacity", "job", "claim", "variable", "deploy", "place", "drive", "api")
NOT_HTTP = ("node", "driver", "volume", "service", "health", "alloc")


def rooms():
    """For each room (a directory, or a file that is a room by itself) the rooms that it may name."""
    law = {"proto": set(), "common": {"proto"}, "model/engine": {"common", "proto"}, "model": {"common", "model/engine", "proto"}}
    law.update({p: set(BASE) for p in PROCESSES})
    law["contrib"] = set(BASE)
    law["config"] = {"common", "proto", "hcl"}
    law["lang"] = {"common", "proto"}
    law["hcl"] = {"common", "proto", "lang"}
    law["template"] = {"common", "proto", "lang"}
    law["jobspec"] = {"common", "proto", "hcl", "lang"}
    law["cli"] |= {"config", "template"}
    for name in ("cli", "job-parser"):
        law[name] |= {"hcl", "jobspec"}
    law["template-renderer"].add("template")
    law["launcher"].add("config")
    below = set(BASE)
    for layer in LAYERS:
        for name in layer:
            law["supervisor/" + name] = set(below)
        below |= {"supervisor/" + name for name in layer}
    # http knows neither allocs nor sources, and only api and higher layers know http.
    law["supervisor/http"] = set(BASE) | {"supervisor/core", "supervisor/audit"}
    for name in NOT_HTTP:
        law["supervisor/" + name].discard("supervisor/http")
    law["supervisor"] = below  # sup_main.c
    law["supervisor/acl"] = {"common", "proto", "hcl"}
    for name in SERVER:
        law["supervisor/server/" + name] = set(law["supervisor/server"])
        law["supervisor/server"].add("supervisor/server/" + name)
    return law


ROOMS = rooms()

# The exceptions: {(file or room, file or room that it names)}, {room: files in its largest cycle of calls}.
ARROWS = set()
CYCLES = {}


class Tree:
    def __init__(self, root, build):
        self.root, self.build = root, build
        self.files = sorted(f for top in sorted({r.split("/")[0] for r in ROOMS}) for f in sources(root, top))

    def text(self, path):
        with open(os.path.join(self.root, path), encoding="utf-8") as f:
            return f.read()

    def includes(self):
        """Yields (file, included file) for files in the tree; generated code belongs to the directory of its source."""
        for path in self.files:
            for name in re.findall(r'^\s*#\s*include\s*["<]([^">]+)[">]', self.text(path), re.M):
                name = self.named(path, name)
                if room_of(name):
                    yield path, name

    def named(self, path, name):
        """Returns the path from the root of the file that an #include "name" in path means: the compiler first looks beside path."""
        beside = os.path.normpath(os.path.join(os.path.dirname(path), name))
        return beside if os.path.exists(os.path.join(self.root, beside)) else os.path.normpath(name)

    def objects(self):
        """Yields (source file, its object) for every compiled source."""
        for path in self.files:
            obj = os.path.join(self.build, "obj", os.path.splitext(path)[0] + ".o")
            if path.endswith((".c", ".cc")) and os.path.exists(obj):
                yield path, obj


def sources(root, top):
    for where, dirs, names in os.walk(os.path.join(root, top)):
        dirs.sort()
        for name in names:
            if name.endswith((".c", ".cc", ".h")):
                yield os.path.relpath(os.path.join(where, name), root)


def room_of(path):
    """Returns the room with the longest name that contains path, or None for a path outside the tree."""
    at = path
    while at:
        if at in ROOMS:
            return at
        at = os.path.dirname(at)
    return None


def run(*argv):
    return subprocess.run(argv, stdout=subprocess.PIPE, check=True, text=True).stdout


def references(tree):
    """Returns two sets of (file, file) where the first refers to a symbol that the second defines; the second set has only the calls."""
    objects = dict(tree.objects())
    if not objects:
        sys.exit("%s has no objects: build first" % tree.build)
    of_object = {obj: path for path, obj in objects.items()}
    defined, wanted, calls, at = {}, [], set(), None
    # -A prints the object's name in each line.
    for line in run("nm", "-A", "-P", *of_object).splitlines():
        obj, symbol, kind = re.match(r"(.*?): (\S+) (\S)", line).groups()
        if kind == "U":
            wanted.append((of_object[obj], symbol))
        elif kind.isupper() and symbol != "main":
            defined.setdefault(symbol, of_object[obj])
    for line in run("readelf", "-rW", *of_object).splitlines():
        if line.startswith("File: "):
            at = of_object[line[6:]]
        match = re.search(r"R_\w+_(?:PLT32|CALL26|JUMP26)\s+\S+\s+([A-Za-z_]\w*)", line)
        if match and match.group(1) in defined:
            calls.add((at, defined[match.group(1)]))
    return {(path, defined[s]) for path, s in wanted if s in defined}, calls


def cycles(edges):
    """Returns the strongly connected components of more than one file (Tarjan's algorithm), each sorted."""
    after, index, low, stack, found = {}, {}, {}, [], []
    for a, b in sorted(edges):
        after.setdefault(a, []).append(b)

    def visit(v):
        index[v] = low[v] = len(index)
        stack.append(v)
        for w in after.get(v, ()):
            if w not in index:
                visit(w)
            low[v] = min(low[v], low[w] if w in stack else low[v])
        if low[v] == index[v]:
            part = stack[stack.index(v):]
            del stack[stack.index(v):]
            if len(part) > 1:
                found.append(sorted(part))

    sys.setrecursionlimit(10000)
    for v in list(after):
        if v not in index:
            visit(v)
    return found


def exceptions_of(a, b):
    """Returns the exceptions that permit an arrow from file a to file b."""
    return {(x, y) for x in (a, room_of(a)) for y in (b, room_of(b))} & ARROWS


def check_arrows(tree, refs, bad):
    used = set()
    arrows = [(a, b, "includes") for a, b in tree.includes()] + [(a, b, "refers to a symbol of") for a, b in sorted(refs)]
    for a, b, verb in arrows:
        here, there = room_of(a), room_of(b)
        if here == there or there in ROOMS[here]:
            continue
        used |= exceptions_of(a, b)
        if not exceptions_of(a, b):
            bad.append("%s %s %s: %s may not name %s" % (a, verb, b, here, there))
    for a, b in sorted(ARROWS - used):
        bad.append("there is no arrow from %s to %s any more: remove it from ARROWS in tools/layers.py" % (a, b))


def check_headers(tree, bad):
    for path in tree.files:
        if not path.endswith(".h"):
            continue
        text = tree.text(path)
        lines = text.count("\n")
        guard = re.search(r"^#ifndef (\w+_H)$", text, re.M)
        right = "DROVER_%s" % re.sub(r"\W", "_", path).upper()
        if lines > HEADER_LINES:
            bad.append("%s: %d lines, a header has at most %d" % (path, lines, HEADER_LINES))
        if guard and guard.group(1) != right:
            bad.append("%s: its include guard is %s, and must be %s" % (path, guard.group(1), right))


def check_cycles(calls, verbose, bad):
    largest = {}
    for part in cycles({arrow for arrow in calls if not exceptions_of(*arrow)}):
        names = {room_of(p) for p in part}
        room = names.pop()
        if names:
            bad.append("a cycle of calls goes through several rooms: %s" % " ".join(part))
            continue
        largest[room] = max(largest.get(room, 0), len(part))
        if len(part) > CYCLES.get(room, CYCLE_FILES):
            bad.append("%s: a cycle of calls goes through %d files, at most %d are allowed: %s" %
                       (room, len(part), CYCLES.get(room, CYCLE_FILES), " ".join(part)))
        elif verbose:
            print("%s: a cycle of %d: %s" % (room, len(part), " ".join(os.path.basename(p) for p in part)))
    for room in sorted(CYCLES):
        if largest.get(room, 0) <= CYCLE_FILES:
            bad.append("%s has no large cycle of calls any more: remove it from CYCLES in tools/layers.py" % room)


def faults(tree, verbose=False):
    bad = []
    refs, calls = references(tree)
    check_arrows(tree, refs, bad)
    check_headers(tree, bad)
    check_cycles(calls, verbose, bad)
    return bad


def main():
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    bad = faults(Tree(root, os.environ.get("DROVER_BUILD") or os.path.join(root, "build")), "-v" in sys.argv)
    print("\n".join(bad), end="\n" if bad else "")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
