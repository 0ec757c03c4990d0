# SPDX-License-Identifier: Apache-2.0
"""file-helper alone, and with mount-helper: the directories of an alloc."""
import errno
import os
import stat
import threading

from lib import case, helper, mnt, runs
from lib.helper import mount, umount

NOBODY = 65534
DIR, LINK = stat.S_IFDIR, stat.S_IFLNK


def layout(places, alloc, task, raw_exec):
    """Returns the expected paths of an alloc with one task: {path: (mode, uid, gid)}; a link with its target."""
    a = places.data + "/alloc/" + mnt.text(alloc)
    drover, executor, own = places.uid["drover"], places.uid["executor"], places.uid["file"]
    want = {
        a: (DIR | 0o710, own, runs.group_of(alloc)),
        a + "/alloc": (DIR | 0o1777, own, own),
        a + "/alloc/data": (DIR | 0o777, NOBODY, NOBODY),
        a + "/alloc/tmp": (DIR | 0o777, NOBODY, NOBODY),
        a + "/alloc/logs": (LINK | 0o777 if raw_exec else DIR | 0o755, own, own),
        a + "/" + task: (DIR | 0o700, own, own),
        a + "/" + task + "/local": (DIR | 0o700, own, own),
        a + "/" + task + "/private": (DIR | 0o700, own, own),
        a + "/" + task + "/tmp": (DIR | 0o1777, own, own),
        a + "/" + task + "/secrets": (DIR | 0o700, own, own),
        places.data + "/logs/" + mnt.text(alloc): (DIR | 0o2755, executor, drover),
    }
    return {path: (oct(m), uid, gid) for path, (m, uid, gid) in want.items()}


def everything(places, alloc):
    """Returns the existing paths of the alloc, in the form of layout()."""
    found = {}
    for root in ("alloc", "logs"):
        top = "%s/%s/%s" % (places.data, root, mnt.text(alloc))
        for at, directories, files in os.walk(top):
            for path in [at] + [at + "/" + n for n in directories + files]:
                found[path] = mnt.mode(path)
    return found


def make(h, alloc, tasks=("web",), raw_exec=False):
    return h.ipc.call("FILE_ALLOC_DIR_MAKE_REQ", {"alloc": alloc, "tasks": list(tasks), "raw_exec": raw_exec})["made"]


def remove(h, alloc, keep_logs=False):
    h.ipc.call("FILE_ALLOC_DIR_REMOVE_REQ", {"alloc": alloc, "keep_logs": keep_logs})


def trash_gone(places, seconds=30):
    def empty():
        return not [n for r in ("alloc", "logs", "csi/sock") for n in os.listdir(places.data + "/" + r + "/.trash")]
    case.until(empty, seconds, "empty trash")


def test_an_alloc_has_its_directories_with_their_modes():
    with mnt.files() as (places, h):
        for raw_exec in (False, True):
            alloc = os.urandom(16)
            case.equal(make(h, alloc, raw_exec=raw_exec), True, "made")
            case.equal(everything(places, alloc), layout(places, alloc, "web", raw_exec), "layout")
            a = places.data + "/alloc/" + mnt.text(alloc)
            if raw_exec:
                case.equal(os.path.realpath(a + "/alloc/logs"), places.data + "/logs/" + mnt.text(alloc), "logs of raw_exec")


def test_directories_of_an_older_version_get_todays_modes():
    """An older version made them with mode 0777, those of tasks for nobody. Those of tasks are given to the tasks' users at the next
    start."""
    with mnt.files() as (places, h):
        alloc = os.urandom(16)
        make(h, alloc)
        a = places.data + "/alloc/" + mnt.text(alloc)
        want = everything(places, alloc)
        os.chmod(a, 0o711)
        os.chown(a, 0, 0)
        os.rmdir(a + "/web/secrets")
        os.symlink("../../../secrets/x/web", a + "/web/secrets")
        case.equal(make(h, alloc), False, "made")
        want[a] = (want[a][0], 0, want[a][2])
        want[a + "/web/secrets"] = (oct(LINK | 0o777), 0, 0)
        case.equal(everything(places, alloc), want)
        remove(h, alloc)


