# SPDX-License-Identifier: Apache-2.0
"""mount-helper alone: a plugin's directories and the mounts of volumes."""
import errno
import os
import signal

from lib import case, helper, mnt
from lib.helper import mount, umount

MS_BIND, MS_SHARED = 4096, 1 << 20


def make_plugin(h, alloc, plugin="p", kind="PLUGIN_NODE"):
    return h.ipc.call("MNT_PLUGIN_DIR_MAKE_REQ", {"alloc": alloc, "kind": kind, "plugin": plugin}).fields


def make_volume(h, **place):
    return h.ipc.call("MNT_VOLUME_DIR_MAKE_REQ", {"place": mnt.place(**place)})["is_mount"]


def prove(h, **place):
    return h.ipc.call("MNT_VOLUME_PROVE_REQ", {"place": mnt.place(**place)})["proof"]


def remove_volume(h, unmount=False, **place):
    fields = {"place": mnt.place(**place), "unmount": unmount}
    return h.ipc.call("MNT_VOLUME_DIR_REMOVE_REQ", fields)["was_mount"]


def test_plugin_directories():
    with mnt.started() as (places, h):
        alloc = os.urandom(16)
        sock, root = places.data + "/csi/sock/" + mnt.text(alloc), places.data + "/csi/node/p"
        for _ in range(3):
            case.equal(make_plugin(h, alloc), {"socket_dir": sock, "root_dir": root}, "paths")
        for path in (sock, root):
            case.equal(mnt.mode(path), ("0o40700", 0, 0), path)
        mounts = mnt.mounts_below(root)
        case.equal(len(mounts), 1, "mounts after three requests")
        case.equal(mounts[0][1] > 0, True, "shared")
        make_plugin(h, alloc, "p", "PLUGIN_MONOLITH")
        case.equal(len(mnt.mounts_below(places.data + "/csi/monolith/p")), 1, "mounts of the other kind")


def test_the_root_is_no_peer_of_what_it_covers():
    """Below a shared data directory a clone of its mount would be its peer, and each volume would appear twice."""
    with helper.Places() as places:
        mount(places.data + "/csi", places.data + "/csi", flags=MS_BIND)
        mount(None, places.data + "/csi", flags=MS_SHARED)
        with helper.Helper("mount-helper", places) as h:
            make_plugin(h, os.urandom(16))
            groups = dict(mnt.mounts_below(places.data + "/csi"))
            case.equal(len(set(groups.values()) - {0}), 2, "peer groups of %r" % groups)
            make_volume(h)
            mnt.in_plugin_namespace(lambda: mount("v", mnt.leaf(places), "tmpfs"))
            case.equal(len(mnt.mounts_below(mnt.leaf(places))), 1, "mounts of one volume")
            case.equal(remove_volume(h, unmount=True), True, "was_mount")


def test_a_plugins_mount_appears_on_the_host_and_outlives_it():
    with mnt.started() as (places, h):
        make_plugin(h, os.urandom(16))
        case.equal(make_volume(h), False, "is_mount before")
        beside = case.directory()

        def plugin():
            mount("v", mnt.leaf(places), "tmpfs")
            mount("v", beside, "tmpfs")

        mnt.in_plugin_namespace(plugin)
        case.equal(len(mnt.mounts_below(mnt.leaf(places))), 1, "mounts on the host")
        case.equal(mnt.mounts_below(beside), [], "mounts where nothing is shared")
        case.equal(make_volume(h), True, "is_mount after")
        case.equal(remove_volume(h, unmount=True), True, "was_mount")
        case.equal(mnt.mounts_below(mnt.leaf(places)), [], "mounts on the host")


def test_the_root_survives_the_helper():
    with helper.Places() as places:
        with helper.Helper("mount-helper", places) as h:
            make_plugin(h, os.urandom(16))
            make_volume(h)
            mount("v", mnt.leaf(places), "tmpfs")
            proof = prove(h)
            before = mnt.mounts_below(places.data + "/csi")
            h.kill()
            h.wait()
        case.equal(mnt.mounts_below(places.data + "/csi"), before, "mounts after SIGKILL")
        with helper.Helper("mount-helper", places) as h:
            make_plugin(h, os.urandom(16))
            case.equal(mnt.mounts_below(places.data + "/csi"), before, "mounts after the next start")
            case.equal(prove(h), proof, "proof by another process")
            remove_volume(h, unmount=True)


