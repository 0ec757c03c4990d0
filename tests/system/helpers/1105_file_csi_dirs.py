# SPDX-License-Identifier: Apache-2.0
"""file-helper, with mount-helper where a mount is needed: the directories of plugins and volumes."""
import errno
import os

from lib import case, mnt
from lib.helper import mount, umount
from lib.mnt import make_plugin, make_volume, remove_volume

MS_BIND = 4096


def trash_gone(places):
    case.until(lambda: not os.listdir(places.data + "/csi/sock/.trash"), 10, "empty trash")


def test_directories_of_a_plugin_have_their_modes():
    with mnt.both() as (places, m, f):
        alloc = os.urandom(16)
        sock, root = places.data + "/csi/sock/" + mnt.text(alloc), places.data + "/csi/node/p"
        for _ in range(3):
            make_plugin(m, f, alloc)
        for path in (sock, root):
            case.equal(mnt.mode(path), ("0o40700", 0, 0), path)


def test_directories_that_a_crash_left_to_file_helper_are_given_to_root():
    with mnt.files() as (places, f):
        alloc = os.urandom(16)
        paths = [places.data + "/csi/sock/" + mnt.text(alloc), places.data + "/csi/node/p"]
        for path in paths:
            os.mkdir(path, 0o700)
            os.chown(path, places.uid["file"], places.uid["file"])
        f.ipc.call("FILE_PLUGIN_DIR_MAKE_REQ", {"alloc": alloc, "kind": "PLUGIN_NODE", "plugin": "p"})
        for path in paths:
            case.equal(mnt.mode(path), ("0o40700", 0, 0), path)


def test_anything_in_place_of_the_socket_is_removed():
    with mnt.files() as (places, f):
        alloc, victim = os.urandom(16), case.directory()
        sock, fields = places.data + "/csi/sock/" + mnt.text(alloc), {"alloc": alloc, "kind": "PLUGIN_NODE", "plugin": "p"}
        f.ipc.call("FILE_PLUGIN_DIR_MAKE_REQ", fields)
        os.chown(sock, 4711, 4711)
        for plant in (lambda p: open(p, "w", encoding="ascii").close(), lambda p: os.makedirs(p + "/full/of"),
                      lambda p: os.symlink(victim, p), os.mkfifo):
            plant(sock + "/csi.sock")
            f.ipc.call("FILE_PLUGIN_DIR_MAKE_REQ", fields)
            case.equal(os.listdir(sock), [], "the socket directory")
        case.equal(mnt.mode(sock), ("0o40700", 4711, 4711), "owner after the repetition")
        trash_gone(places)


def test_directories_of_a_plugin_are_removed_unless_a_volume_is_mounted():
    with mnt.both() as (places, m, f):
        alloc = os.urandom(16)
        root = places.data + "/csi/node/p"
        make_plugin(m, f, alloc)
        make_volume(f)
        whose, fields = {"kind": "PLUGIN_NODE", "plugin": "p"}, {"alloc": alloc, "kind": "PLUGIN_NODE", "plugin": "p"}
        mnt.refused(m, errno.ENOTEMPTY, "still holds volumes in staging", "MNT_PLUGIN_ROOT_REMOVE_REQ", whose)
        mnt.refused(f, errno.ENOTEMPTY, "still holds volumes in staging", "FILE_PLUGIN_DIR_REMOVE_REQ", fields)
        case.equal(len(mnt.mounts_below(root)), 1, "mounts after the refusal")
        remove_volume(f)
        mnt.refused(f, errno.EBUSY, "move node/p to the trash", "FILE_PLUGIN_DIR_REMOVE_REQ", fields)
        os.mkdir(root + "/litter")  # files of the plugin that belong to no volume
        mount("litter", root + "/litter", "tmpfs")
        f.ipc.call("FILE_PLUGIN_DIR_REMOVE_REQ", {"alloc": alloc})
        case.equal((os.path.exists(root), os.path.exists(places.data + "/csi/sock/" + mnt.text(alloc))), (True, False),
                   "root, socket directory")
        for _ in range(2):
            m.ipc.call("MNT_PLUGIN_ROOT_REMOVE_REQ", whose)
            f.ipc.call("FILE_PLUGIN_DIR_REMOVE_REQ", fields)
            case.equal((os.path.exists(root), mnt.mounts_below(root)), (False, []), "root")
        trash_gone(places)