def test_secrets_of_raw_exec_are_unmounted():
    """Only the tmpfs of an executor is unmounted; any other mount there stays."""
    with mnt.both() as (places, m, h):
        def release(alloc, task=""):
            m.ipc.call("MNT_ALLOC_RELEASE_REQ", {"alloc": alloc, "task": task})

        alloc, other = os.urandom(16), os.urandom(16)
        for i in (alloc, other):
            make(h, i, ["web", "side"])
            for task in ("web", "side"):
                mount("x", "%s/alloc/%s/%s/secrets" % (places.data, mnt.text(i), task), "tmpfs")
        a = places.data + "/alloc/" + mnt.text(alloc)
        for path in ("/web/local", "/alloc/data"):  # the supervisor does not remove an alloc with such mounts; mount-helper does not touch them
            mount("x", a + path, "tmpfs")
            release(alloc)
            umount(a + path)
        remove(h, alloc)
        case.equal(os.path.exists(a), False)
        case.equal([os.path.ismount("%s/alloc/%s/%s/secrets" % (places.data, mnt.text(other), t)) for t in ("web", "side")], [True, True])
        for task in ("sid", "../" + mnt.text(other) + "/web", "side", "side"):  # one that has ended; its name is no path
            release(other, task)
        case.equal([os.path.ismount("%s/alloc/%s/%s/secrets" % (places.data, mnt.text(other), t)) for t in ("web", "side")], [True, False])
        # Taking over the disk of an alloc also unmounts its secrets.
        m.ipc.call("MNT_DISK_LIMIT_REQ", {"alloc": other, "from": other})
        case.equal([os.path.ismount("%s/alloc/%s/%s/secrets" % (places.data, mnt.text(other), t)) for t in ("web", "side")], [False, False])
        remove(h, other)
        trash_gone(places)


def test_a_repeated_request_changes_nothing():
    with mnt.files() as (places, h):
        alloc = os.urandom(16)
        make(h, alloc)
        a = places.data + "/alloc/" + mnt.text(alloc)
        os.chmod(a + "/web/local", 0o700)  # a task may do that
        os.chown(a + "/web/local", 1, 1)
        for name in ("private", "tmp", "secrets"):
            os.chown(a + "/web/" + name, 4711, 4711)  # an executor does that
        before = everything(places, alloc)
        case.equal(make(h, alloc), False, "made")
        case.equal(everything(places, alloc), before, "after the second request")
        case.equal(make(h, alloc, ["web", "side"]), False, "made")
        case.equal(mnt.mode(a + "/side/tmp"), (oct(DIR | 0o1777), places.uid["file"], places.uid["file"]), "a task that was added later")


def test_directories_that_a_crash_interrupted_are_completed():
    with mnt.files() as (places, h):
        alloc = os.urandom(16)
        make(h, alloc)
        want = everything(places, alloc)
        paths = sorted(want, key=len, reverse=True)
        for path in paths:  # as if the helper had died before it made this directory
            if not os.path.islink(path) and os.listdir(path):
                continue
            (os.unlink if os.path.islink(path) else os.rmdir)(path)
            make(h, alloc)
            case.equal(everything(places, alloc), want, "after the loss of " + path)
        os.chown(places.data + "/alloc/" + mnt.text(alloc) + "/alloc/data", 0, 0)  # between mkdir and chown
        os.chown(places.data + "/logs/" + mnt.text(alloc), 0, -1)
        make(h, alloc)
        case.equal(everything(places, alloc), want, "after a crash before a chown")


def test_a_file_or_link_in_place_of_a_directory_is_refused():
    with mnt.files() as (places, h):
        alloc = os.urandom(16)
        path = places.data + "/alloc/" + mnt.text(alloc)
        os.symlink("/etc", path)
        mnt.refused(h, errno.EEXIST, "exists, but", "FILE_ALLOC_DIR_MAKE_REQ", {"alloc": alloc, "tasks": ["web"]})
        os.unlink(path)
        make(h, alloc)
        os.rename(path + "/web", path + "/away")
        os.symlink("/etc", path + "/web")
        mnt.refused(h, errno.EEXIST, "web exists, but", "FILE_ALLOC_DIR_MAKE_REQ", {"alloc": alloc, "tasks": ["web"]})
        case.equal(os.path.exists("/etc/local"), False, "a directory through the link")
        remove(h, alloc)


