#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the same jobs with artifacts on drover, in a cluster and alone, and on a client of the servers' own program: the trees that their tasks
find, with modes, links and contents, and whether they fail, are the same, except for the differences that are listed here and in
docs/differences.md. For `make check-nomad NOMAD=path`.

    tests/nomad/isolated.py tests/nomad/check_artifacts.py PATH [test_…]…"""
import bz2
import gzip
import hashlib
import io
import lzma
import os
import sys
import tarfile
import urllib.parse
import zipfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from lib import case, s3, web  # noqa: E402
import alike  # noqa: E402
from alike import ALONE, OURS, THEIRS, task  # noqa: E402

BODY = b"hello\n" * 100
MD5 = hashlib.md5(BODY).hexdigest()
# What a task shows: path, type, mode, target of a link; and the sums of files. Not the inner files of repositories.
SHOW = r"""
cd "$NOMAD_TASK_DIR/.." && cd "%s" || exit 1
{
	find . -mindepth 1 -path '*/.git/*' -prune -o -printf '%%P %%y %%m %%l\n' | LC_ALL=C sort
	find . -path '*/.git' -prune -o -type f -exec md5sum {} + | LC_ALL=C sort
} 2>&1; echo end
exec sleep 1000
"""
SHOWN = "complete"  # the status of a task that has shown its tree; it goes on, because the original client loses what a task writes just before its end


# Cases that differ: why, and {status of drover, status of the original client}.
DIFFER = {
    "dest-0": ("an empty destination: for the client the task's directory, for drover local/", "complete", "complete"),
    **{"sum-%d" % i: ("a list of checksums without a url: the client fails, drover takes the one beside the source", "complete", "failed") for i in (1, 2)},
    "mode-dir": ("the client succeeds without a file, because http has no directories", "failed", "complete"),
    "sub-4": ("a file as subdirectory: the client succeeds without it", "failed", "complete"),
    "absolute-tar": ("an absolute name: the client takes it for a relative one", "failed", "complete"),
    **{"%s-tar" % kind: ("the client makes an empty file of it", "failed", "complete") for kind in ("out", "fifo", "device")},
    "inside-tar": ("a link that stays inside: the client makes an empty file of it", "complete", "complete"),
    "setuid-tar": ("the client keeps the sticky bit of directories", "complete", "complete"),
    **{"one-%s-file" % kind: ("the client makes the file with mode 0622", "complete", "complete") for kind in ("gz", "bz2", "xz")},
    **{"s3-" + kind: ("the client also takes an object whose name only begins with the directory's", "complete", "complete") for kind in ("dir", "dir2")},
    "s3-slash": ("a directory with a slash: the client takes it for an object", "complete", "failed"),
    "s3-none-dir": ("a directory that does not exist: the client succeeds without it", "failed", "failed"),
}


# --- archives ---

def tar(*entries):
    """entries: (name, type, contents or target, mode)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as t:
        for name, kind, what, mode in entries:
            info = tarfile.TarInfo(name)
            info.type, info.mode, info.mtime = kind, mode, 1000000000
            if kind == tarfile.REGTYPE:
                info.size = len(what)
                t.addfile(info, io.BytesIO(what))
            else:
                info.linkname = what
                t.addfile(info)
    return out.getvalue()


def file(name, contents=b"x", mode=0o644):
    return name, tarfile.REGTYPE, contents, mode


def directory(name, mode=0o755):
    return name, tarfile.DIRTYPE, "", mode


def link(name, target):
    return name, tarfile.SYMTYPE, target, 0o777


def zipped(*entries):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as z:
        for name, contents, mode in entries:
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            z.writestr(info, contents)
    return out.getvalue()


PLAIN = tar(file("top.txt", b"top\n"), directory("d"), file("d/in.txt", b"inside\n", 0o600), file("d/run", b"#!/bin/sh\n", 0o755), file("deep/er/x", b"1"))
ZIP = zipped(("top.txt", b"top\n", 0o100644), ("d/", b"", 0o40755), ("d/run", b"#!/bin/sh\n", 0o100755), ("deep/er/x", b"1", 0o100600))
ARCHIVES = {"a.tar": PLAIN, "a.tar.gz": gzip.compress(PLAIN), "a.tgz": gzip.compress(PLAIN), "a.tar.bz2": bz2.compress(PLAIN), "a.tbz2": bz2.compress(PLAIN),
            "a.tar.xz": lzma.compress(PLAIN), "a.txz": lzma.compress(PLAIN), "a.zip": ZIP,
            "one.gz": gzip.compress(BODY), "one.bz2": bz2.compress(BODY), "one.xz": lzma.compress(BODY)}