def test_directories_of_a_volume_are_made_and_removed():
    with mnt.both() as (places, m, f):
        alloc = os.urandom(16)
        make_plugin(m, f, alloc)
        for _ in range(2):
            make_volume(f)
        case.equal(mnt.mode(mnt.leaf(places)), ("0o40700", 0, 0), "staging directory, in the mount of the root")
        make_volume(f, alloc=alloc)
        leaf = mnt.leaf(places, alloc=alloc)
        case.equal((os.path.exists(leaf), mnt.mode(os.path.dirname(leaf))), (False, ("0o40700", 0, 0)), "the leaf, which the plugin makes, and its parent")
        os.mkdir(leaf)
        make_volume(f, alloc=alloc, usage="ro")
        case.equal(mnt.names(f, "FILE_ROOT_CSI"), ["node/p/per-alloc/%s/v/rw" % mnt.text(alloc), "node/p/staging/v/rw"], "list")
        remove_volume(f, alloc=alloc)
        for _ in range(2):
            remove_volume(f)
        case.equal(sorted(os.listdir(places.data + "/csi/node/p")), ["per-alloc", "staging"], "in the root")
        case.equal(mnt.names(f, "FILE_ROOT_CSI"), ["node/p"], "list")
        mnt.refused(f, errno.ENOENT, "open csi/node/q", "FILE_VOLUME_DIR_MAKE_REQ", {"place": mnt.place(plugin="q")})
        remove_volume(f, plugin="q")


def test_a_mounted_volume_is_not_removed():
    """file-helper does not look at mounts. The kernel refuses the removal, because file-helper is in the mount namespace that has them."""
    with mnt.both() as (places, m, f):
        alloc, data = os.urandom(16), case.directory()
        make_plugin(m, f, alloc)
        make_volume(f)
        make_volume(f, alloc=alloc)
        make_volume(f, alloc=alloc, volume="disk")
        for leaf in (mnt.leaf(places), mnt.leaf(places, alloc=alloc)):
            os.makedirs(leaf, exist_ok=True)
            mount(data, leaf, flags=MS_BIND)  # a bind mount of the same file system
        block = mnt.leaf(places, alloc=alloc, volume="disk")
        for path in (data + "/kept", block):
            open(path, "w", encoding="ascii").close()
        mount(data + "/kept", block, flags=MS_BIND)  # a bind mount of a file, as a volume that is a block device
        before = mnt.mounts_below(places.data + "/csi")
        for place in (mnt.place(), mnt.place(alloc=alloc), mnt.place(alloc=alloc, volume="disk")):
            mnt.refused(f, errno.EBUSY, "of plugin p is still mounted at rw", "FILE_VOLUME_DIR_REMOVE_REQ", {"place": place})
        mnt.refused(f, errno.EBUSY, "is not unpublished", "FILE_ALLOC_DIR_REMOVE_REQ", {"alloc": alloc})
        mnt.refused(f, errno.ENOTEMPTY, "still holds volumes", "FILE_PLUGIN_DIR_REMOVE_REQ",
                    {"alloc": alloc, "kind": "PLUGIN_NODE", "plugin": "p"})
        case.equal((mnt.mounts_below(places.data + "/csi"), os.listdir(data)), (before, ["kept"]), "the mounts and their contents")
        for path in (block, mnt.leaf(places, alloc=alloc), mnt.leaf(places)):
            umount(path)
        remove_volume(f)
        f.ipc.call("FILE_ALLOC_DIR_REMOVE_REQ", {"alloc": alloc})
        case.equal(os.listdir(places.data + "/csi/node/p/per-alloc"), [], "per-alloc")


def test_a_mount_on_the_way_to_a_volume_is_neither_entered_nor_removed():
    with mnt.both() as (places, m, f):
        make_plugin(m, f, os.urandom(16))
        make_volume(f)
        between = os.path.dirname(mnt.leaf(places))
        mount("litter", between, "tmpfs")
        make_volume(f)
        case.equal(os.listdir(between), [], "contents of the mount")
        mnt.refused(m, errno.EXDEV, "open its directory", "MNT_VOLUME_PROVE_REQ", {"place": mnt.place()})
        remove_volume(f)
        case.equal(len(mnt.mounts_below(between)), 1, "the mount")
        umount(between)
        remove_volume(f)
        case.equal(os.path.exists(between), False, "the directory, after the mount")