def test_an_alloc_of_an_earlier_version_keeps_its_group():
    """Its tasks still run with it."""
    with mnt.files() as (places, h):
        alloc = b"\xff" + os.urandom(15)
        make(h, alloc)
        path = places.data + "/alloc/" + mnt.text(alloc)
        for group, wanted in ((runs.old_group_of(alloc), runs.old_group_of(alloc)), (0, runs.group_of(alloc)), (runs.group_of(bytes(16)), runs.group_of(alloc))):
            os.chown(path, -1, group)
            make(h, alloc)
            case.equal(os.stat(path).st_gid, wanted, "the group after %d" % group)
        remove(h, alloc)


def test_a_tasks_links_in_the_shared_directory_are_not_followed():
    with mnt.files() as (places, h):
        alloc, victim = os.urandom(16), case.directory()
        make(h, alloc)
        shared = places.data + "/alloc/" + mnt.text(alloc) + "/alloc"
        pid = os.fork()
        if pid == 0:  # as a task can
            os.setgroups([runs.group_of(alloc)])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            code = 0
            try:
                os.rmdir(shared + "/logs")
                code = 1  # owned by root, in a sticky directory
            except PermissionError:
                os.rmdir(shared + "/data")
                os.symlink(victim, shared + "/data")
            os._exit(code)
        case.equal(os.waitpid(pid, 0)[1], 0, "the task's end")
        make(h, alloc)
        st = os.stat(victim)
        case.equal((st.st_uid, stat.S_IMODE(st.st_mode)), (0, 0o755), "owner and mode of the link's target")


def write(path, text="x"):
    with open(path, "w", encoding="ascii") as f:
        f.write(text)


def test_data_of_another_alloc_is_moved_only_into_an_empty_one():
    with mnt.files() as (places, h):
        old, new, third = [os.urandom(16) for _ in range(3)]
        a, b, c = [places.data + "/alloc/" + mnt.text(alloc) for alloc in (old, new, third)]

        def take(alloc, source, tasks=("web", "db")):
            return h.ipc.call("FILE_ALLOC_DIR_MAKE_REQ", {"alloc": alloc, "tasks": list(tasks), "from": source})["moved"]
        make(h, old, ("web", "gone"))
        write(a + "/alloc/data/f", "shared")
        write(a + "/web/local/f", "own")
        write(a + "/gone/local/f")
        write(a + "/alloc/tmp/f")
        os.chown(a + "/web/local", 1234, 1234)
        case.equal(take(new, old), True, "moved")
        for path, text in (("/alloc/data/f", "shared"), ("/web/local/f", "own")):
            with open(b + path, encoding="ascii") as f:
                case.equal(f.read(), text, path)
        case.equal(mnt.mode(b + "/web/local")[1:], (1234, 1234), "owner")
        case.equal(os.path.exists(b + "/alloc/tmp/f"), False, "the temporary directory is not moved")
        case.equal(os.listdir(b + "/db/local"), [], "directory of a task that only the new alloc has")
        case.equal(os.path.exists(b + "/gone"), False, "directory of a task that only the old alloc had")
        # Again, as after a crash: nothing is left in the old alloc, and the data in the new one stay.
        case.equal(take(new, old), False, "again")
        os.mkdir(a + "/alloc/data")
        write(a + "/alloc/data/f", "other")
        case.equal(take(new, old), False, "moved over existing data")
        with open(b + "/alloc/data/f", encoding="ascii") as f:
            case.equal(f.read(), "shared", "data of the new alloc")
        # A link in place of a parent or of the data is not followed.
        outside = case.directory()
        for name in ("data", "local"):
            os.mkdir("%s/%s" % (outside, name))
            write("%s/%s/f" % (outside, name))
        os.rename(a + "/alloc", a + "/was")
        os.symlink(outside, a + "/alloc")
        os.mkdir(a + "/web/local")
        case.equal(take(third, old), False, "through a link")
        os.rmdir(a + "/web/local")
        os.unlink(a + "/alloc")
        os.mkdir(a + "/alloc")
        os.symlink(outside + "/data", a + "/alloc/data")
        os.symlink(outside + "/local", a + "/web/local")
        take(third, old)
        case.equal(sorted(os.listdir(outside)), ["data", "local"])
        case.equal([os.listdir(outside + "/" + n) for n in ("data", "local")], [["f"], ["f"]], "files outside")
        case.equal([stat.S_ISDIR(os.lstat(c + p).st_mode) for p in ("/alloc/data", "/web/local")], [True, True])
        case.equal(take(third, os.urandom(16)), False, "the data of an unknown alloc")


