# SPDX-License-Identifier: Apache-2.0
"""tools/layers.py: accepts a small correct tree, and reports each kind of forbidden reference that is added to it."""
import importlib.util
import os
import subprocess

from lib import ROOT, case

# A tree without a forbidden reference: {file: text}.
CLEAN = {
    "proto/ground.h": "int ground(void);",
    "common/noun.c": '#include "proto/ground.h"\nint ground(void) { return 0; }',
    "supervisor/core/turn.c": "int ground(void);\nint turn(void) { return ground(); }",
    "supervisor/core/turn.h": "int turn(void);",
    "supervisor/alloc/runner.c": '#include "supervisor/core/turn.h"\nint runner(void) { return turn(); }',
    "supervisor/alloc/runner.h": "int runner(void);",
    "supervisor/cluster/link.c": "int link_up(void) { return 0; }",
    "supervisor/cluster/link.h": "int link_up(void);",
    "launcher/lau.h": "int lau(void);",
    "supervisor/sup_main.c": '#include "supervisor/alloc/runner.h"\n#include "supervisor/cluster/link.h"\nint main(void) { return 0; }',
}


def load(root):
    spec = importlib.util.spec_from_file_location("layers", ROOT + "/tools/layers.py")
    layers = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(layers)
    layers.ARROWS, layers.CYCLES = set(), {}
    return layers, layers.Tree(root, root + "/build")


def found(planted, **exceptions):
    """Returns the output of the check for CLEAN with these files added, one problem per line."""
    root = case.directory()
    for path, text in {**CLEAN, **planted}.items():
        os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
        with open(os.path.join(root, path), "w", encoding="utf-8") as f:
            f.write(text + "\n")
    layers, tree = load(root)
    for name, value in exceptions.items():
        setattr(layers, name, value)
    for path in tree.files:
        obj = os.path.join(root, "build", "obj", path[:-2] + ".o")
        if path.endswith(".c"):
            os.makedirs(os.path.dirname(obj), exist_ok=True)
            subprocess.run(["gcc", "-fPIE", "-I", root, "-c", "-o", obj, os.path.join(root, path)], check=True)
    return "\n".join(layers.faults(tree))


def test_clean_tree_passes():
    case.equal(found({}), "")


def test_an_include_of_a_forbidden_room_is_reported():
    for path, header, here, there in (
            ("supervisor/core/a.c", "supervisor/alloc/runner.h", "supervisor/core", "supervisor/alloc"),
            ("supervisor/http/a.c", "supervisor/alloc/runner.h", "supervisor/http", "supervisor/alloc"),
            ("supervisor/server/job/a.c", "supervisor/cluster/link.h", "supervisor/server/job", "supervisor/cluster"),
            ("supervisor/alloc/a.c", "supervisor/source/source_api.h", "supervisor/alloc", "supervisor/source"),
            ("proto/a.h", "common/noun.h", "proto", "common"),
            ("launcher/a.c", "supervisor/core/turn.h", "launcher", "supervisor/core")):
        said = found({path: '#include "%s"' % header, header: CLEAN.get(header, "")})
        case.equal(said, "%s includes %s: %s may not name %s" % (path, header, here, there))


def test_an_include_that_does_not_begin_at_the_root_is_reported():
    for name in ('"../alloc/runner.h"', "<supervisor/alloc/runner.h>", '"supervisor/http/../alloc/runner.h"'):
        said = found({"supervisor/core/a.c": "#include %s" % name, "supervisor/http/a.h": ""})
        case.equal(said, "supervisor/core/a.c includes supervisor/alloc/runner.h: supervisor/core may not name supervisor/alloc")


def test_a_use_of_a_forbidden_symbol_without_its_header_is_reported():
    said = found({"supervisor/core/a.c": "int runner(void);\nint a(void) { return runner(); }"})
    case.equal(said, "supervisor/core/a.c refers to a symbol of supervisor/alloc/runner.c: supervisor/core may not name supervisor/alloc")
    said = found({"supervisor/server/a.c": "int link_up(void);\nint (*const a)(void) = link_up;"})
    case.contains(said, "supervisor/server may not name supervisor/cluster")


def test_a_header_that_is_too_long_is_reported():
    case.equal(found({"model/a.h": "\n" * 149}), "")
    case.equal(found({"model/a.h": "\n" * 150}), "model/a.h: 151 lines, a header has at most 150")


def test_an_include_guard_that_is_not_made_from_the_path_is_reported():
    case.equal(found({"model/a.h": "#ifndef DROVER_MODEL_A_H"}), "")
    case.equal(found({"model/a.h": "#ifndef DROVER_A_H"}), "model/a.h: its include guard is DROVER_A_H, and must be DROVER_MODEL_A_H")


def circle(n):
    return {"model/c%d.c" % i: "int c%d(void);\nint c%d(void) { return c%d(); }" % ((i + 1) % n, i, (i + 1) % n) for i in range(n)}


def test_a_cycle_of_calls_inside_a_room_is_reported():
    case.equal(found(circle(6)), "")
    case.contains(found(circle(7)), "model: a cycle of calls goes through 7 files, at most 6 are allowed: model/c0.c")


def test_a_cycle_of_calls_between_rooms_is_reported():
    planted = {"supervisor/cluster/link/a.c": "int b(void);\nint a(void) { return b(); }",
               "supervisor/cluster/node/b.c": "int a(void);\nint b(void) { return a(); }"}
    case.equal(found(planted), "")
    planted["supervisor/core/b.c"] = planted.pop("supervisor/cluster/node/b.c")
    case.contains(found(planted), "a cycle of calls goes through several rooms: supervisor/cluster/link/a.c supervisor/core/b.c")


def test_an_exception_that_is_no_longer_needed_is_reported():
    said = found({}, ARROWS={("proto", "common")}, CYCLES={"model": 9})
    case.equal(said.count("remove it from"), 2, said)


case.run(globals())
