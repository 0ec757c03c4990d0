# SPDX-License-Identifier: Apache-2.0
# takes: 37
"""A whole agent: a task never starts if the path of its volume is not the proven mount, and nothing else waits for a mount that hangs."""
import errno
import os
import signal
import subprocess
import time

from lib import agent, build_dir, case, helper, trace, volumes

FSTATFS, SETSID = 138, 112
SCRIPT = "touch /alloc/data/ran; cat /data/who; sleep 1000"
SENTENCE = "volume mount 1 is not the mount that was published: %s; the task was not started"


def is_executor(pid):
    return agent.arguments(pid)[:1] == ["drover-executor"]


def at_start(pid, call):
    """At the start of the executor, before it has checked anything."""
    return call.nr == SETSID and is_executor(pid)


def at_attach(pid, call):
    """When everything is proven and cloned, and nothing is attached."""
    return call.nr == trace.SETNS and is_executor(pid)


class BetweenProofAndClone:
    """At the open_tree(2) after an fstatfs(2), which only the proof calls."""

    def __init__(self):
        self.proven = False

    def __call__(self, pid, call):
        if not is_executor(pid):
            return False
        if call.nr == trace.OPEN_TREE and self.proven:
            return True
        self.proven = self.proven or call.nr == FSTATFS
        return False


class Stopped:
    """A job whose executor is stopped at a point until the end of the block; .path is where its volume is published."""

    def __init__(self, node, name, condition):
        self.node, self.name, self.condition = node, name, condition

    def __enter__(self):
        self.trace = trace.Trace(self.node.wait_process("exec-helper"), is_executor)
        try:
            self.node.register(volumes.job(self.name, "demo", SCRIPT))
            self.pid = self.trace.until(self.condition, 20)
            self.alloc = self.node.allocs(self.name)[0]
            (self.path,) = [p for p in self.node.published("demo") if self.alloc["ID"] in p]
        except BaseException:
            self.trace.close()
            raise
        return self

    def __exit__(self, *_):
        self.trace.close()


def write(path, text):
    with open(path, "w", encoding="ascii") as f:
        f.write(text)


def plain_id(path):
    fd = os.open(path, os.O_PATH)
    try:
        with open("/proc/self/fdinfo/%d" % fd, encoding="ascii") as f:
            return int(f.read().split("mnt_id:")[1].split()[0])
    finally:
        os.close(fd)


def put_another(path):
    """Replaces the mount by another. A process may have a descriptor of the old one."""
    helper.umount(path, 2)  # MNT_DETACH
    helper.mount("other", path, "tmpfs", 0, "mode=0777")
    write(path + "/who", "other\n")


class Ids:
    """Occupies the plain mount ids below a wanted one, so that this is the lowest free one, which the kernel uses next."""

    def __init__(self):
        self.base, self.points = case.directory(), []

    def _mount(self):
        point = "%s/%d" % (self.base, len(self.points))
        os.mkdir(point)
        helper.mount("id", point, "tmpfs")
        self.points.append(point)
        return plain_id(point)

    def _umount(self):
        point = self.points.pop()
        helper.umount(point)
        os.rmdir(point)

    def free(self, wanted):
        """Waits until the next mount gets this id, which is free only after a grace period. Returns False if it does not."""
        end = time.monotonic() + 3
        while time.monotonic() < end:
            got = self._mount()
            if got >= wanted:
                self._umount()
            if got == wanted:
                return True
            if got > wanted:
                time.sleep(0.005)
        return False

    def close(self):
        while self.points:
            self._umount()


def put_with_id(path, wanted):
    """Replaces the mount by another with the same plain mount id. Returns False if a mount of another test has that id."""
    ids = Ids()
    try:
        helper.umount(path)
        ids.free(wanted)
        time.sleep(0.02)
        helper.mount("other", path, "tmpfs", 0, "mode=0777")
        write(path + "/who", "other\n")
        return plain_id(path) == wanted
    finally:
        ids.close()


def unmounted(path):
    """Returns False while a process that looks at the mount, such as the plugin, has it open."""
    try:
        helper.umount(path)
        return True
    except OSError as e:
        if e.errno != errno.EBUSY:
            raise
        return False


def never_ran(node, stopped, *whys):
    """Checks that the alloc failed with one of these reasons, and that its task has never run."""
    case.until(lambda: node.ask("/v1/allocation/" + stopped.alloc["ID"])["ClientStatus"] == "failed", 20, "the alloc to fail")
    text = node.events(stopped.alloc["ID"])
    assert any(SENTENCE % why in text for why in whys), text
    print("    event: " + next(line for line in text.splitlines() if "was published" in line))
    case.equal("Started" in text, False, "whether it has started")
    case.equal(os.path.exists("%s/alloc/%s/alloc/data/ran" % (node.data, stopped.alloc["ID"])), False, "whether it has run")
    for path in node.published("demo"):  # the plugin does not unmount foreign mounts
        case.until(lambda path=path: unmounted(path), 10, "nobody to have %s open" % path)
    node.purge(stopped.name)
    case.equal(node.published("demo"), [], "mounts of the volume")


