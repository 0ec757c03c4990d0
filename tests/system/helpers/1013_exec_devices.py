# SPDX-License-Identifier: Apache-2.0
"""exec-helper and executor alone: devices of the machine in containers, and requests for others."""
import errno
import os
import socket
import stat
import threading

from lib import case, devices, exe, ipc, runs
from lib.containers import container, said

POLICY = '''plugin "docker" {
  config {
    enabled = true
    allow_devices = ["/dev/sink", "/dev/dir/*", "/dev/sub/*/node", "/dev/block"]
  }
}
plugin "podman" { config { enabled = true } }'''


def mount(path, dest="/dev/x"):
    return {"mounts": [{"kind": "EXEC_MOUNT_DEVICE", "path": path}], "dests": [dest]}


def test_a_device():
    """Only the node itself is there; it can be written, and its owner and mode cannot be changed."""
    with runs.Runs(POLICY) as r:
        two = {"mounts": [{"kind": "EXEC_MOUNT_DEVICE", "path": "sink"}, {"kind": "EXEC_MOUNT_DEVICE", "path": "dir/zero"}], "dests": ["/dev/sink", "/made/here/zero"]}
        text = said(r, "for f in /dev/sink /made/here/zero; do stat -c '%F %t:%T %a %u' $f; done; echo x >/dev/sink && echo written; cat /dev/sink; ls /dev /made/here;"
                       "chmod 600 /dev/sink 2>/dev/null || echo kept; rm -f /dev/sink 2>/dev/null || echo there; mknod /dev/more c 1 3 2>/dev/null || echo none; cat /proc/self/mounts",
                    env=["PATH=/bin"], **two)
        case.contains(text, "character special file 1:3 666 65534\ncharacter special file 1:5 666 65534\nwritten\n")
        case.contains(text, "kept\nthere\nnone\n")
        for place in ("/dev/sink", "/made/here/zero"):
            found = [line.split() for line in text.splitlines() if " %s " % place in line]
            case.equal([set(line[3].split(",")) & {"ro", "nosuid", "noexec", "nodev"} for line in found], [{"ro", "nosuid", "noexec"}], "flags of " + place)
        for absent in ("closed", "other", "dir"):
            assert absent not in text.split(), text
        case.equal([stat.S_IMODE(os.stat("/dev/" + n).st_mode) for n in ("sink", "dir/zero")], [0o666, 0o666], "modes of the machine")
        text = said(r, "stat -c '%F %t:%T' /dev/x; cat /dev/x || echo closed", env=["PATH=/bin"], **mount("block"))
        case.contains(text, "block special file 7:c7\n")
        case.contains(text, "closed\n")


def test_a_link_of_the_image_stays_inside():
    """The place of a device is found in the container's root."""
    with runs.Runs(POLICY) as r:
        run = container(r, "mkdir -p /up; ls /up", env=["PATH=/bin"], **mount("sink", "/../../up/../dev/../x"))
        record = r.ended(run)
        case.equal((record["state"], os.path.exists("/x")), (exe.EXE_ENDED, False))


def test_what_the_policy_does_not_name():
    with runs.Runs(POLICY) as r:
        for path in ("closed", "", "dir", "sin", "sink2", "sink/", "/dev/sink", "/sink", "dir/", "dir/up/zero", "dir/../closed", "dir/..", "dir/.hidden", "sub//node", "sub/../node",
                     "sub/a/b/node", "./sink", "dir/./zero", "../dev/sink", "DIR/zero", "dir/" + "x/" * 200, "*", "dir/*/x"):
            why = str(case.raises(ipc.RequestError, container, r, "true", **mount(path)))
            case.contains(why, "is not allowed on this node: allow_devices does not have it", path)
        for driver in ("PODMAN", "EXEC", "RAW_EXEC"):
            fields = {"id_range": 2} if driver == "PODMAN" else {}
            why = str(case.raises(ipc.RequestError, r.start, "/bin/true", driver=driver, **mount("sink"), **fields))
            case.contains(why, "allow_devices does not have it", driver)
        case.contains(str(case.raises(ipc.RequestError, container, r, "true", **mount("sink", "dev/x"))), "the destination of a mount is not absolute")
        case.equal(r.list(), [], "runs after refusals")
    with runs.Runs() as r:
        case.contains(str(case.raises(ipc.RequestError, container, r, "true", **mount("sink"))), "allow_devices does not have it", "without a setting")


def test_what_is_no_device():
    with runs.Runs(POLICY) as r:
        for name, error in (("link", "ELOOP"), ("away", "ELOOP"), ("directory", "ENODEV"), ("file", "ENODEV"), ("fifo", "ENODEV"), ("socket", "ENODEV"), ("absent", "ENOENT")):
            record = r.ended(container(r, "cat /dev/x", **mount("dir/" + name)))
            case.equal((record["state"], record["step"], record["error"]), (exe.EXE_FAILED, exe.EXE_STEP_MOUNT, getattr(errno, error)), name)
        record = r.ended(container(r, "true", **mount("sub/link/node")))
        case.equal((record["state"], record["step"]), (exe.EXE_FAILED, exe.EXE_STEP_MOUNT), "a link on the way")


def test_a_node_that_is_replaced_meanwhile():
    """Either the start fails, or the container has the node that the policy names."""
    done = threading.Event()
    devices.node("dir/swap", devices.NULL)
    devices.node("dir/kept", devices.NULL)
    os.symlink("../closed", "/dev/dir/out")

    def swap():
        for n in range(10**9):
            if done.wait(0.0005):
                return
            os.link("/dev/dir/" + ("kept", "out")[n % 2], "/dev/new", follow_symlinks=False)
            os.replace("/dev/new", "/dev/dir/swap")

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        with runs.Runs(POLICY) as r:
            for n in range(12):
                run = container(r, "stat -c %t:%T /dev/x", env=["PATH=/bin"], number=2 + n, **mount("dir/swap"))
                record = r.ended(run)
                case.contains(((exe.EXE_FAILED, ""), (exe.EXE_ENDED, "1:3\n")), (record["state"], r.log(run)), "start %d" % n)
    finally:
        done.set()
        thread.join()


with devices.own():
    devices.node("sink", devices.NULL)
    devices.node("closed", devices.ZERO)
    devices.node("dir/zero", devices.ZERO)
    devices.node("dir/up/zero", devices.ZERO)
    devices.node("dir/.hidden", devices.ZERO)
    devices.node("sub/a/node", devices.ZERO)
    devices.node("node", devices.ZERO)
    devices.node("block", os.makedev(7, 199), 0o600, stat.S_IFBLK)
    os.symlink("../closed", "/dev/dir/link")
    os.symlink("/etc/passwd", "/dev/dir/away")
    os.symlink("a", "/dev/sub/link")
    os.mkdir("/dev/dir/directory")
    os.mkfifo("/dev/dir/fifo")
    with open("/dev/dir/file", "w", encoding="ascii"):
        pass
    with socket.socket(socket.AF_UNIX) as s:
        s.bind("/dev/dir/socket")
    case.run(globals())
