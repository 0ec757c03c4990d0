# SPDX-License-Identifier: Apache-2.0
"""file-helper alone: which files of an alloc's directory it reads, and which it refuses."""
import contextlib
import errno
import os
import stat
import struct
import threading

from lib import case, helper, mnt
from lib.helper import mount, umount
from lib.ipc import RequestError

ALLOC = os.urandom(16)
MS_BIND = 4096


@contextlib.contextmanager
def started():
    """Yields (helper, directory) of an alloc with the tasks web and db."""
    with mnt.files() as (places, h):
        h.ipc.call("FILE_ALLOC_DIR_MAKE_REQ", {"alloc": ALLOC, "tasks": ["web", "db"], "raw_exec": True})
        yield h, "%s/alloc/%s" % (places.data, mnt.text(ALLOC)), places


def ask(h, op, path, root="FILE_ROOT_ALLOC", alloc=ALLOC):
    return h.ipc.call("FILE_ALLOC_FS_REQ", {"alloc": alloc, "root": root, "path": path, "op": op}).take_fd()


def refused(h, code, path, op="FILE_OP_OPEN", **more):
    fields = {"alloc": ALLOC, "root": "FILE_ROOT_ALLOC", "path": path, "op": op, **more}
    mnt.refused(h, code, "", "FILE_ALLOC_FS_REQ", fields)


def read(h, path, **more):
    with os.fdopen(ask(h, "FILE_OP_OPEN", path, **more), "rb") as f:
        return f.read()


def entries(h, path, op="FILE_OP_LIST", **more):
    """Returns {name: (size, mtime_ns, mode)}; "." is the requested path itself."""
    data, found = helper.memfd_read(ask(h, op, path, **more)), {}
    while data:
        name, rest = data[20:].split(b"\0", 1)
        case.equal(name in found, False, "%r is listed twice" % name)
        found[name.decode()], data = struct.unpack("<qqI", data[:20]), rest
    return found


def write(path, data):
    with open(path, "wb") as f:
        f.write(data)