HOSTILE = {
    "up.tar": tar(file("../x")), "inner.tar": tar(file("a/../../x")), "absolute.tar": tar(file("/tmp/outside")), "through.tar": tar(link("l", "/tmp"), file("l/outside")),
    "out.tar": tar(file("a"), link("l", "/etc/passwd")), "fifo.tar": tar(("p", tarfile.FIFOTYPE, "", 0o644)), "device.tar": tar(("c", tarfile.CHRTYPE, "", 0o666)),
    "inside.tar": tar(file("a"), link("l", "a")), "setuid.tar": tar(file("s", mode=0o6755), directory("d", 0o1777), file("d/x")), "empty.tar": tar(),
    "cut.tgz": gzip.compress(PLAIN)[:-30], "garbage.tar": b"garbage" * 1000, "garbage.zip": b"garbage" * 1000, "up.zip": zipped(("../x", b"x", 0o100644)),
    "twice.tar": tar(file("a", b"1"), file("a", b"2")),
}
OBJECTS = {"one.txt": BODY, "dir/a.txt": b"a", "dir/b.txt": b"b", "dir/c.txt": b"c", "dir/sub/b c.txt": b"b c", "dir/sub/deep/er/x": b"x", "dir.txt/x": b"beside",
           "both": b"of both", "both/two": b"of both", "a.tgz": gzip.compress(PLAIN)}
SUMS = "%s  %s\n%s *%s\n" % ("0" * 32, "other.txt", MD5, "hello.txt")


def redirect(to):
    return lambda h: h.reply(b"", 302, [("Location", to)])


def files():
    found = {"/hello.txt": BODY, "/dir/hello.txt": BODY, "/run.sh": b"#!/bin/sh\n", "/b%20c.txt": BODY, "/moved": redirect("/hello.txt"), "/gone": redirect("/nothing"),
             "/loop": redirect("/loop"), "/sums": SUMS.encode(), "/none": b"0" * 32 + b"  other.txt\n", "/empty": b"",
             "/500": lambda h: h.reply(b"", 500), "/query": lambda h: h.reply(repr(sorted(urllib.parse.parse_qsl(h.path.partition("?")[2]))).encode()),
             "/headers": lambda h: h.reply(repr(sorted((k, v) for k, v in h.headers.items() if k.startswith("X-") or k == "Authorization")).encode())}
    found.update({"/" + name: data for name, data in {**ARCHIVES, **HOSTILE}.items()})
    found.update({"/r.git" + path: data for path, data in web.repository("of git\n").items()})
    return found


# --- jobs ---

def at(path, **more):
    return {"GetterSource": server.url + path, **more}


def ended(alloc):
    """Returns SHOWN and what the task has shown, or how else it ended."""
    if alloc["ClientStatus"] != "running":
        return alloc["ClientStatus"], ""
    return SHOWN, case.until(lambda: (lambda text: text if text.endswith("end\n") else None)(both.said(alloc)), 60, "the tree of " + alloc["JobID"])


def kinds(alloc):
    """Returns the types of its events, without those that the original client adds after the end."""
    found = [e["Type"] for e in alloc["TaskStates"]["t"]["Events"] or ()]
    while len(found) > 1 and found[-1] in both.left_out and found[-2] in ("Terminated", "Not Restarting"):
        found.pop()
    return found


def run_all(cases):
    """cases: {name: (artifacts, directory to show)}. Returns {name: {node: (status, output, types of events)}}."""
    for name, (artifacts, shown) in cases.items():
        both.run(name, [task("t", SHOW % shown, Artifacts=artifacts, Meta={"file": "hello", "up": "../../x"})])
    found = {}
    for name in cases:
        allocs = both.until(name, lambda a: a["ClientStatus"] in ("running", "complete", "failed"), "run or fail")
        found[name] = {n: (*ended(a), kinds(a)) for n, a in allocs.items()}
        for alloc in allocs.values():
            failures.extend((name, alloc["JobID"], e["DisplayMessage"]) for e in alloc["TaskStates"]["t"]["Events"] or () if e["Type"] == "Failed Artifact Download")
    both.purge(*cases)
    return found


