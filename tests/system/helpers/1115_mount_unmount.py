# SPDX-License-Identifier: Apache-2.0
"""mount-helper unmounts a volume whose plugin said that it is unmounted: that mount and no other."""
import errno
import os
import signal

from lib import case, helper, mnt
from lib.helper import mount, umount
from lib.mnt import make_plugin, make_volume, remove_volume

MS_BIND = 4096


def prove(h, **place):
    return h.ipc.call("MNT_VOLUME_PROVE_REQ", {"place": mnt.place(**place)})["proof"]


def request(proof=None, detach=False, **place):
    found = {"place": mnt.place(**place), "detach": detach}
    return {**found, "proof": proof, "has_proof": True} if proof else found


def unmount(h, *args, **kwargs):
    """Returns (number of mounts that were unmounted, whether one was in use)."""
    rep = h.ipc.call("MNT_VOLUME_UNMOUNT_REQ", request(*args, **kwargs))
    return rep["unmounted"], rep["detached"]


def refused(h, code, part, *args, **kwargs):
    mnt.refused(h, code, part, "MNT_VOLUME_UNMOUNT_REQ", request(*args, **kwargs))


def published(h, f, places, alloc):
    """Publishes a volume as a plugin does. Returns (leaf, proof)."""
    make_plugin(h, f, alloc)
    make_volume(f, alloc=alloc)
    leaf = mnt.leaf(places, alloc=alloc)
    os.mkdir(leaf)
    mount("v", leaf, "tmpfs")
    return leaf, prove(h, alloc=alloc)


def test_the_recorded_mount_is_unmounted_and_its_directory_can_be_removed():
    with mnt.both() as (places, h, f):
        alloc = os.urandom(16)
        leaf, proof = published(h, f, places, alloc)
        beside = mnt.leaf(places, alloc=alloc, usage="ro")
        os.mkdir(beside)
        mount("other", beside, "tmpfs")
        case.equal(unmount(h, proof, alloc=alloc), (1, False), "unmounted, detached")
        case.equal((mnt.mounts_below(leaf), len(mnt.mounts_below(beside))), ([], 1), "mounts")
        case.equal(unmount(h, proof, alloc=alloc), (0, False), "the second time")
        umount(beside)
        os.rmdir(beside)
        remove_volume(f, alloc=alloc)


def test_a_mount_without_a_proof_is_unmounted_from_its_own_place():
    with mnt.both() as (places, h, f):
        make_plugin(h, f, os.urandom(16))
        make_volume(f)
        mnt.in_plugin_namespace(lambda: mount("v", mnt.leaf(places), "tmpfs"))
        case.equal(unmount(h), (1, False), "unmounted, detached")
        remove_volume(f)
        case.equal([m for m in mnt.mounts_below(places.data + "/csi") if not m[0].endswith("/node/p")], [], "mounts")


def test_mounts_of_a_volume_on_one_another_are_all_unmounted():
    """A plugin that is not idempotent publishes once more when it is asked again."""
    with mnt.both() as (places, h, f):
        alloc = os.urandom(16)
        data, leaf = case.directory(), mnt.leaf(places, alloc=alloc)
        make_plugin(h, f, alloc)
        make_volume(f, alloc=alloc)
        os.mkdir(leaf)
        for _ in range(3):
            mount(data, leaf, flags=MS_BIND)
        case.equal(unmount(h, prove(h, alloc=alloc), alloc=alloc), (3, False), "unmounted, detached")
        case.equal(mnt.mounts_below(leaf), [], "mounts")


def test_a_volume_that_is_not_mounted_is_no_error():
    with mnt.both() as (places, h, f):
        case.equal(unmount(h), (0, False), "without a plugin")
        make_plugin(h, f, os.urandom(16))
        case.equal(unmount(h), (0, False), "without a directory")
        make_volume(f)
        case.equal(unmount(h), (0, False), "without a mount")
        os.rmdir(mnt.leaf(places))
        case.equal(unmount(h), (0, False), "without a leaf")
        open(mnt.leaf(places), "w", encoding="ascii").close()
        case.equal(unmount(h), (0, False), "with a file")


def test_another_mount_in_place_of_the_recorded_one_is_refused():
    with mnt.both() as (places, h, f):
        alloc = os.urandom(16)
        leaf, proof = published(h, f, places, alloc)
        mount("over", leaf, "tmpfs")
        refused(h, errno.ESTALE, "csi/node/p/per-alloc/%s/v/rw/ is not the recorded mount" % mnt.text(alloc), proof, alloc=alloc)
        case.equal(len(mnt.mounts_below(leaf)), 2, "mounts on the leaf")
        umount(leaf)
        umount(leaf)
        mount("later", leaf, "tmpfs")
        refused(h, errno.ESTALE, "is not the recorded mount", proof, True, alloc=alloc)
        for field in ("ino", "dev_minor", "btime_nsec", "mnt_id"):
            found = prove(h, alloc=alloc)
            refused(h, errno.ESTALE, "is not the recorded mount", {**found, field: found[field] + 1}, alloc=alloc)
        umount(leaf)


