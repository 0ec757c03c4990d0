# SPDX-License-Identifier: Apache-2.0
"""mount-helper, with directories made by file-helper: the root of a plugin and the mounts of volumes."""
import errno
import os
import signal
import subprocess

from lib import case, helper, loop, mnt
from lib.helper import mount, umount
from lib.mnt import make_plugin, make_volume, remove_volume

MS_BIND, MS_SHARED = 4096, 1 << 20


def prove(h, **place):
    return h.ipc.call("MNT_VOLUME_PROVE_REQ", {"place": mnt.place(**place)})["proof"]


def test_the_root_of_a_plugin_is_no_peer_of_the_mount_below():
    """If the data directory is a shared mount, a clone of it would be its peer, and each volume would appear twice."""
    with helper.Places() as places:
        mount(places.data + "/csi", places.data + "/csi", flags=MS_BIND)
        mount(None, places.data + "/csi", flags=MS_SHARED)
        with helper.Helper("mount-helper", places) as h, helper.Helper("file-helper", places) as f:
            make_plugin(h, f, os.urandom(16))
            groups = dict(mnt.mounts_below(places.data + "/csi"))
            case.equal(len(set(groups.values()) - {0}), 2, "peer groups of %r" % groups)
            make_volume(f)
            mnt.in_plugin_namespace(lambda: mount("v", mnt.leaf(places), "tmpfs"))
            case.equal(len(mnt.mounts_below(mnt.leaf(places))), 1, "mounts of one volume")
            umount(mnt.leaf(places))
            remove_volume(f)


def test_a_plugins_mount_appears_on_the_host_and_outlives_the_plugin():
    with mnt.both() as (places, h, f):
        make_plugin(h, f, os.urandom(16))
        case.equal(mnt.mounts_below(places.data + "/csi/node/p")[0][1] > 0, True, "the root is shared")
        make_volume(f)
        beside = case.directory()

        def plugin():
            mount("v", mnt.leaf(places), "tmpfs")
            mount("v", beside, "tmpfs")

        mnt.in_plugin_namespace(plugin)
        case.equal(len(mnt.mounts_below(mnt.leaf(places))), 1, "mounts on the host")
        case.equal(mnt.mounts_below(beside), [], "mounts outside of the shared mount")
        umount(mnt.leaf(places))
        remove_volume(f)
        case.equal(os.listdir(places.data + "/csi/node/p"), ["staging"], "in the root")


def test_the_root_survives_the_helper():
    with mnt.files() as (places, f):
        with helper.Helper("mount-helper", places) as h:
            make_plugin(h, f, os.urandom(16))
            make_volume(f)
            mount("v", mnt.leaf(places), "tmpfs")
            proof = prove(h)
            before = mnt.mounts_below(places.data + "/csi")
            h.kill()
            h.wait()
        case.equal(mnt.mounts_below(places.data + "/csi"), before, "mounts after SIGKILL")
        with helper.Helper("mount-helper", places) as h:
            make_plugin(h, f, os.urandom(16))
            case.equal(mnt.mounts_below(places.data + "/csi"), before, "mounts after the next start")
            case.equal(prove(h), proof, "proof by another process")
            umount(mnt.leaf(places))


def test_a_mount_over_the_root_of_a_plugin_is_refused():
    with mnt.both() as (places, h, f):
        alloc = os.urandom(16)
        make_plugin(h, f, alloc)
        mount("over", places.data + "/csi/node/p", "tmpfs")
        whose = {"kind": "PLUGIN_NODE", "plugin": "p"}
        for name, fields in (("MNT_VOLUME_PROVE_REQ", {"place": mnt.place()}), ("MNT_PLUGIN_ROOT_MAKE_REQ", whose), ("MNT_PLUGIN_ROOT_REMOVE_REQ", whose)):
            mnt.refused(h, errno.EBUSY, "another file system is mounted on csi/node/p", name, fields)
        umount(places.data + "/csi/node/p")
        h.ipc.call("MNT_PLUGIN_ROOT_REMOVE_REQ", whose)
        case.equal(mnt.mounts_below(places.data + "/csi/node/p"), [], "the root's mount")