def test_links_in_a_plugins_root_are_not_followed():
    with mnt.both() as (places, m, f):
        alloc, victim = os.urandom(16), case.directory()
        os.mkdir(victim + "/rw")
        make_plugin(m, f, alloc)
        make_volume(f)
        os.rmdir(mnt.leaf(places))
        between = os.path.dirname(mnt.leaf(places))
        os.rmdir(between)
        os.symlink(victim, between)
        mnt.refused(f, errno.ELOOP, "make the directory", "FILE_VOLUME_DIR_MAKE_REQ", {"place": mnt.place()})
        mnt.refused(f, errno.ELOOP, "remove rw of volume v", "FILE_VOLUME_DIR_REMOVE_REQ", {"place": mnt.place()})
        os.makedirs(places.data + "/csi/node/p/per-alloc")
        os.symlink(victim, places.data + "/csi/node/p/per-alloc/" + mnt.text(alloc))
        mnt.refused(f, errno.ELOOP, "make the directory", "FILE_VOLUME_DIR_MAKE_REQ", {"place": mnt.place(alloc=alloc)})
        f.ipc.call("FILE_ALLOC_DIR_REMOVE_REQ", {"alloc": alloc})  # the link itself is removed as one of the plugin's files
        case.equal((os.listdir(victim), mnt.mode(victim)[1:]), (["rw"], (0, 0)), "targets of the links")


def test_data_in_a_directory_that_should_be_a_mount_is_not_removed():
    with mnt.both() as (places, m, f):
        alloc = os.urandom(16)
        make_plugin(m, f, alloc)
        make_volume(f, alloc=alloc)
        leaf = mnt.leaf(places, alloc=alloc)
        os.mkdir(leaf)
        open(leaf + "/data", "w", encoding="ascii").close()
        f.ipc.call("FILE_ALLOC_DIR_MAKE_REQ", {"alloc": alloc, "tasks": ["web"]})
        mnt.refused(f, errno.ENOTEMPTY, "remove rw of volume v", "FILE_VOLUME_DIR_REMOVE_REQ", {"place": mnt.place(alloc=alloc)})
        mnt.refused(f, errno.ENOTEMPTY, "is not unpublished", "FILE_ALLOC_DIR_REMOVE_REQ", {"alloc": alloc})
        case.equal(mnt.names(f, "FILE_ROOT_ALLOC"), [mnt.text(alloc)], "directories of the alloc after the refusal")
        os.unlink(leaf + "/data")
        f.ipc.call("FILE_ALLOC_DIR_REMOVE_REQ", {"alloc": alloc})
        case.equal(os.listdir(places.data + "/csi/node/p/per-alloc"), [], "per-alloc")


def test_files_of_a_plugin_beside_its_volumes_do_not_block_removal():
    with mnt.both() as (places, m, f):
        alloc, elsewhere = os.urandom(16), case.directory()
        os.mkdir(elsewhere + "/kept")
        make_plugin(m, f, alloc)
        make_volume(f, alloc=alloc)
        top = places.data + "/csi/node/p/per-alloc/" + mnt.text(alloc)
        for at in (top, top + "/v"):
            open(at + "/file", "w", encoding="ascii").close()
            os.symlink(elsewhere, at + "/link")
        f.ipc.call("FILE_ALLOC_DIR_REMOVE_REQ", {"alloc": alloc})
        case.equal(os.listdir(places.data + "/csi/node/p/per-alloc"), [], "per-alloc")
        case.equal(os.listdir(elsewhere), ["kept"], "targets of the links")


def test_plugins_and_volumes_are_listed():
    with mnt.both() as (places, m, f):
        alloc = os.urandom(16)
        f.ipc.call("FILE_ALLOC_DIR_MAKE_REQ", {"alloc": alloc, "tasks": ["web"]})
        make_plugin(m, f, alloc)
        make_plugin(m, f, alloc, "q", "PLUGIN_CONTROLLER")
        for root in ("ALLOC", "LOGS", "CSI_SOCK"):
            case.equal(mnt.names(f, "FILE_ROOT_" + root), [mnt.text(alloc)], root)
        case.equal(mnt.names(f, "FILE_ROOT_CSI"), ["controller/q", "node/p"], "CSI")
        make_volume(f)
        mount("v", mnt.leaf(places), "tmpfs")
        os.makedirs(mnt.leaf(places) + "/not/entered")
        os.symlink("/", places.data + "/csi/node/p/staging/link")  # a link that a plugin left: listed by its name, not followed
        os.makedirs(places.data + "/csi/node/p/staging/half")
        case.equal(mnt.names(f, "FILE_ROOT_CSI"), ["controller/q"] + ["node/p/staging/" + n for n in ("half", "link", "v/rw")], "CSI")
        umount(mnt.leaf(places))


case.run(globals())