def test_a_stale_socket_goes_whatever_it_is():
    with mnt.started() as (places, h):
        alloc, victim = os.urandom(16), case.directory()
        sock = places.data + "/csi/sock/" + mnt.text(alloc)
        make_plugin(h, alloc)
        os.chown(sock, 4711, 4711)
        for plant in (lambda p: open(p, "w", encoding="ascii").close(), lambda p: os.makedirs(p + "/full/of"),
                      lambda p: os.symlink(victim, p), os.mkfifo):
            plant(sock + "/csi.sock")
            make_plugin(h, alloc)
            case.equal(os.listdir(sock), [], "the socket directory")
        case.equal(mnt.mode(sock), ("0o40700", 4711, 4711), "owner after the repetition")


def test_removal_of_a_plugin():
    with mnt.started() as (places, h):
        alloc = os.urandom(16)
        root = places.data + "/csi/node/p"
        make_plugin(h, alloc)
        make_volume(h)
        fields = {"alloc": alloc, "kind": "PLUGIN_NODE", "plugin": "p"}
        mnt.refused(h, errno.ENOTEMPTY, "still holds volumes in staging", "MNT_PLUGIN_DIR_REMOVE_REQ", fields)
        case.equal(len(mnt.mounts_below(root)), 1, "mounts after the refusal")
        remove_volume(h)
        mount("litter", root, "tmpfs")  # what a plugin left that is no volume
        umount(root)
        h.ipc.call("MNT_PLUGIN_DIR_REMOVE_REQ", {"alloc": alloc})
        case.equal((os.path.exists(root), os.path.exists(places.data + "/csi/sock/" + mnt.text(alloc))), (True, False),
                   "root, socket directory")
        for _ in range(2):
            h.ipc.call("MNT_PLUGIN_DIR_REMOVE_REQ", fields)
            case.equal((os.path.exists(root), mnt.mounts_below(root)), (False, []), "root")


def test_something_mounted_over_the_root_is_refused():
    with mnt.started() as (places, h):
        alloc = os.urandom(16)
        make_plugin(h, alloc)
        mount("over", places.data + "/csi/node/p", "tmpfs")
        for name in ("MNT_VOLUME_DIR_MAKE_REQ", "MNT_VOLUME_PROVE_REQ", "MNT_VOLUME_DIR_REMOVE_REQ"):
            mnt.refused(h, errno.EBUSY, "another file system is mounted on csi/node/p", name, {"place": mnt.place()})
        umount(places.data + "/csi/node/p")
        make_volume(h)


def test_volume_directories():
    with mnt.both() as (places, h, f):
        alloc = os.urandom(16)
        make_plugin(h, alloc)
        case.equal(make_volume(h), False, "is_mount")
        case.equal(mnt.mode(mnt.leaf(places)), ("0o40700", 0, 0), "staging directory")
        case.equal(make_volume(h, alloc=alloc), False, "is_mount")
        leaf = mnt.leaf(places, alloc=alloc)
        case.equal((os.path.exists(leaf), mnt.mode(os.path.dirname(leaf))), (False, ("0o40700", 0, 0)), "the leaf is the plugin's")
        os.mkdir(leaf)
        make_volume(h, alloc=alloc, usage="ro")
        case.equal(mnt.names(f, "FILE_ROOT_CSI"), ["node/p/per-alloc/%s/v/rw" % mnt.text(alloc), "node/p/staging/v/rw"], "list")
        case.equal(remove_volume(h, alloc=alloc), False, "was_mount")
        case.equal(remove_volume(h), False, "was_mount")
        case.equal(remove_volume(h), False, "was_mount of nothing")
        case.equal(sorted(os.listdir(places.data + "/csi/node/p")), ["per-alloc", "staging"], "in the root")
        case.equal(mnt.names(f, "FILE_ROOT_CSI"), ["node/p"], "list")


def test_data_in_a_leaf_that_is_no_mount_is_not_removed():
    with mnt.started() as (places, h):
        alloc = os.urandom(16)
        make_plugin(h, alloc)
        make_volume(h, alloc=alloc)
        leaf = mnt.leaf(places, alloc=alloc)
        os.mkdir(leaf)
        open(leaf + "/data", "w", encoding="ascii").close()
        mnt.refused(h, errno.ENOTEMPTY, "remove rw of volume v", "MNT_VOLUME_DIR_REMOVE_REQ", {"place": mnt.place(alloc=alloc), "unmount": True})
        mnt.refused(h, errno.ENOTEMPTY, "is not unpublished", "MNT_ALLOC_RELEASE_REQ", {"alloc": alloc})
        os.unlink(leaf + "/data")
        h.ipc.call("MNT_ALLOC_RELEASE_REQ", {"alloc": alloc})
        case.equal(os.listdir(places.data + "/csi/node/p/per-alloc"), [], "per-alloc")