def test_files_and_directories():
    with started() as (h, top, places):
        write(top + "/web/local/a", b"hello")
        os.mkdir(top + "/web/local/d", 0o700)
        os.mkfifo(top + "/web/local/fifo")
        os.mknod(top + "/web/local/null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        os.symlink("a", top + "/web/local/l")
        for path in ("web/local/a", "/web//local/./a", "web/local/d/../a", "db/../web/local/a", "web/local/l"):
            case.equal(read(h, path), b"hello", path)
            case.equal(entries(h, path, "FILE_OP_STAT")["."][0], 5, path)
        found = entries(h, "web/local")
        case.equal(sorted(found), [".", "a", "d", "fifo", "l", "null"])
        for name, (size, mtime, mode) in found.items():
            st = os.lstat(top + "/web/local/" + name)
            case.equal((size, mtime, mode), (st.st_size, st.st_mtime_ns, st.st_mode), name)
        case.equal(sorted(entries(h, "")), [".", "alloc", "db", "web"])
        case.equal(sorted(entries(h, "/", root="FILE_ROOT_LOGS")), ["."])
        case.equal(list(entries(h, "web/local/fifo", "FILE_OP_STAT")), ["."])
        refused(h, errno.EISDIR, "web/local")
        for special in ("fifo", "null"):
            refused(h, errno.EOPNOTSUPP, "web/local/" + special)
            refused(h, errno.ENOTDIR, "web/local/" + special, "FILE_OP_LIST")
        refused(h, errno.ENOENT, "web/local/x")
        refused(h, errno.ENOTDIR, "web/local/a/x")
        refused(h, errno.ENOTDIR, "web/local/a/..")
        refused(h, errno.ENAMETOOLONG, "web/" + "x" * 256)
        refused(h, errno.ENOENT, "x/" * 2000)
        deep = "web/local/" + "n/" * 120
        os.makedirs("%s/%s" % (top, deep))
        case.equal(list(entries(h, deep)), ["."])
        os.makedirs("%s/%s" % (top, deep + "n/" * 10))
        refused(h, errno.ENAMETOOLONG, deep + "n/" * 10, "FILE_OP_STAT")
        refused(h, errno.ENOENT, "", alloc=os.urandom(16))


def test_returned_descriptors_are_read_only():
    with started() as (h, top, places):
        write(top + "/web/local/a", b"hello")
        fd = ask(h, "FILE_OP_OPEN", "web/local/a")
        case.equal(case.raises(OSError, os.write, fd, b"x").errno, errno.EBADF)
        os.close(fd)


def test_links_that_leave_the_alloc_are_refused():
    with started() as (h, top, places):
        write(places.data + "/outside", b"secret")
        local = top + "/web/local/"
        for name, target in (("abs", "/etc/passwd"), ("root", "/"), ("up", "../../../../outside"), ("upper", "../.."),
                             ("proc", "/proc/self/fd/3"), ("loop", "loop"), ("other", "../../db/local/f"),
                             ("twice", "upper/../x")):
            os.symlink(target, local + name)
        write(top + "/db/local/f", b"of another task")
        case.equal(read(h, "web/local/other"), b"of another task")
        case.equal(sorted(entries(h, "web/local/upper")), [".", "alloc", "db", "web"])
        refused(h, errno.ELOOP, "web/local/loop")
        for path in ("web/local/abs", "web/local/root/etc/passwd", "web/local/up", "web/local/upper/../outside",
                     "web/local/proc", "web/local/twice", "..", "../" + mnt.text(ALLOC), "web/../../x", "web/secrets/../x"):
            for op in ("FILE_OP_OPEN", "FILE_OP_LIST", "FILE_OP_STAT"):
                refused(h, errno.EACCES if "secrets" in path else errno.EXDEV, path, op)
        refused(h, errno.EXDEV, "alloc/logs", "FILE_OP_LIST")


def test_a_task_does_not_read_another_tasks_files_by_its_links():
    """For a template of web: in web/ and alloc/, but not in db/ or we/, by whatever link."""
    with started() as (h, top, places):
        os.mkdir(top + "/we")
        for path in ("web/local/f", "db/local/f", "alloc/f", "we/f"):
            write(top + "/" + path, path.encode())
        for name, target in (("own", "f"), ("shared", "../../alloc/f"), ("other", "../../db/local/f"), ("short", "../../we/f"), ("top", "../.."),
                             ("secret", "../secrets/key")):
            os.symlink(target, top + "/web/local/" + name)
        os.symlink("../web/local/f", top + "/alloc/back")
        own = lambda path: os.fdopen(ask(h, "FILE_OP_OPEN_OWN", path), "rb").read()
        for path, want in (("web/local/own", "web/local/f"), ("web/local/shared", "alloc/f"), ("alloc/f", "alloc/f"), ("web/local/top/alloc/f", "alloc/f")):
            case.equal(own(path), want.encode(), path)
        for path in ("web/local/other", "web/local/short", "web/local/top/db/local/f", "alloc/back", "web/../db/local/f", "web/local/../../we/f"):
            refused(h, errno.EXDEV, path, "FILE_OP_OPEN_OWN")
        refused(h, errno.EACCES, "web/local/secret", "FILE_OP_OPEN_OWN")
        refused(h, errno.EISDIR, "web/local", "FILE_OP_OPEN_OWN")
        os.mkfifo(top + "/web/local/fifo")
        refused(h, errno.EOPNOTSUPP, "web/local/fifo", "FILE_OP_OPEN_OWN")


def test_secrets_and_private_directories_are_refused():
    with started() as (h, top, places):
        write(top + "/web/private/key", b"secret")
        write(top + "/web/secrets/key", b"secret")
        os.symlink("../private", top + "/web/local/p")
        os.symlink("../../web/local/../private/key", top + "/db/local/k")
        os.symlink("../secrets", top + "/web/local/s")
        os.mkdir(top + "/alloc/private")
        os.mkdir(top + "/web/local/secrets")
        for op in ("FILE_OP_OPEN", "FILE_OP_LIST", "FILE_OP_STAT"):
            for path in ("web/private", "web/private/key", "web/secrets/key", "web/local/p", "web/local/p/key",
                         "db/local/k", "web/local/s/key", "/./web//private/./key", "alloc/../web/private/key"):
                refused(h, errno.EACCES, path, op)
        case.equal(list(entries(h, "alloc/private")), ["."])
        case.equal(list(entries(h, "web/local/secrets")), ["."])


def test_mounts_below_an_alloc_are_not_entered():
    with started() as (h, top, places):
        os.mkdir(top + "/web/local/m")
        write(top + "/web/local/m/below", b"own")
        write(top + "/web/local/f", b"own")
        mount(places.data + "/csi", top + "/web/local/m", flags=MS_BIND)
        mount("/etc/passwd", top + "/web/local/f", flags=MS_BIND)
        try:
            case.equal(sorted(entries(h, "web/local/m")), [".", "below"])
            case.equal((read(h, "web/local/m/below"), read(h, "web/local/f")), (b"own", b"own"))
            refused(h, errno.ENOENT, "web/local/m/" + mnt.text(ALLOC))
        finally:
            umount(top + "/web/local/m")
            umount(top + "/web/local/f")


def test_a_hanging_file_system_below_an_alloc_is_never_called():
    """Each stat of it would block a worker forever, and after sixteen of them all requests would be refused."""
    with started() as (h, top, places):
        os.mkdir(top + "/web/local/m")
        write(top + "/web/local/f", b"x" * 8192)
        with mnt.Hang(top + "/web/local/m", "getattr") as hang:
            for _ in range(20):
                data = helper.memfd_read(h.ipc.call("FILE_DISK_USAGE_REQ", {"allocs": [ALLOC]}).take_fd())
                case.equal(8192 <= int.from_bytes(data[:8], "little") < 1 << 20, True, "disk usage in bytes")
                case.equal(sorted(entries(h, "web/local")), [".", "f", "m"])
                case.equal((list(entries(h, "web/local/m")), list(entries(h, "web/local/m", "FILE_OP_STAT"))), (["."], ["."]))
                refused(h, errno.ENOENT, "web/local/m/x")
                case.equal(mnt.names(h, "FILE_ROOT_ALLOC"), [mnt.text(ALLOC)])
            case.equal(mnt.children(h.pid), [], "workers")
            h.ipc.call("FILE_ALLOC_DIR_REMOVE_REQ", {"alloc": ALLOC})
            case.until(lambda: "Device or resource busy" in h.log(), 10, "warning: the directory on which it is mounted stays")
            case.until(lambda: not mnt.children(h.pid), 10, "the worker that empties the trash to end")
            hang.path = mnt.mounts_below(places.data + "/alloc/.trash")[0][0]


def test_a_directory_with_too_many_entries_is_refused():
    with started() as (h, top, places):
        for i in range(18000):
            os.close(os.open("%s/alloc/data/%05d%s" % (top, i, "x" * 250 if i % 2 else ""), os.O_CREAT | os.O_WRONLY))
            if i == 9000:
                case.equal(len(entries(h, "alloc/data")), i + 2)
        for i in range(9000):
            os.close(os.open("%s/alloc/data/%05d%s" % (top, i, "y" * 250), os.O_CREAT | os.O_WRONLY))
        refused(h, errno.EFBIG, "alloc/data", "FILE_OP_LIST")


def test_a_path_that_the_task_renames_meanwhile_never_leaves_the_alloc():
    """At any moment the opened file is the task's own and never the target of its link."""
    with started() as (h, top, places):
        os.mkdir(places.data + "/victim")
        write(places.data + "/victim/f", b"secret")
        local = top + "/web/local"
        os.mkdir(local + "/a")
        os.mkdir(local + "/a/b")
        write(local + "/a/b/f", b"mine")
        os.symlink("../../../../../victim", local + "/a/c")
        os.symlink("../../../private", local + "/a/d")
        write(top + "/web/private/f", b"secret")
        stop = threading.Event()

        def exchange():
            libc, rounds = helper.libc, 0
            while not stop.is_set():
                for other in ("c", "d"):
                    for _ in range(2):
                        libc.renameat2(-100, (local + "/a/b").encode(), -100, (local + "/a/" + other).encode(), 2)
                os.rename(local + "/a", local + "/e")
                os.rename(local + "/e", local + "/a")
                rounds += 1
        thread = threading.Thread(target=exchange)
        thread.start()
        seen = set()

        def look():
            try:
                seen.add(read(h, "web/local/a/b/f"))
            except RequestError as e:
                seen.add(-e.code)
            return b"mine" in seen
        try:
            for _ in range(400):
                look()
            case.until(look, 60, "the file in its own place")  # the process that renames may not have run for so long
        finally:
            stop.set()
            thread.join()
        case.equal(seen - {b"mine", errno.ENOENT, errno.EXDEV, errno.EACCES, errno.EPERM}, set(), "contents that were read")


case.run(globals())
