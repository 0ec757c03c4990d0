# SPDX-License-Identifier: Apache-2.0
"""exec-helper and executor alone: CSI volumes. A task starts only if the mount is the one whose proof its request has."""
import os
import time
import uuid

from lib import case, exe, helper, ipc, loop, runs


class Volume:
    """A tmpfs in the place of a volume that a plugin has published."""

    def __init__(self, r, alloc, name="vol"):
        self.alloc, self.name = alloc, name
        self.path = "%s/csi/node/plug/per-alloc/%s/%s/u" % (r.places.data, uuid.UUID(bytes=alloc), name)
        os.makedirs(self.path)
        self.publish()
        self.proof = runs.mount_proof(self.path)

    def publish(self, flags=0):
        helper.mount("vol", self.path, "tmpfs", flags, "mode=1777")

    def mount(self, **fields):
        return dict({"kind": "EXEC_MOUNT_CSI_VOLUME", "proof": self.proof,
                     "place": {"kind": "PLUGIN_NODE", "plugin": "plug", "volume": self.name, "usage": "u",
                               "alloc": self.alloc}}, **fields)


def failed(r, alloc, mount):
    """Starts a task with this mount, which must fail. Returns (step, field of the proof, errno)."""
    record = r.ended(r.start("true", driver="EXEC", alloc=alloc, dests=["/vol"], mounts=[mount]))
    case.equal(record["state"], exe.EXE_FAILED, "state")
    return record["step"], record["detail"] >> 16, record["error"]


def test_a_task_gets_the_mount_of_the_proof():
    with runs.Runs() as r:
        alloc = r.make_alloc()
        v = Volume(r, alloc)
        out = r.output("sh", ["-c", "echo 1 > /vol/a; grep ' /vol ' /proc/self/mountinfo | cut -d' ' -f6; cat /vol/a"], driver="EXEC",
                       alloc=alloc, dests=["/vol"], mounts=[v.mount()])
        case.equal(out, "rw,nosuid,nodev,relatime\n1\n")
        run = r.start("sh", ["-c", "touch /vol/b"], driver="EXEC", alloc=alloc, dests=["/vol"], mounts=[v.mount(read_only=True)])
        r.ended(run)
        case.contains(r.log(run, "stderr"), "Read-only file system")
        helper.umount(v.path)
        case.equal(os.listdir(v.path), [], "files below the mount")


def test_a_volume_unmounted_between_publish_and_start_is_refused():
    with runs.Runs() as r:
        alloc = r.make_alloc()
        v = Volume(r, alloc)
        helper.umount(v.path)
        case.equal(failed(r, alloc, v.mount())[:2], (exe.EXE_STEP_PROOF, exe.EXE_PROOF_MOUNT_ROOT))
        os.rmdir(v.path)
        case.equal(failed(r, alloc, v.mount()), (exe.EXE_STEP_PROOF, exe.EXE_PROOF_OPEN, 2))
        os.symlink("/etc", v.path)
        case.equal(failed(r, alloc, v.mount())[:2], (exe.EXE_STEP_PROOF, exe.EXE_PROOF_OPEN))


def test_another_mount_with_the_same_plain_mount_id_is_refused():
    with runs.Runs() as r:
        alloc = r.make_alloc()
        v = Volume(r, alloc)

        def plain_id():
            fd = os.open(v.path, os.O_PATH)
            with open("/proc/self/fdinfo/%d" % fd, encoding="ascii") as f:
                found = int(f.read().split("mnt_id:")[1].split()[0])
            os.close(fd)
            return found
        first, again, tries = plain_id(), None, 0
        while again != first and tries < 200:
            helper.umount(v.path)
            time.sleep(0.01 if tries else 0)  # ids are free again after a grace period
            v.publish()
            again, tries = plain_id(), tries + 1
        print("    plain mount id %d, after %d swaps %d" % (first, tries, again))
        step, proof, error = failed(r, alloc, v.mount())
        case.equal(step, exe.EXE_STEP_PROOF)
        # Before kernel 6.8 the proof has only the plain id, which was reused: then the birth time of the root shows the difference.
        case.contains((exe.EXE_PROOF_MOUNT_ID, exe.EXE_PROOF_DEVICE, exe.EXE_PROOF_BIRTH), proof, "proof")
        case.equal(error, 116, "ESTALE")
        helper.umount(v.path)


