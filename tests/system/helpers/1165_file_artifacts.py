# SPDX-License-Identifier: Apache-2.0
"""file-helper alone: what the fetcher made is copied into an alloc's directory, and nothing else is, and nowhere else."""
import contextlib
import errno
import os
import shutil
import stat

from lib import case, fetch, mnt

ALLOC = os.urandom(16)


@contextlib.contextmanager
def started():
    """Yields (helper, the alloc's directory, places) of an alloc with the tasks web and db."""
    with mnt.files() as (places, h):
        h.ipc.call("FILE_ALLOC_DIR_MAKE_REQ", {"alloc": ALLOC, "tasks": ["web", "db"], "raw_exec": True})
        yield h, "%s/alloc/%s" % (places.data, mnt.text(ALLOC)), places


def fetched(places, entries):
    """Makes a staging directory as the fetcher leaves it. entries: {path: contents, ("link", target), a mode of mknod, or None}; "" is a file."""
    staging = os.urandom(16)
    top = "%s/alloc/.fetch/%s" % (places.data, staging.hex())
    os.mkdir(top, 0o700)
    with open(top + "/done", "wb"):
        pass
    if "" not in entries:
        os.mkdir(top + "/out")
    for path, what in entries.items():
        at = (top + "/out/" + path).rstrip("/")
        if what is None:
            os.mkdir(at)
        elif isinstance(what, tuple):
            os.symlink(what[1], at)
        elif isinstance(what, int):
            os.mknod(at, what | 0o666, os.makedev(1, 3))
        else:
            with open(at, "wb") as f:
                f.write(what)
    for at, dirs, files in os.walk(top):
        for name in dirs + files + ["."]:
            os.chown(at + "/" + name, places.uid["fetcher"], places.uid["fetcher"], follow_symlinks=False)
    return staging


def request(staging, dest, **more):
    return {"alloc": ALLOC, "staging": staging, "max_bytes": 1 << 20, "max_files": 1000, "task": "web", "dest": dest, **more}


def place(h, places, entries, dest, **more):
    h.ipc.call("FILE_ARTIFACT_PLACE_REQ", request(fetched(places, entries), dest, **more))


def refused(h, places, code, entries, dest, text="", **more):
    mnt.refused(h, code, text, "FILE_ARTIFACT_PLACE_REQ", request(fetched(places, entries), dest, **more))


def nothing_is_left(top):
    case.equal([name for name in os.listdir(top) if name.startswith(".")], [], "copies")


def test_a_directory_and_a_file():
    with started() as (h, top, places):
        tree = {"a": b"1", "d": None, "d/b": b"2", "d/l": ("link", "../a"), "e": None}
        place(h, places, tree, "web/local")
        case.equal(fetch.tree_of(top + "/web/local"), tree)
        place(h, places, {"": b"file"}, "web/local/new/dir/name")
        case.equal(fetch.tree_of(top + "/web/local/new"), {"dir": None, "dir/name": b"file"})
        place(h, places, tree, "alloc/data/sub")
        case.equal(fetch.tree_of(top + "/alloc/data/sub"), tree)
        st = os.stat(top + "/web/local/d/b")
        case.equal((st.st_uid, stat.S_IMODE(st.st_mode)), (places.uid["file"], 0o644), "owner and mode: the fetcher's user owns nothing")
        nothing_is_left(top)


def test_an_existing_directory_is_merged_and_links_are_replaced():
    with started() as (h, top, places):
        outside = places.base + "/outside"
        os.mkdir(outside)
        local = top + "/web/local/"
        os.mkdir(local + "d")
        for path, text in (("d/keep", b"kept"), ("d/new", b"old")):
            with open(local + path, "wb") as f:
                f.write(text)
        os.symlink(outside + "/x", local + "l")
        os.symlink(outside, local + "dir")
        place(h, places, {"d": None, "d/new": b"new", "l": b"file"}, "web/local")
        case.equal(fetch.tree_of(local), {"d": None, "d/keep": b"kept", "d/new": b"new", "dir": ("link", outside), "l": b"file"})
        # No link is followed, and a directory and a file do not replace each other.
        refused(h, places, errno.ENOTDIR, {"x": b""}, "web/local/dir/sub")
        refused(h, places, errno.ENOTDIR, {"dir": None, "dir/x": b""}, "web/local")
        refused(h, places, errno.EISDIR, {"d": b""}, "web/local")
        refused(h, places, errno.ENOTDIR, {"l": None}, "web/local")
        refused(h, places, errno.ENOTDIR, {"": b""}, "web/local/l/x")
        case.equal(os.listdir(outside), [], "files elsewhere")
        nothing_is_left(top)