def compare(cases):
    found, odd, same = run_all(cases), [], 0
    for name, seen in found.items():
        theirs = seen[THEIRS]
        if name.startswith("s3-"):  # the client lets everybody write objects
            theirs = (theirs[0], theirs[1].replace(" f 666 ", " f 644 "), theirs[2])
        reason, *statuses = DIFFER.get(name, ("",))
        if seen[OURS] != seen[ALONE]:
            odd.append((name, "differs from an agent that works alone", seen))
        elif reason:
            if (seen[OURS][0], theirs[0]) != tuple(statuses) or seen[OURS] == theirs:
                odd.append((name, "differs in another way than is known", seen))
            print("    %s: %s" % (name, reason))
        elif seen[OURS] != theirs:
            odd.append((name, seen))
        else:
            same += 1
    print("    %d of %d are the same" % (same, len(found)))
    if odd:
        print("\n".join("%s: %s" % f[1:] for f in failures if f[0] in [o[0] for o in odd]))
        raise AssertionError("they differ:\n" + "\n".join("%s\n  ours   %s\n  alone  %s\n  theirs %s" % (str(o[:-1]), o[-1][OURS], o[-1][ALONE], o[-1][THEIRS]) for o in odd))


def test_files():
    compare({
        "file": ([at("/hello.txt")], "local"), "in-dir": ([at("/dir/hello.txt")], "local"), "mode": ([at("/run.sh")], "local"), "empty": ([at("/empty")], "local"),
        "two": ([at("/hello.txt"), at("/run.sh")], "local"), "query": ([at("/query?b=1&a=2")], "local"), "options": ([at("/query", GetterOptions={"x": "y z"})], "local"),
        "filename": ([at("/hello.txt?filename=other")], "local"), "filename2": ([at("/hello.txt", GetterOptions={"filename": "other"})], "local"),
        "mode-file": ([at("/hello.txt", GetterMode="file", RelativeDest="local/name")], "local"), "mode-file2": ([at("/hello.txt", GetterMode="file")], "local"),
        "mode-any": ([at("/hello.txt", GetterMode="any", RelativeDest="local/name")], "local"), "mode-dir": ([at("/hello.txt", GetterMode="dir")], "local"),
        "headers": ([at("/headers", GetterHeaders={"X-Job": "${NOMAD_META_file}", "X-Two": "b"})], "local"), "reference": ([at("/${NOMAD_META_file}.txt")], "local"),
        "password": ([{"GetterSource": server.url.replace("//", "//me:secret@") + "/headers"}], "local"),
        "forced": ([{"GetterSource": "http::" + server.url + "/hello.txt"}], "local"),
        "404": ([at("/nothing")], "local"), "500": ([at("/500")], "local"), "moved": ([at("/moved")], "local"), "gone": ([at("/gone")], "local"), "loop": ([at("/loop")], "local"),
        "path": ([{"GetterSource": "/etc/passwd"}], "local"), "file-url": ([{"GetterSource": "file:///etc/passwd"}], "local"), "unknown": ([{"GetterSource": "foo://x/y"}], "local"),
        "again": ([at("/hello.txt"), at("/dir/hello.txt")], "local"),
    })


def test_destinations():
    compare({
        "dest-%d" % i: ([at("/hello.txt", RelativeDest=dest)], shown) for i, (dest, shown) in enumerate((
            ("", "local"), ("local", "local"), ("local/", "local"), ("local/a/b", "local"), ("/local/x", "local"), ("${NOMAD_TASK_DIR}/y", "local"), ("new", "new"),
            ("local/../tmp/z", "tmp"), ("${NOMAD_ALLOC_DIR}/data", "$NOMAD_ALLOC_DIR/data"), ("../alloc/z", "$NOMAD_ALLOC_DIR/z"), ("local/${NOMAD_TASK_NAME}", "local"),
            ("${NOMAD_META_up}", "local")))
    })


def test_archives():
    cases = {}
    for name in ARCHIVES:
        for mode in ("any", "file", "dir"):
            cases["%s-%s" % (name.replace(".", "-"), mode)] = ([at("/" + name, GetterMode=mode, RelativeDest="local/x")], "local")
        cases[name.replace(".", "-") + "-packed"] = ([at("/" + name, GetterOptions={"archive": "false"})], "local")
    cases.update({"forced-" + kind: ([at("/hello.txt" if kind == "rar" else "/a." + kind + "?archive=" + kind)], "local") for kind in ("tar", "zip", "rar")})
    for i, sub in enumerate(("d", "deep/er", "d*", "none", "top.txt", "../x")):
        cases["sub-%d" % i] = ([at("/a.tgz//" + sub)], "local")
    compare(cases)