def test_the_disk_usage_of_allocs():
    def usage(h, allocs):
        packet = h.ipc.call("FILE_DISK_USAGE_REQ", {"allocs": allocs})
        data = helper.memfd_read(packet.take_fd())
        return [int.from_bytes(data[i:i + 8], "little") for i in range(0, len(data), 16)]

    def fill(path, size):
        with open(path, "wb") as f:
            os.posix_fallocate(f.fileno(), 0, size)
    with mnt.files() as (places, h):
        big, small, hostile, many = [os.urandom(16) for _ in range(4)]
        for alloc in (big, small, hostile, many):
            make(h, alloc)
        a, c, d = [places.data + "/alloc/" + mnt.text(alloc) for alloc in (big, hostile, many)]
        for n in range(2560):  # empty files, each of which uses an inode
            os.close(os.open("%s/web/local/%d" % (d, n), os.O_CREAT | os.O_WRONLY))
        fill(a + "/web/local/f", 10 << 20)
        os.mkdir(a + "/alloc/data/below")
        fill(a + "/alloc/data/below/f", 5 << 20)
        for n in range(20):
            os.link(a + "/web/local/f", a + "/web/local/name%d" % n)
        # Files outside and mounts inside do not count; directories that the task's user made inaccessible do.
        outside = case.directory()
        fill(outside + "/f", 20 << 20)
        os.symlink(outside, c + "/alloc/data/link")
        os.mkdir(c + "/web/local/mounted")
        mount(outside, c + "/web/local/mounted", None, 4096)
        fill(c + "/alloc/data/locked", 3 << 20)
        os.chmod(c + "/alloc/data", 0)
        try:
            found = usage(h, [small, big, os.urandom(16), hostile, many])
        finally:
            umount(c + "/web/local/mounted")
        case.equal([f >> 20 for f in found], [0, 15, 0, 3, 10], "MiB")
        case.equal(found[2], 0, "an unknown alloc")


def test_an_alloc_is_removed_with_or_without_its_logs():
    with mnt.files() as (places, h):
        kept, gone = os.urandom(16), os.urandom(16)
        for alloc in (kept, gone):
            make(h, alloc)
            with open(places.data + "/logs/" + mnt.text(alloc) + "/web.stdout.0", "w", encoding="ascii") as f:
                f.write("a line\n")
        remove(h, kept, keep_logs=True)
        remove(h, gone)
        case.equal(mnt.names(h, "FILE_ROOT_ALLOC"), [], "leaks while an alloc is removed")
        remove(h, gone)  # removing a missing alloc succeeds
        case.equal(list(everything(places, kept)), [places.data + "/logs/" + mnt.text(kept),
                                                    places.data + "/logs/" + mnt.text(kept) + "/web.stdout.0"], "kept")
        case.equal(everything(places, gone), {}, "removed")
        trash_gone(places)
        case.equal(mnt.names(h, "FILE_ROOT_LOGS"), [mnt.text(kept)], "list of logs")
        case.equal(mnt.names(h, "FILE_ROOT_ALLOC"), [], "list of allocs")


