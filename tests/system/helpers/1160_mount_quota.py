# SPDX-License-Identifier: Apache-2.0
"""mount-helper and file-helper alone: on a file system with project quota each alloc is a project with a limit."""
import contextlib
import errno
import os

from lib import case, helper, mnt, quota

MIB = 1 << 20
NOBODY = 65534


@contextlib.contextmanager
def started(kind):
    with quota.file_system(kind) as top, mnt.both(helper.Places(base=top)) as (places, m, f):
        yield places, (m, f)


def make(places, h, disk_mb, alloc=None, **more):
    """Makes an alloc as the supervisor does. Returns (id, directory)."""
    m, f = h
    alloc = alloc or os.urandom(16)
    fields = {"alloc": alloc, "tasks": ["web"], **more}
    made = f.ipc.call("FILE_ALLOC_DIR_MAKE_REQ", {**fields, "limit": disk_mb > 0})
    if made["needs_project"]:
        case.equal(os.listdir(places.data + "/alloc/" + mnt.text(alloc)), [], "directories before it becomes a project")
        m.ipc.call("MNT_DISK_LIMIT_REQ", {"alloc": alloc, **more})
        made = f.ipc.call("FILE_ALLOC_DIR_MAKE_REQ", fields)
    if made["has_project"]:
        m.ipc.call("MNT_DISK_LIMIT_REQ", {"alloc": alloc, "disk_mb": disk_mb})
    path = places.data + "/alloc/" + mnt.text(alloc)
    for name in ("local", "private", "tmp"):  # as the task's executor does
        os.chown("%s/web/%s" % (path, name), NOBODY, NOBODY)
    return alloc, path


def reported_usage(h, alloc):
    """Returns (bytes, limit) as file-helper reports them."""
    data = helper.memfd_read(h[1].ipc.call("FILE_DISK_USAGE_REQ", {"allocs": [alloc]}).take_fd())
    return tuple(int.from_bytes(data[i:i + 8], "little") for i in (0, 8))


def write_as_nobody(path, size):
    """Writes as a task does, with the group of its alloc. Returns how many bytes could be written, and the errno of the failure."""
    group = os.stat(os.path.dirname(path) + "/../..").st_gid
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([group])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            done, e = 0, 0
            try:
                fd = os.open(path, os.O_WRONLY | os.O_CREAT)
                while done < size:
                    done += os.write(fd, b"x" * 4096)
            except OSError as failed:
                e = failed.errno
            os.write(writing, b"%d %d" % (done, e))
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(pid, 0)
    with open(reading, "rb") as f:
        done, e = map(int, f.read().split())
    return done, e


def remove(h, alloc):
    h[0].ipc.call("MNT_ALLOC_RELEASE_REQ", {"alloc": alloc})
    h[1].ipc.call("FILE_ALLOC_DIR_REMOVE_REQ", {"alloc": alloc})


def removed(places, h, alloc, number):
    remove(h, alloc)
    case.until(lambda: quota.usage(places.data, number) == (0, 0), 60, "project %d to have no files" % number)