def test_under_the_recorded_mount_another_one_stays():
    with mnt.both() as (places, h, f):
        alloc = os.urandom(16)
        leaf, _ = published(h, f, places, alloc)
        mount("over", leaf, "tmpfs")
        refused(h, errno.ESTALE, "is not the recorded mount", prove(h, alloc=alloc), alloc=alloc)
        case.equal(len(mnt.mounts_below(leaf)), 1, "mounts on the leaf")
        umount(leaf)


def test_a_mount_in_use_is_detached_only_on_request():
    with mnt.both() as (places, h, f):
        alloc = os.urandom(16)
        leaf, proof = published(h, f, places, alloc)
        with open(leaf + "/open", "w", encoding="ascii"):
            refused(h, errno.EBUSY, "a process uses it", proof, alloc=alloc)
            case.equal(len(mnt.mounts_below(leaf)), 1, "mounts after the refusal")
            case.equal(unmount(h, proof, True, alloc=alloc), (1, True), "unmounted, detached")
            case.equal(mnt.mounts_below(leaf), [], "mounts")


def test_what_others_mounted_in_a_volume_is_never_unmounted():
    with mnt.both() as (places, h, f):
        alloc = os.urandom(16)
        leaf, proof = published(h, f, places, alloc)
        os.mkdir(leaf + "/inner")
        mount("inner", leaf + "/inner", "tmpfs")
        refused(h, errno.EBUSY, "something is mounted in it", proof, alloc=alloc)
        refused(h, errno.EBUSY, "cannot be unmounted: something is mounted in it", proof, True, alloc=alloc)
        case.equal(len(mnt.mounts_below(leaf)), 2, "mounts")
        umount(leaf + "/inner")
        umount(leaf)


def test_links_and_mounts_on_the_way_lead_nowhere():
    with mnt.both() as (places, h, f):
        victim = case.directory()
        os.makedirs(victim + "/rw")
        mount("victim", victim + "/rw", "tmpfs")
        make_plugin(h, f, os.urandom(16))
        make_volume(f)
        leaf, between = mnt.leaf(places), os.path.dirname(mnt.leaf(places))
        os.rmdir(leaf)
        os.symlink(victim + "/rw", leaf)
        refused(h, errno.ELOOP, "volume v of plugin p", detach=True)
        os.unlink(leaf)
        os.rmdir(between)
        os.symlink(victim, between)
        refused(h, errno.ELOOP, "open its directory", detach=True)
        os.unlink(between)
        os.mkdir(between)
        mount(victim, between, flags=MS_BIND | 16384)  # MS_REC
        refused(h, errno.EXDEV, "open its directory", detach=True)
        umount(between + "/rw")
        umount(between)
        mount("over", places.data + "/csi/node/p", "tmpfs")
        refused(h, errno.EBUSY, "another file system is mounted on csi/node/p", detach=True)
        umount(places.data + "/csi/node/p")
        case.equal(len(mnt.mounts_below(victim)), 1, "mounts of others")
        umount(victim + "/rw")


def test_a_file_system_that_does_not_answer_is_unmounted():
    with mnt.both() as (places, h, f):
        make_plugin(h, f, os.urandom(16))
        make_volume(f)
        leaf = mnt.leaf(places)
        with mnt.Hang(leaf) as hang:
            case.equal(unmount(h, detach=True)[0], 1, "one that hangs")
            case.equal(mnt.mounts_below(leaf), [], "mounts")
        with mnt.Hang(leaf) as hang:
            hang.process.send_signal(signal.SIGKILL)
            hang.process.wait()
            case.equal(unmount(h), (1, False), "one whose server died")


def test_a_mounted_file_is_unmounted():
    """A volume that is a block device is a file."""
    with mnt.both() as (places, h, f):
        alloc = os.urandom(16)
        make_plugin(h, f, alloc)
        make_volume(f, alloc=alloc)
        leaf = mnt.leaf(places, alloc=alloc)
        open(leaf, "w", encoding="ascii").close()
        mount("/dev/null", leaf, flags=MS_BIND)
        case.equal(unmount(h, alloc=alloc), (1, False), "unmounted, detached")
        remove_volume(f, alloc=alloc)


case.run(globals())