def test_the_proof_identifies_the_mount():
    with mnt.both() as (places, h, f):
        alloc = os.urandom(16)
        make_plugin(h, f, alloc)
        make_volume(f, alloc=alloc)
        leaf = mnt.leaf(places, alloc=alloc)
        os.mkdir(leaf)
        mount("v", leaf, "tmpfs", 2 | 4, "mode=0750")
        proof, st, fs = prove(h, alloc=alloc), os.stat(leaf), os.statvfs(leaf)
        case.equal((proof["dev_major"], proof["dev_minor"], proof["ino"]), (os.major(st.st_dev), os.minor(st.st_dev), st.st_ino), "dev, ino")
        case.equal(proof["fs_type"], 0x01021994, "type")
        case.equal(proof["fs_flags"] & 0xF, fs.f_flag & 0xF, "flags")
        case.equal(proof["mnt_id"] > 0, True, "mount id")
        umount(leaf)
        mount("v", leaf, "tmpfs", 2 | 4, "mode=0750")
        case.equal(prove(h, alloc=alloc) != proof, True, "another mount has another proof")
        umount(leaf)
        mnt.refused(h, errno.ENODEV, "not a mount point", "MNT_VOLUME_PROVE_REQ", {"place": mnt.place(alloc=alloc)})


def test_each_failure_of_the_proof_has_its_own_error_message():
    with mnt.both() as (places, h, f):
        fields = {"place": mnt.place()}
        mnt.refused(h, errno.ENOENT, "open csi/node/p", "MNT_VOLUME_PROVE_REQ", fields)
        os.mkdir(places.data + "/csi/node/p", 0o700)
        mnt.refused(h, errno.ENOTCONN, "not a mount point of its own", "MNT_VOLUME_PROVE_REQ", fields)
        make_plugin(h, f, os.urandom(16))
        mnt.refused(h, errno.ENOENT, "open its directory", "MNT_VOLUME_PROVE_REQ", fields)
        make_volume(f)
        mnt.refused(h, errno.ENODEV, "not a mount point. Either the plugin mounted nothing", "MNT_VOLUME_PROVE_REQ", fields)
        os.rmdir(mnt.leaf(places))
        mnt.refused(h, errno.ENOENT, "without propagation", "MNT_VOLUME_PROVE_REQ", fields)
        os.symlink("/", mnt.leaf(places))
        mnt.refused(h, errno.ELOOP, "volume v of plugin p", "MNT_VOLUME_PROVE_REQ", fields)
        os.unlink(mnt.leaf(places))
        os.rmdir(os.path.dirname(mnt.leaf(places)))
        os.symlink("/", os.path.dirname(mnt.leaf(places)))
        mnt.refused(h, errno.ELOOP, "open its directory", "MNT_VOLUME_PROVE_REQ", fields)


def test_the_proof_of_a_block_device():
    with loop.Loop() as disk, mnt.both() as (places, h, f):
        alloc = os.urandom(16)
        make_plugin(h, f, alloc)
        make_volume(f, alloc=alloc)
        leaf, fields = mnt.leaf(places, alloc=alloc), {"place": mnt.place(alloc=alloc), "block": True}
        mnt.refused(h, errno.ENOENT, "the path does not exist on the host", "MNT_VOLUME_PROVE_REQ", fields)
        open(leaf, "w", encoding="ascii").close()
        mnt.refused(h, errno.ENODEV, "not a mount point", "MNT_VOLUME_PROVE_REQ", fields)
        mount(disk.path, leaf, flags=MS_BIND)
        proof, number = h.ipc.call("MNT_VOLUME_PROVE_REQ", fields)["proof"], (os.major(disk.number), os.minor(disk.number))
        case.equal((proof["is_block"], proof["rdev_major"], proof["rdev_minor"]), (True, *number), "a mounted node")
        mnt.refused(h, errno.EINVAL, "plugin p published a block device", "MNT_VOLUME_PROVE_REQ", {**fields, "block": False})
        mnt.refused(f, errno.EBUSY, "still mounted at rw", "FILE_VOLUME_DIR_REMOVE_REQ", {"place": fields["place"]})
        umount(leaf)
        mount("/dev/null", leaf, flags=MS_BIND)
        mnt.refused(h, errno.EINVAL, "published something else", "MNT_VOLUME_PROVE_REQ", fields)
        umount(leaf)
        os.unlink(leaf)
        os.symlink(disk.path, leaf)
        mnt.refused(h, errno.ELOOP, "volume v of plugin p", "MNT_VOLUME_PROVE_REQ", fields)
        os.unlink(leaf)
        os.mkdir(leaf)
        mount("v", leaf, "tmpfs")
        mnt.refused(h, errno.EINVAL, "published something else", "MNT_VOLUME_PROVE_REQ", fields)
        umount(leaf)
        os.rmdir(leaf)
        os.mknod(leaf, 0o60600, disk.number)
        again = h.ipc.call("MNT_VOLUME_PROVE_REQ", fields)["proof"]
        case.equal((again["is_block"], again["rdev_major"], again["rdev_minor"]), (True, *number), "a node that the plugin made")
        case.equal(h.ipc.call("MNT_VOLUME_UNMOUNT_REQ", {"place": fields["place"]})["unmounted"], 0, "unmounted")
        remove_volume(f, alloc=alloc)
        case.equal(os.path.exists(leaf), False, "the node")