def test_a_hostile_tree_is_removed():
    with mnt.files() as (places, h):
        alloc, victim = os.urandom(16), case.directory()
        make(h, alloc)
        with open(victim + "/precious", "w", encoding="ascii") as f:
            f.write("still here")
        local = places.data + "/alloc/" + mnt.text(alloc) + "/web/local"
        os.symlink(victim, local + "/link")
        os.link(victim + "/precious", local + "/hardlink")
        os.mkfifo(local + "/fifo")
        os.mkdir(local + "/sealed", 0o000)
        os.mkdir(local + "/" + "o" * 250)
        fd = os.open(local, os.O_RDONLY)
        for i in range(5000):  # far deeper than a path may be, or a recursion could go
            os.mkdir("deep", dir_fd=fd)
            if i % 500 == 1:
                os.symlink(victim, "link", dir_fd=fd)
            down = os.open("deep", os.O_RDONLY, dir_fd=fd)
            os.close(fd)
            fd = down
        os.close(fd)
        remove(h, alloc)
        trash_gone(places)
        case.equal(os.listdir(victim), ["precious"], "the victim")
        case.equal(os.stat(victim + "/precious").st_nlink, 1, "links to its file")


def test_sticky_directories_and_those_of_an_older_version_are_removed():
    with mnt.files() as (places, h):
        alloc = os.urandom(16)
        make(h, alloc)
        a = places.data + "/alloc/" + mnt.text(alloc)
        for path in [a] + [a + p for p in ("/alloc", "/web", "/web/secrets")]:
            os.chown(path, 0, 0)  # by root, as mount-helper of an older version made them
        case.equal(make(h, alloc), False, "made")
        for path, uid in (("/web/tmp/f", 1000), ("/alloc/f", 1001), ("/web/local/f", 0)):
            write(a + path)
            os.chown(a + path, uid, uid)
        os.mkdir(a + "/web/tmp/d", 0o1777)
        write(a + "/web/tmp/d/f")
        os.chown(a + "/web/tmp/d", 1002, 1002)
        remove(h, alloc)
        trash_gone(places)


def test_a_tree_that_is_renamed_meanwhile_is_removed():
    with mnt.files() as (places, h):
        alloc, victim = os.urandom(16), case.directory()
        os.makedirs(victim + "/x/x/x")
        make(h, alloc)
        local = places.data + "/alloc/" + mnt.text(alloc) + "/web/local"
        for i in range(50):
            os.makedirs("%s/d%d/x/x/x" % (local, i))
        held = os.open(local, os.O_RDONLY)  # a descriptor that a process outside of the task's cgroup might still have
        stop = threading.Event()

        def shuffle():
            n = 0
            while not stop.is_set():
                n += 1
                for what in (lambda: os.rename("d%d" % (n % 50), "moved", src_dir_fd=held, dst_dir_fd=held),
                             lambda: os.symlink(victim, "d%d" % (n % 50), dir_fd=held),
                             lambda: os.rename("moved", "d%d" % ((n + 7) % 50), src_dir_fd=held, dst_dir_fd=held)):
                    try:
                        what()
                    except OSError:
                        pass

        thread = threading.Thread(target=shuffle)
        thread.start()
        try:
            remove(h, alloc)
            case.until(lambda: os.fstat(held).st_nlink == 0, 30, "removal of the directory while it is renamed")
        finally:
            stop.set()
            thread.join()
            os.close(held)
        trash_gone(places)
        case.equal(sum(len(d) for _, d, _ in os.walk(victim)), 3, "directories of the victim")


def empty_again(h):
    """Removes another alloc: then the helper also tries again what it could not remove."""
    alloc = os.urandom(16)
    make(h, alloc)
    remove(h, alloc)


def release(m, alloc):
    m.ipc.call("MNT_ALLOC_RELEASE_REQ", {"alloc": alloc})


def test_a_mount_below_an_alloc_is_not_emptied():
    with mnt.both() as (places, m, h):
        alloc, volume = os.urandom(16), case.directory()
        open(volume + "/data", "w", encoding="ascii").close()
        make(h, alloc)
        a = places.data + "/alloc/" + mnt.text(alloc)
        os.mkdir(a + "/web/local/a b")
        mount(volume, a + "/web/local/a b", flags=4096)  # a bind of the same file system
        release(m, alloc)
        remove(h, alloc)
        mounted = lambda: [target for target, _ in mnt.mounts_below(places.data) if target.endswith("a\\040b")]
        case.until(lambda: mnt.names(h, "FILE_ROOT_ALLOC")[:1] != [] and len(mounted()) == 1, 10, "the mount in the trash")
        case.equal(os.listdir(volume), ["data"], "contents of the mount")
        umount(mounted()[0].replace("\\040", " "))
        release(m, alloc)  # an alloc that does not exist
        empty_again(h)
        trash_gone(places)
        case.equal(os.listdir(volume), ["data"], "the volume")