def runs_normally(node, text):
    node.register(volumes.job("normal", "demo", SCRIPT))
    alloc = node.wait_running("normal")[0]
    case.until(lambda: node.logs(alloc) == text, 10, "the output of the normal job")
    node.purge("normal")


def test_a_mount_that_is_replaced_or_removed_during_the_start_is_detected():
    with volumes.Node() as node:
        node.start_plugin()
        node.create("demo")

        with Stopped(node, "unmounted", at_start) as s:
            write(s.path + "/who", "promised\n")
            helper.umount(s.path)
        never_ran(node, s, "nothing is mounted there")
        runs_normally(node, b"promised\n")

        for _ in range(10):
            with Stopped(node, "same-id", at_start) as s:
                first = plain_id(s.path)
                same = put_with_id(s.path, first)
                print("    plain mount id: %d promised, %d of the other mount" % (first, plain_id(s.path)))
            never_ran(node, s, "another mount is there (its mount id differs)", "another mount is there (its device differs)")
            if same:
                break
        if not same:  # other tests make mounts at the same time: 1030 tests the same without a whole agent
            print("    this machine gave no mount the same plain id")
        runs_normally(node, b"promised\n")

        with Stopped(node, "early", BetweenProofAndClone()) as s:
            put_another(s.path)
        never_ran(node, s, "nothing is mounted there")
        runs_normally(node, b"promised\n")

        # From here on the task has the proven clone, whatever happens at the path.
        with Stopped(node, "late", at_attach) as s:
            put_another(s.path)
            case.equal(open(s.path + "/who", encoding="ascii").read(), "other\n", "data at the path")
        alloc = node.wait_running("late")[0]
        case.until(lambda: node.logs(alloc) == b"promised\n", 10, "the data of the proven mount, not %r" % node.logs(alloc))
        helper.umount(s.path)
        node.purge("late")
        case.equal(node.published("demo"), [], "mounts of the volume")
        runs_normally(node, b"promised\n")
        node.purge("csi-local")


class Fuse:
    """Runs fuse_hang on a path."""

    def __init__(self, path):
        self.process = subprocess.Popen([build_dir() + "/tests/fuse_hang", path], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.path = path
        case.equal(self.process.stdout.readline(), b"mounted\n", "fuse_hang")

    def wait_asked(self):
        case.equal(self.process.stdout.readline(), b"statfs\n", "the request that hangs")

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if os.path.ismount(self.path) or self.path in open("/proc/self/mounts", encoding="utf-8").read():
            helper.umount(self.path, 2)


def state_of(pid):
    with open("/proc/%d/stat" % pid, encoding="ascii") as f:
        return f.read().rpartition(")")[2].split()[0]


def test_a_mount_that_hangs_delays_no_other_start():
    if not os.path.exists("/dev/fuse"):
        case.skip("no /dev/fuse")
    node = volumes.Node()
    fuse = None
    try:
        node.start_plugin()
        node.create("demo")
        with Stopped(node, "hangs", at_start) as s:
            helper.umount(s.path)
            fuse = Fuse(s.path)
        fuse.wait_asked()
        case.until(lambda: state_of(s.pid) == "D" or state_of(s.pid) == "S", 5, "the executor to hang")
        node.check_starts(3)
        case.equal(node.get("/v1/agent/health")[0], 200)
        began = time.monotonic()
        node.process.send_signal(signal.SIGTERM)
        node.wait_log("draining")
        node.process.send_signal(signal.SIGTERM)  # ends without a drain, as a service does
        case.equal(node.wait(60), 0, "exit code of the agent")
        print("    shutdown took %.1f s" % (time.monotonic() - began))
        # When the mount no longer hangs, the next agent finds what was left, starts the plugin again, and removes everything.
        fuse.close()
        case.until(lambda: not os.path.exists("/proc/%d" % s.pid), 10, "the end of the executor")
        node.start()
        node.wait_ready()
        case.until(node.plugin_is_healthy, 40, "the plugin to be healthy again")
        began = time.monotonic()
        case.equal(node.stop(signal.SIGTERM, 60), 0, "exit code of the agent")
        print("    drain took %.1f s" % (time.monotonic() - began))
    finally:
        if fuse:
            fuse.close()
        if node.process.poll() is not None:
            node.start()
            node.wait_ready()
        node.__exit__(None, None, None)


case.run(globals())