def test_each_field_of_the_proof_is_compared():
    with runs.Runs() as r:
        alloc = r.make_alloc()
        v = Volume(r, alloc)
        for field, proof in (("mnt_id", exe.EXE_PROOF_MOUNT_ID), ("dev_minor", exe.EXE_PROOF_DEVICE), ("ino", exe.EXE_PROOF_INODE),
                             ("btime_nsec", exe.EXE_PROOF_BIRTH), ("fs_type", exe.EXE_PROOF_FS), ("fs_id", exe.EXE_PROOF_FS),
                             ("fs_flags", exe.EXE_PROOF_FS)):
            wrong = dict(v.proof, **{field: v.proof[field] + 1})
            case.equal(failed(r, alloc, v.mount(proof=wrong)), (exe.EXE_STEP_PROOF, proof, 116), field)
        case.equal(r.output("true", driver="EXEC", alloc=alloc, dests=["/vol"], mounts=[v.mount()]), "")
        helper.umount(v.path)


class Device(Volume):
    """A block device in the place of a volume, as a plugin publishes it: its node mounted on a file, or made there."""

    def __init__(self, r, alloc, loop, bind=True):
        self.loop, self.bind = loop, bind
        super().__init__(r, alloc)

    def publish(self, flags=0):
        os.rmdir(self.path)
        if not self.bind:
            os.mknod(self.path, 0o60600, self.loop.number)
            return
        open(self.path, "w", encoding="ascii").close()
        helper.mount(self.loop.path, self.path, None, 4096)

    def remove(self):
        if self.bind:
            helper.umount(self.path)
        os.unlink(self.path)


def test_a_task_gets_a_block_device():
    for bind in (True, False):
        with loop.Loop() as disk, runs.Runs() as r:
            alloc = r.make_alloc()
            v = Device(r, alloc, disk, bind)
            shared = {"driver": "EXEC", "alloc": alloc, "dests": ["/disks/a"]}
            out = r.output("sh", ["-c", "printf written | dd of=/disks/a conv=notrunc 2>/dev/null && dd if=/disks/a bs=1 count=7 2>/dev/null;"
                                  "stat -c ' %F %a %U' /disks/a; id -un; ls /disks"], mounts=[v.mount()], **shared)
            case.equal(out, "written block special file 600 nobody\nnobody\na\n")
            case.equal(disk.start(), b"written", "what the device stores")
            out = r.output("sh", ["-c", "dd if=/disks/a bs=1 count=7 2>/dev/null; exec 2>&1; chmod 600 /disks/a; (: > /disks/a); true"],
                           mounts=[v.mount(read_only=True)], **shared)
            case.contains(out, "written", "what was read")
            case.contains(out, "Read-only file system", "chmod")
            case.contains(out, "Permission denied", "opening to write")
            v.remove()


def test_another_device_than_the_published_one_is_refused():
    for bind in (True, False):
        with loop.Loop() as disk, loop.Loop() as other, runs.Runs() as r:
            alloc = r.make_alloc()
            v = Device(r, alloc, disk, bind)
            for field in ("rdev_minor", "rdev_major"):
                wrong = dict(v.proof, **{field: v.proof[field] + 1})
                case.equal(failed(r, alloc, v.mount(proof=wrong)), (exe.EXE_STEP_PROOF, exe.EXE_PROOF_NODE, 116), field)
            v.remove()
            os.mkdir(v.path)
            v.loop = other
            v.publish()
            case.equal(failed(r, alloc, v.mount())[0], exe.EXE_STEP_PROOF, "another device")
            v.remove()
            open(v.path, "w", encoding="ascii").close()
            case.equal(failed(r, alloc, v.mount())[:2], (exe.EXE_STEP_PROOF, exe.EXE_PROOF_MOUNT_ROOT), "a file")
            os.unlink(v.path)
            os.symlink(disk.path, v.path)
            case.equal(failed(r, alloc, v.mount())[:2], (exe.EXE_STEP_PROOF, exe.EXE_PROOF_OPEN), "a link to the device")
            os.unlink(v.path)


def test_the_destination_of_a_block_device_can_be_anything_but_a_full_directory():
    with loop.Loop() as disk, runs.Runs() as r:
        alloc = r.make_alloc()
        v = Device(r, alloc, disk)
        root = "%s/alloc/%s/web" % (r.places.data, uuid.UUID(bytes=alloc))
        shared = {"driver": "EXEC", "alloc": alloc, "mounts": [v.mount()]}
        script = ["-c", "test -b $0 && echo block"]
        for plant in (lambda p: None, os.mkdir, lambda p: os.symlink("/etc/passwd", p), lambda p: open(p, "w", encoding="ascii").close()):
            if os.path.exists(root + "/local/disk"):
                os.unlink(root + "/local/disk")
            plant(root + "/local/disk")
            case.equal(r.output("sh", script + ["/local/disk"], dests=["/local/disk"], **shared)[-6:], "block\n")
        os.unlink(root + "/local/disk")
        os.makedirs(root + "/local/disk/full")
        for dest in ("/local/disk", "/local/disk/", "/", "/local/disk/..", "/local/disk/."):
            record = r.ended(r.start("true", dests=[dest], **shared))
            case.equal((record["state"], record["step"]), (exe.EXE_FAILED, exe.EXE_STEP_MOUNT), dest)
        v.remove()