def test_a_plugins_litter_beside_the_volumes_does_not_keep_an_alloc():
    with mnt.started() as (places, h):
        alloc, elsewhere = os.urandom(16), case.directory()
        os.mkdir(elsewhere + "/kept")
        make_plugin(h, alloc)
        make_volume(h, alloc=alloc)
        top = places.data + "/csi/node/p/per-alloc/" + mnt.text(alloc)
        for at in (top, top + "/v"):
            open(at + "/file", "w", encoding="ascii").close()
            os.symlink(elsewhere, at + "/link")
        h.ipc.call("MNT_ALLOC_RELEASE_REQ", {"alloc": alloc})
        case.equal(os.listdir(places.data + "/csi/node/p/per-alloc"), [], "per-alloc")
        case.equal(os.listdir(elsewhere), ["kept"], "where the links led")


def test_the_proof_tells_what_is_mounted():
    with mnt.started() as (places, h):
        alloc = os.urandom(16)
        make_plugin(h, alloc)
        make_volume(h, alloc=alloc)
        leaf = mnt.leaf(places, alloc=alloc)
        os.mkdir(leaf)
        mount("v", leaf, "tmpfs", 2 | 4, "mode=0750")
        proof, st, fs = prove(h, alloc=alloc), os.stat(leaf), os.statvfs(leaf)
        case.equal((proof["dev_major"], proof["dev_minor"], proof["ino"]), (os.major(st.st_dev), os.minor(st.st_dev), st.st_ino), "dev, ino")
        case.equal(proof["fs_type"], 0x01021994, "type")
        case.equal(proof["fs_flags"] & 0xF, fs.f_flag & 0xF, "flags")
        case.equal(proof["mnt_id"] > 0, True, "mount id")
        mnt.refused(h, errno.EBUSY, "is still mounted at rw", "MNT_VOLUME_DIR_REMOVE_REQ", {"place": mnt.place(alloc=alloc)})
        mnt.refused(h, errno.EBUSY, "is not unpublished", "MNT_ALLOC_RELEASE_REQ", {"alloc": alloc})
        umount(leaf)
        mount("v", leaf, "tmpfs", 2 | 4, "mode=0750")
        case.equal(prove(h, alloc=alloc) != proof, True, "another mount has another proof")
        case.equal(remove_volume(h, alloc=alloc, unmount=True), True, "was_mount")
        case.equal((os.path.exists(leaf), mnt.mounts_below(leaf)), (False, []), "the leaf")


def test_each_failure_of_the_proof_has_its_sentence():
    with mnt.started() as (places, h):
        fields = {"place": mnt.place()}
        mnt.refused(h, errno.ENOENT, "open csi/node/p", "MNT_VOLUME_PROVE_REQ", fields)
        os.mkdir(places.data + "/csi/node/p", 0o700)
        mnt.refused(h, errno.ENOTCONN, "no mount point of its own", "MNT_VOLUME_PROVE_REQ", fields)
        make_plugin(h, os.urandom(16))
        mnt.refused(h, errno.ENOENT, "open its directory", "MNT_VOLUME_PROVE_REQ", fields)
        make_volume(h)
        mnt.refused(h, errno.ENODEV, "no mount point. Either the plugin mounted nothing", "MNT_VOLUME_PROVE_REQ", fields)
        os.rmdir(mnt.leaf(places))
        mnt.refused(h, errno.ENOENT, "without propagation", "MNT_VOLUME_PROVE_REQ", fields)
        os.symlink("/", mnt.leaf(places))
        mnt.refused(h, errno.ELOOP, "volume v of plugin p", "MNT_VOLUME_PROVE_REQ", fields)
        os.unlink(mnt.leaf(places))
        os.rmdir(os.path.dirname(mnt.leaf(places)))
        os.symlink("/", os.path.dirname(mnt.leaf(places)))
        mnt.refused(h, errno.ELOOP, "open its directory", "MNT_VOLUME_PROVE_REQ", fields)
        mnt.refused(h, errno.ELOOP, "make the directory", "MNT_VOLUME_DIR_MAKE_REQ", fields)
        mnt.refused(h, errno.ELOOP, "open the directory", "MNT_VOLUME_DIR_REMOVE_REQ", fields)


def test_busy_and_stacked_mounts_are_taken_away():
    with mnt.started() as (places, h):
        make_plugin(h, os.urandom(16))
        make_volume(h)
        leaf = mnt.leaf(places)
        for _ in range(3):
            mount("v", leaf, "tmpfs")
        held = os.open(leaf, os.O_RDONLY)
        try:
            case.equal(remove_volume(h, unmount=True), True, "was_mount")
            case.equal((os.path.exists(leaf), mnt.mounts_below(leaf)), (False, []), "the leaf")
        finally:
            os.close(held)