def test_a_mount_that_the_supervisor_did_not_see_is_not_emptied():
    with mnt.files() as (places, h):
        alloc, volume = os.urandom(16), case.directory()
        open(volume + "/data", "w", encoding="ascii").close()
        make(h, alloc)
        a = places.data + "/alloc/" + mnt.text(alloc)
        os.mkdir(a + "/web/local/m")
        mount(volume, a + "/web/local/m", flags=4096)
        remove(h, alloc)
        case.until(lambda: "Device or resource busy" in h.log(), 10, "warning")
        case.equal(os.listdir(volume), ["data"], "the volume")
        points = [point for point, _ in mnt.mounts_below(places.data + "/alloc/.trash")]
        case.equal((len(points), os.listdir(points[0])), (1, ["data"]), "the mount, in the trash")
        umount(points[0])
        empty_again(h)
        trash_gone(places)
        mount(volume, a.rsplit("/", 1)[0] + "/.trash", flags=4096)  # over the trash itself: the helper does not see it
        make(h, alloc)
        remove(h, alloc)
        umount(a.rsplit("/", 1)[0] + "/.trash")
        trash_gone(places)
        case.equal(os.listdir(volume), ["data"], "the volume")


def test_a_mount_in_the_trash_stays_and_is_listed():
    """A directory that cannot be removed stays in the list, its mount is not emptied, and the next removal tries again."""
    with mnt.files() as (places, h):
        alloc, volume = os.urandom(16), case.directory()
        open(volume + "/data", "w", encoding="ascii").close()
        trash = places.data + "/alloc/.trash/old"

        def plant():
            try:
                os.makedirs(trash + "/a/b", exist_ok=True)
                mount(volume, trash + "/a/b", flags=4096)
            except FileNotFoundError:  # the helper still empties the trash, as at each start
                return False
            return True
        case.until(plant, 10, "the mount in the trash")
        make(h, alloc)
        remove(h, alloc)
        case.until(lambda: "remove alloc/.trash/old: Device or resource busy" in h.log(), 10, "warning")
        case.until(lambda: mnt.names(h, "FILE_ROOT_ALLOC") == [".trash/old"], 10, "list of allocs, after the removal has failed")
        point = mnt.mounts_below(trash)[0][0]
        case.equal(os.listdir(point), ["data"], "the volume")
        umount(point)
        remove(h, alloc)
        make(h, alloc)
        remove(h, alloc)
        trash_gone(places)


def test_the_trash_of_a_killed_helper_is_emptied_by_the_next():
    with helper.Places() as places:
        for root in ("alloc", "logs", "csi/sock"):
            os.makedirs(places.data + "/" + root + "/.trash/left/behind", 0o700)
        with helper.Helper("file-helper", places):
            trash_gone(places)


def test_the_data_directory_is_used_by_its_descriptor_and_not_by_its_path():
    with helper.Places() as places:
        moved = places.data + ".moved"
        os.rename(places.data, moved)
        os.mkdir(places.data)
        try:
            with helper.Helper("file-helper", places, data=moved) as h:
                alloc = os.urandom(16)
                make(h, alloc)
                case.equal(os.path.isdir(moved + "/alloc/" + mnt.text(alloc)), True, "the alloc below the directory of the descriptor")
                case.equal(os.listdir(places.data), [], "the directory at the path")
        finally:
            os.rmdir(places.data)
            os.rename(moved, places.data)


def test_total_and_free_space_are_those_of_the_file_system():
    with mnt.files() as (places, h):
        def right():
            answer, fs = h.ipc.call("FILE_DISK_STAT_REQ").fields, os.statvfs(places.data)
            case.equal(answer["total_bytes"], fs.f_blocks * fs.f_frsize, "total")
            return abs(answer["free_bytes"] - fs.f_bavail * fs.f_frsize) < 1 << 30
        case.until(right, 10, "the free space, while other processes write and delete")


case.run(globals())