def test_links_that_lead_out_devices_and_set_user_id_are_refused():
    with started() as (h, top, places):
        for target in ("/etc/passwd", "/", "..", "../x", "a/../../..", "d/../../x", "a/..", "./../x"):
            refused(h, places, errno.EINVAL, {"a": b"", "l": ("link", target)}, "web/local", "leads out of the artifact")
        for target in ("../../x", "../../../etc"):
            refused(h, places, errno.EINVAL, {"d": None, "d/l": ("link", target)}, "web/local", "leads out of the artifact")
        # A link that is relative, but not behind another link.
        refused(h, places, errno.EINVAL, {"here": ("link", "."), "l": ("link", "here/..")}, "web/local", "leads out")
        for kind in (stat.S_IFIFO, stat.S_IFCHR, stat.S_IFBLK, stat.S_IFSOCK):
            refused(h, places, errno.ENXIO if kind == stat.S_IFSOCK else errno.EACCES if kind in (stat.S_IFCHR, stat.S_IFBLK) else errno.EINVAL,
                    {"x": kind}, "web/local")
        staging = fetched(places, {"run": b"", "d": None})
        out = "%s/alloc/.fetch/%s/out/" % (places.data, staging.hex())
        os.chmod(out + "run", 0o6755)
        os.chmod(out + "d", 0o3777)
        h.ipc.call("FILE_ARTIFACT_PLACE_REQ", request(staging, "web/local"))
        case.equal([stat.S_IMODE(os.stat(top + "/web/local/" + name).st_mode) for name in ("run", "d")], [0o755, 0o777])
        nothing_is_left(top)


def test_limits():
    with started() as (h, top, places):
        refused(h, places, errno.EFBIG, {"a": b"x" * 101}, "web/local", "larger than is allowed", max_bytes=100)
        refused(h, places, errno.EFBIG, {"a": b"x" * 60, "b": b"x" * 60}, "web/local", "larger than is allowed", max_bytes=100)
        refused(h, places, errno.EFBIG, {"": b"x" * 101}, "web/local/x", "larger than is allowed", max_bytes=100)
        refused(h, places, errno.EFBIG, {str(i): b"" for i in range(11)}, "web/local", "more files than are allowed", max_files=10)
        refused(h, places, errno.EINVAL, {"/".join(["d"] * n): None for n in range(1, 140)}, "web/local", "more than 128 levels")
        place(h, places, {str(i): b"x" * 10 for i in range(10)}, "web/local", max_files=10, max_bytes=100)
        case.equal(len(os.listdir(top + "/web/local")), 10)
        nothing_is_left(top)


def test_destinations_that_are_refused():
    with started() as (h, _, places):
        for dest in ("", "/", "/web", "web//x", "web/", "web/../x", "web/local/..", "web/./x", "..", "web/" + "x" * 256):
            refused(h, places, errno.EINVAL, {"x": b""}, dest, "is not a path")
        for dest in ("db/local", "other", "logs", ".trash", ".artifact-web"):
            refused(h, places, errno.EINVAL, {"x": b""}, dest, "not in a directory of the task")
        for dest in ("web/secrets", "web/secrets/x", "web/private/x"):
            refused(h, places, errno.EACCES, {"x": b""}, dest, "no artifact can be in")
        refused(h, places, errno.EINVAL, {"x": b""}, "../x/local", task="../x")
        refused(h, places, errno.ENOENT, {"x": b""}, "web/local", alloc=os.urandom(16))


def test_what_the_fetcher_did_not_complete_is_refused():
    with started() as (h, top, places):
        staging = fetched(places, {"x": b"1"})
        os.unlink("%s/alloc/.fetch/%s/done" % (places.data, staging.hex()))
        for one in (staging, os.urandom(16)):
            mnt.refused(h, errno.ENODATA, "did not complete the artifact", "FILE_ARTIFACT_PLACE_REQ", request(one, "web/local"))
        case.equal(os.listdir(top + "/web/local"), [])


def test_staging_directories_are_removed():
    with started() as (h, _, places):
        one, two, three = (fetched(places, {"x": b""}) for _ in range(3))
        top = places.data + "/alloc/.fetch/"
        h.ipc.call("FILE_ARTIFACT_DROP_REQ", {"staging": one})
        case.equal(sorted(os.listdir(top)), sorted([two.hex(), three.hex()]))
        h.ipc.call("FILE_ARTIFACT_DROP_REQ", {"staging": one})
        h.ipc.call("FILE_ARTIFACT_DROP_REQ", {"staging": bytes(16), "keep": [{"id": three}, {"id": os.urandom(16)}]})
        case.equal(os.listdir(top), [three.hex()])
        h.ipc.call("FILE_ARTIFACT_DROP_REQ", {"staging": bytes(16)})
        case.equal(os.listdir(top), [])
        case.until(lambda: not os.listdir(places.data + "/alloc/.trash"), 10, "the trash to be empty")


def test_a_copy_that_was_interrupted_does_not_matter():
    with started() as (h, top, places):
        shutil.copytree("/etc/init.d", top + "/.artifact-web")
        place(h, places, {"x": b"1"}, "web/local")
        case.equal(fetch.tree_of(top + "/web/local"), {"x": b"1"})
        nothing_is_left(top)


case.run(globals())