def test_a_lease_stop_syncs_writable_volumes():
    with runs.Runs() as r:
        alloc = r.make_alloc()
        v = Volume(r, alloc)
        r.places.make_lease(last_ok=time.clock_gettime_ns(time.CLOCK_BOOTTIME))
        record = r.ended(r.start("sleep", ["1000"], driver="EXEC", alloc=alloc, dests=["/vol"], mounts=[v.mount()], lease_ms=300))
        case.equal(record["flags"], exe.EXE_END_LEASE | exe.EXE_END_SYNCED | exe.EXE_END_SENT)
        helper.umount(v.path)


def test_the_place_of_a_volume_is_checked():
    with runs.Runs() as r:
        alloc = r.make_alloc()
        v = Volume(r, alloc)
        good = v.mount()["place"]
        for wrong in ({"plugin": ".."}, {"plugin": "a/b"}, {"volume": ""}, {"usage": "."}, {"alloc": bytes(16)}, {"kind": 0},
                      {"volume": "x" * 129}):
            e = case.raises(ipc.RequestError, r.start, "true", driver="EXEC", alloc=alloc, dests=["/vol"],
                            mounts=[v.mount(place=dict(good, **wrong))])
            case.contains(str(e), "volume's place", str(wrong))
        e = case.raises(ipc.RequestError, r.start, "true", alloc=alloc, dests=["/vol"], mounts=[v.mount()])
        case.contains(str(e), "raw_exec cannot mount")
        helper.umount(v.path)


def plugin_request(r, alloc, **fields):
    return dict({"driver": "EXEC", "alloc": alloc, "task": "web", "csi_plugin": "PLUGIN_MONOLITH", "plugin": "p",
                 "cap_add": 1 << 21 | 1 << 1, "dests": ["/csi", "/local/csi"],
                 "mounts": [{"kind": "EXEC_MOUNT_PLUGIN_SOCKET"}, {"kind": "EXEC_MOUNT_PLUGIN_ROOT"}]}, **fields)


def test_a_plugins_mounts_appear_on_the_host_until_it_unmounts_them():
    with runs.Runs() as r:
        alloc = r.make_alloc()
        sock = "%s/csi/sock/%s" % (r.places.data, uuid.UUID(bytes=alloc))
        root = r.places.data + "/csi/monolith/p"
        for path in (sock, root):
            os.mkdir(path, 0o700)
            helper.mount(path, path, None, 4096)
            helper.mount(None, path, None, 1 << 20)  # MS_SHARED
        os.mkdir(root + "/staging")
        script = ("mount -t tmpfs -o mode=0755 v /local/csi/staging && touch /local/csi/staging/there /csi/csi.sock && echo up; ls /dev | wc -l;"
                  "while [ ! -e /csi/go ]; do sleep 0.02; done; umount /local/csi/staging && echo down")
        run = r.start("sh", ["-c", script], **plugin_request(r, alloc))
        case.until(lambda: r.log(run), 10, "the mount")
        case.equal(os.listdir(root + "/staging"), ["there"], "on the host")
        case.equal(os.stat(sock).st_uid, 65534, "the socket's directory is the plugin's")
        # A second run of the plugin must see the mounts of the first, or it could never unmount them.
        open(sock + "/go", "w", encoding="ascii").close()
        r.ended(run)
        case.equal(os.listdir(root + "/staging"), [], "after umount")
        out = r.log(run).split()
        case.equal((out[0], out[2]), ("up", "down"))
        assert int(out[1]) > 20, "the host's /dev"


def test_a_plugin_is_refused_without_the_grant_in_the_configuration():
    with runs.Runs('plugin "exec" { config { allow_caps = ["chown"] } }', dev=False) as r:
        e = case.raises(ipc.RequestError, r.start, "true", **plugin_request(r, r.make_alloc()))
        case.contains(str(e), "allow_caps does not have the capabilities of mask 0x200002")
    with runs.Runs() as r:
        e = case.raises(ipc.RequestError, r.start, "true", **plugin_request(r, r.make_alloc(), csi_plugin=0, plugin=""))
        case.contains(str(e), "only for csi_plugin tasks")


case.run(globals())