def test_a_file_system_that_never_answers_delays_nothing():
    if not os.path.exists("/dev/fuse"):
        case.skip("no /dev/fuse")
    with mnt.both() as (places, h, f):
        make_plugin(h, f, os.urandom(16))
        make_volume(f)
        with mnt.Hang(mnt.leaf(places)) as hang:
            make_volume(f)  # without a call to that file system
            mnt.refused(f, errno.EBUSY, "still mounted", "FILE_VOLUME_DIR_REMOVE_REQ", {"place": mnt.place()})
            serial = h.ipc.send("MNT_VOLUME_PROVE_REQ", {"place": mnt.place()})
            hang.expect(b"statfs\n")
            # A request that waited for it would never end. Its own answer comes at its deadline, perhaps between those of others.
            others = [h.ipc.send("MNT_ALLOC_RELEASE_REQ", {"alloc": os.urandom(16)}) for _ in range(50)]
            answers = {a.serial: a for a in (h.ipc.recv() for _ in range(51))}
            case.equal({answers[n].name for n in others}, {"MNT_ALLOC_RELEASE_REP"}, "answers to the others")
            late = answers[serial]
            case.equal((late.name, -late["code"]), ("IPC_ERROR_REP", errno.ETIMEDOUT), "the answer for the file system that hangs")
            case.contains(late["text"], "prove the mount of volume v: no answer in time", "error")
            stuck = case.until(lambda: len(found := mnt.children(h.pid)) == 1 and found, 10, "children that SIGKILL has not ended")
            h.stop()
        case.until(lambda: not os.path.exists("/proc/%d" % stuck[0]) or reap(stuck[0]), 10, "end of the stuck child")


def test_the_proof_of_a_file_system_whose_server_died_fails():
    if not os.path.exists("/dev/fuse"):
        case.skip("no /dev/fuse")
    with mnt.both() as (places, h, f):
        make_plugin(h, f, os.urandom(16))
        make_volume(f)
        with mnt.Hang(mnt.leaf(places)) as hang:
            hang.process.send_signal(signal.SIGKILL)
            hang.process.wait()
            mnt.refused(h, errno.ENOTCONN, "stat the mounted file system", "MNT_VOLUME_PROVE_REQ", {"place": mnt.place()})


def test_the_proof_of_a_fuse_file_system_stays_the_same():
    """Before the kernel has asked such a file system for the inode number of its root, it returns one of its own."""
    if not os.path.exists("/dev/fuse"):
        case.skip("no /dev/fuse")
    with mnt.both() as (places, h, f):
        make_plugin(h, f, os.urandom(16))
        make_volume(f)
        subprocess.run(["bindfs", case.directory(), mnt.leaf(places)], check=True)
        proof = prove(h)
        case.equal(os.stat(mnt.leaf(places)).st_ino, proof["ino"], "the inode number")
        case.equal(prove(h), proof, "the second proof")
        umount(mnt.leaf(places))
        remove_volume(f)


def reap(pid):
    """Waits for an orphan: pid 1 of the test's namespace is its parent, or this process if the test runs without it."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return False


def test_with_sixteen_stuck_children_further_requests_are_refused():
    if not os.path.exists("/dev/fuse"):
        case.skip("no /dev/fuse")
    with mnt.both() as (places, h, f):
        make_plugin(h, f, os.urandom(16))
        make_volume(f)
        with mnt.Hang(mnt.leaf(places)):
            serials = [h.ipc.send("MNT_VOLUME_PROVE_REQ", {"place": mnt.place()}) for _ in range(16)]
            answers = [h.ipc.recv() for _ in serials]
            case.equal({a["code"] for a in answers}, {-errno.ETIMEDOUT}, "codes")
            case.equal(sorted(a.serial for a in answers), serials, "each request has its answer")
            mnt.refused(h, errno.EBUSY, "16 earlier operations hang", "MNT_VOLUME_PROVE_REQ", {"place": mnt.place()})
            h.ipc.call("MNT_ALLOC_RELEASE_REQ", {"alloc": os.urandom(16)})
        case.until(lambda: not mnt.children(h.pid), 10, "end of the stuck children")
        mnt.refused(h, errno.ENODEV, "not a mount point", "MNT_VOLUME_PROVE_REQ", {"place": mnt.place()})


case.run(globals())