def test_hostile_archives():
    compare({name.replace(".", "-"): ([at("/" + name)], "local") for name in HOSTILE})
    case.equal(os.path.exists("/tmp/outside"), False, "a file outside")


def test_checksums():
    cases = {}
    for kind in ("md5", "sha1", "sha256", "sha512"):
        value = hashlib.new(kind, BODY).hexdigest()
        for i, text in enumerate((kind + ":" + value, kind + ":" + value.upper(), kind + ":" + hashlib.new(kind, b"x").hexdigest())):
            cases["%s-%d" % (kind, i)] = ([at("/hello.txt", GetterOptions={"checksum": text})], "local")
    # The servers refuse options with a url; in a source they do not look.
    for i, text in enumerate(("file:%s/sums" % server.url, "file:sums", "file:./sums", "file:%s/none" % server.url, "file:%s/nothing" % server.url)):
        cases["sum-%d" % i] = ([at("/hello.txt?checksum=" + text)], "local")
    cases["sum-archive"] = ([at("/a.tgz", GetterOptions={"checksum": "md5:" + hashlib.md5(ARCHIVES["a.tgz"]).hexdigest()})], "local")
    cases["sum-wrong-archive"] = ([at("/a.tgz", GetterOptions={"checksum": "md5:" + MD5})], "local")
    compare(cases)


def test_repositories():
    source = "git::" + server.url + "/r.git"
    compare({
        "git": ([{"GetterSource": source, "RelativeDest": "local/r"}], "local"), "git-ref": ([{"GetterSource": source + "?ref=main", "RelativeDest": "local/r"}], "local"),
        "git-none": ([{"GetterSource": source + "?ref=none", "RelativeDest": "local/r"}], "local"),
        "git-option": ([{"GetterSource": source, "GetterOptions": {"ref": "main"}, "RelativeDest": "local/r"}], "local"),
        "git-404": ([{"GetterSource": "git::" + server.url + "/none.git", "RelativeDest": "local/r"}], "local"),
        "git-file": ([{"GetterSource": source, "GetterMode": "file", "RelativeDest": "local/r"}], "local"),
    })


def test_buckets():
    url = "s3::" + store.url + "/tree/"

    def get(name, options=None, **more):
        return [{"GetterSource": url + name, "GetterOptions": s3.SIGNED if options is None else options, **more}], "local"
    compare({
        "s3-object": get("one.txt"), "s3-deep": get("dir/sub/b%20c.txt"), "s3-file": get("one.txt", GetterMode="file", RelativeDest="local/name"),
        "s3-dir": get("dir", RelativeDest="local/x"), "s3-dir2": get("dir", GetterMode="dir", RelativeDest="local/x"), "s3-slash": get("dir/", RelativeDest="local/x"),
        "s3-sub": get("dir/sub", RelativeDest="local/x"), "s3-both": get("both", RelativeDest="local/x"), "s3-none": get("none"), "s3-none-dir": get("none", GetterMode="dir"),
        "s3-unsigned": get("one.txt", {}), "s3-wrong": get("one.txt", {**s3.SIGNED, "aws_access_key_secret": "x"}), "s3-other": get("one.txt", {**s3.SIGNED, "aws_access_key_id": "x"}),
        "s3-region": get("one.txt", {**s3.SIGNED, "region": "eu-west-1"}), "s3-region2": get("one.txt", {**s3.SIGNED, "region": s3.REGION}),
        "s3-archive": get("a.tgz", RelativeDest="local/x"), "s3-packed": get("a.tgz", {**s3.SIGNED, "archive": "false"}),
        "s3-sum": get("one.txt", {**s3.SIGNED, "checksum": "md5:" + MD5}), "s3-wrong-sum": get("one.txt", {**s3.SIGNED, "checksum": "md5:" + "0" * 32}),
        "s3-two": (get("one.txt")[0] + get("dir/a.txt")[0], "local"),
    })


failures = []
with web.Server(files()) as server, s3.Server(OBJECTS) as store, alike.pair({"HOME": case.directory()}, alone=True) as both:  # without a .gitconfig, which old clients find but cannot read
    case.run(globals())