def test_a_file_system_that_never_answers_delays_nothing():
    if not os.path.exists("/dev/fuse"):
        case.skip("no /dev/fuse")
    with mnt.started() as (places, h):
        make_plugin(h, os.urandom(16))
        make_volume(h)
        with mnt.Hang(mnt.leaf(places)) as hang:
            case.equal(make_volume(h), True, "is_mount, without asking it")
            serial = h.ipc.send("MNT_VOLUME_PROVE_REQ", {"place": mnt.place()})
            hang.expect(b"statfs\n")
            # Whoever waited for it would do so for ever; its own answer comes at its deadline, be it among the others'.
            others = [h.ipc.send("MNT_ALLOC_RELEASE_REQ", {"alloc": os.urandom(16)}) for _ in range(50)]
            answers = {a.serial: a for a in (h.ipc.recv() for _ in range(51))}
            case.equal({answers[n].name for n in others}, {"MNT_ALLOC_RELEASE_REP"}, "answers to the others")
            late = answers[serial]
            case.equal((late.name, -late["code"]), ("IPC_ERROR_REP", errno.ETIMEDOUT), "the answer that cannot be given")
            case.contains(late["text"], "prove the mount of volume v: no answer in time", "error")
            stuck = case.until(lambda: len(found := mnt.children(h.pid)) == 1 and found, 10, "one child that SIGKILL did not end")
            h.stop()
        case.until(lambda: not os.path.exists("/proc/%d" % stuck[0]) or reap(stuck[0]), 10, "end of the stuck child")


def reap(pid):
    """In the test's pid namespace its runner is the parent of orphans; without it this process may be."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return False


def test_at_sixteen_stuck_children_the_helper_refuses_more():
    if not os.path.exists("/dev/fuse"):
        case.skip("no /dev/fuse")
    with mnt.started() as (places, h):
        make_plugin(h, os.urandom(16))
        make_volume(h)
        with mnt.Hang(mnt.leaf(places)):
            serials = [h.ipc.send("MNT_VOLUME_PROVE_REQ", {"place": mnt.place()}) for _ in range(16)]
            answers = [h.ipc.recv() for _ in serials]
            case.equal({a["code"] for a in answers}, {-errno.ETIMEDOUT}, "codes")
            case.equal(sorted(a.serial for a in answers), serials, "each request has its answer")
            mnt.refused(h, errno.EBUSY, "16 earlier operations hang", "MNT_VOLUME_PROVE_REQ", {"place": mnt.place()})
            h.ipc.call("MNT_ALLOC_RELEASE_REQ", {"alloc": os.urandom(16)})
        case.until(lambda: not mnt.children(h.pid), 10, "end of the stuck children")
        mnt.refused(h, errno.ENODEV, "no mount point", "MNT_VOLUME_PROVE_REQ", {"place": mnt.place()})


def test_unmount_of_a_dead_file_system():
    if not os.path.exists("/dev/fuse"):
        case.skip("no /dev/fuse")
    with mnt.started() as (places, h):
        make_plugin(h, os.urandom(16))
        make_volume(h)
        with mnt.Hang(mnt.leaf(places)) as hang:
            hang.process.send_signal(signal.SIGKILL)
            hang.process.wait()
            mnt.refused(h, errno.ENOTCONN, "ask the mounted file system", "MNT_VOLUME_PROVE_REQ", {"place": mnt.place()})
            case.equal(remove_volume(h, unmount=True), True, "was_mount")


def test_lists():
    with mnt.both() as (places, h, f):
        alloc = os.urandom(16)
        f.ipc.call("FILE_ALLOC_DIR_MAKE_REQ", {"alloc": alloc, "tasks": ["web"]})
        make_plugin(h, alloc)
        make_plugin(h, alloc, "q", "PLUGIN_CONTROLLER")
        for root in ("ALLOC", "LOGS", "CSI_SOCK"):
            case.equal(mnt.names(f, "FILE_ROOT_" + root), [mnt.text(alloc)], root)
        case.equal(mnt.names(f, "FILE_ROOT_CSI"), ["controller/q", "node/p"], "CSI")
        make_volume(h)
        mount("v", mnt.leaf(places), "tmpfs")
        os.makedirs(mnt.leaf(places) + "/not/entered")
        os.symlink("/", places.data + "/csi/node/p/staging/link")  # a plugin's litter: named, not followed
        os.makedirs(places.data + "/csi/node/p/staging/half")
        case.equal(mnt.names(f, "FILE_ROOT_CSI"), ["controller/q"] + ["node/p/staging/" + n for n in ("half", "link", "v/rw")], "CSI")
        umount(mnt.leaf(places))


case.run(globals())