def check_the_limit_of_an_alloc(kind, code):
    with started(kind) as (places, h):
        full, full_dir = make(places, h, 10)
        other, other_dir = make(places, h, 20)
        numbers = [quota.project(d)[0] for d in (full_dir, other_dir)]
        case.equal(len({0, *numbers}), 3, "projects %s" % numbers)
        for path in ("", "/alloc/data", "/web", "/web/local", "/web/tmp", "/web/private"):
            case.equal(quota.project(full_dir + path), (numbers[0], True), path)
        done, e = write_as_nobody(full_dir + "/web/local/f", 30 * MIB)
        case.equal((done > 9 * MIB, done <= 10 * MIB, e), (True, True, code), "%d bytes" % done)
        case.equal(write_as_nobody(full_dir + "/alloc/data/f", MIB)[1], code, "in another of its directories")
        case.equal(write_as_nobody(other_dir + "/web/local/f", 11 * MIB), (11 * MIB, 0), "another alloc")
        for alloc, path, number, limit, least in ((full, full_dir, numbers[0], 10, 9), (other, other_dir, numbers[1], 20, 11)):
            os.sync()
            case.until(lambda a=alloc, p=path, n=number: reported_usage(h, a) == quota.usage(p, n), 60, "usage as file-helper reports it")
            found = reported_usage(h, alloc)
            case.equal((found[0] // MIB >= least, found[1]), (True, limit * MIB), "%d bytes" % found[0])
        # Space of removed files is free again at once.
        os.truncate(full_dir + "/web/local/f", 0)
        case.equal(write_as_nobody(full_dir + "/alloc/data/f", MIB), (MIB, 0), "bytes written after a removal")
        removed(places, h, full, numbers[0])
        case.equal(quota.usage(places.data, numbers[1])[1], 20 * MIB, "the other's limit")
        removed(places, h, other, numbers[1])


def test_an_alloc_is_limited_to_its_disk_on_ext4():
    check_the_limit_of_an_alloc("ext4", errno.EDQUOT)


def test_an_alloc_is_limited_to_its_disk_on_xfs():
    check_the_limit_of_an_alloc("xfs", errno.ENOSPC)


def test_quota_of_a_directory_that_a_crash_interrupted_is_completed():
    with started("ext4") as (places, h):
        alloc, path = make(places, h, 10)
        number = quota.project(path)[0]
        quota.set_limit(path, number, 0)  # as if the helper had died before it set the limit
        case.equal(reported_usage(h, alloc)[1], 0)
        make(places, h, 10, alloc)
        case.equal((quota.project(path)[0], reported_usage(h, alloc)[1]), (number, 10 * MIB))
        early = os.urandom(16)
        path = places.data + "/alloc/" + mnt.text(early)
        os.mkdir(path)  # as if it had died before it made this directory part of the project
        os.chmod(path, 0o711)
        make(places, h, 10, early)
        case.equal((quota.project(path + "/web/local"), reported_usage(h, early)[1]), (quota.project(path), 10 * MIB))


def test_usage_of_an_alloc_without_a_project_is_counted():
    """An alloc that was made while the file system had no quota, or without a limit. A project that drover did not make is not changed."""
    with started("ext4") as (places, h):
        alloc, path = make(places, h, 0)
        make(places, h, 10, alloc)
        case.equal((quota.project(path), reported_usage(h, alloc)[1]), ((0, False), 0), "an alloc that existed before")
        case.equal(write_as_nobody(path + "/web/local/f", 11 * MIB), (11 * MIB, 0))
        case.equal(reported_usage(h, alloc)[0] // MIB, 11)
        for root in ("", "/alloc", "/alloc/.trash"):
            quota.set_project(places.data + root, 4711)
        quota.set_limit(places.data, 4711, 100 << 10)
        theirs, path = make(places, h, 10)
        case.equal((quota.project(path), quota.project(path + "/web/local")), ((4711, True), (4711, True)))
        case.equal(write_as_nobody(path + "/web/local/f", 12 * MIB), (12 * MIB, 0))
        case.equal((reported_usage(h, theirs)[0] // MIB, reported_usage(h, theirs)[1]), (12, 0))
        remove(h, theirs)
        case.until(lambda: quota.usage(places.data, 4711)[0] < MIB, 60, "the removal of its directory")
        case.equal(quota.usage(places.data, 4711)[1], 100 * MIB, "their limit")


def check_data_of_another_alloc(kind, code):
    with started(kind) as (places, h):
        old, old_dir = make(places, h, 10)
        number = quota.project(old_dir)[0]
        case.equal(write_as_nobody(old_dir + "/web/local/f", 3 * MIB), (3 * MIB, 0))
        # Also when its project is completely full and the successor has the same limit.
        case.equal(write_as_nobody(old_dir + "/web/tmp/f", 30 * MIB)[1], code)
        new, new_dir = make(places, h, 10, **{"from": old})
        case.equal(os.stat(new_dir + "/web/local/f").st_size, 3 * MIB)
        case.equal(quota.project(new_dir + "/web/local/f")[0], number)
        # Files that were not moved stop counting after a moment.
        case.equal(os.path.exists(old_dir), False)
        case.until(lambda: quota.usage(places.data, number)[0] < 4 * MIB, 60, "the removal of its directory")
        case.equal((reported_usage(h, new)[0] // MIB, reported_usage(h, new)[1]), (3, 10 * MIB))
        remove(h, old)
        case.equal(reported_usage(h, new)[1], 10 * MIB, "the limit after the removal of the old one")
        # An alloc without a project passes none on.
        plain, plain_dir = make(places, h, 0)
        case.equal(write_as_nobody(plain_dir + "/web/local/f", MIB), (MIB, 0))
        third, third_dir = make(places, h, 10, **{"from": plain})
        case.equal((os.stat(third_dir + "/web/local/f").st_size, reported_usage(h, third)[1]), (MIB, 0))
        removed(places, h, new, number)


def test_data_of_another_alloc_comes_with_its_project_on_ext4():
    check_data_of_another_alloc("ext4", errno.EDQUOT)


def test_data_of_another_alloc_comes_with_its_project_on_xfs():
    check_data_of_another_alloc("xfs", errno.ENOSPC)


case.run(globals())
