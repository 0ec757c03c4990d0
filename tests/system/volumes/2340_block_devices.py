# SPDX-License-Identifier: Apache-2.0
# takes: 20
"""Volumes that are block devices, through a whole agent: a plugin publishes a loop device."""
import os

from lib import api, build_dir, case, loop

MIB = 1 << 20


def plugin():
    script = 'CSI_BAD_DEVICE=%s exec %s "$${CSI_ENDPOINT#unix://}"' % (disk.path, os.path.join(build_dir(), "tests", "csi_bad"))
    return api.job("plugin", "/bin/sh", ["-c", script], CSIPluginConfig={"ID": "disks", "Type": "monolith", "MountDir": "/csi"})


def user(name, script, driver="exec", attachment="block-device", mode="single-node-writer", **request):
    return api.job(name, "/bin/sh", ["-c", script], driver=driver, group={"Volumes": {"v": {
        "Name": "v", "Type": "csi", "Source": "disk", "AccessMode": mode, "AttachmentMode": attachment, **request}}},
        VolumeMounts=[{"Volume": "v", "Destination": "/disks/a"}])


def create_volume():
    modes = [{"AccessMode": mode, "AttachmentMode": attachment} for attachment in ("block-device", "file-system")
             for mode in ("single-node-writer", "single-node-reader-only")]
    node.do("PUT", "/v1/volume/csi/disk/create", {"Volumes": [{"ID": "disk", "Name": "disk", "PluginID": "disks",
                                                               "RequestedCapabilities": modes}]})


def finished(name, *args, **kwargs):
    """Runs a task to its end. Returns what it wrote."""
    node.register(user(name, *args, **kwargs))
    (alloc,) = node.wait_running(name)
    case.until(lambda: node.logs(alloc).endswith(b"end\n"), 10, "the end of " + name)
    return node.logs(alloc)


def failure(name, *args, **kwargs):
    """Returns the events of a task that must not start."""
    node.register(user(name, *args, **kwargs))

    def events():
        found = [e["DisplayMessage"] for a in node.allocs(name) for s in (node.ask("/v1/allocation/" + a["ID"])["TaskStates"] or {}).values()
                 for e in s["Events"]]
        return "\n".join(found) if any("volume" in text for text in found) else None
    text = case.until(events, 20, "why %s does not start" % name)
    node.purge(name)
    return text


def left():
    """Returns what is mounted or exists for allocs below the plugin's root."""
    root = node.data + "/csi/monolith/disks"
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        mounts = [line.split(" ")[4] for line in f if root + "/" in line]
    return mounts + [os.path.join(at, n) for at, d, files in os.walk(root) for n in d + files if n not in ("staging", "per-alloc")]


def test_what_a_task_writes_to_its_device_is_there_for_the_next():
    out = finished("writer", "printf kept | dd of=/disks/a conv=notrunc,fsync; stat -c '%F %a %U' /disks/a; echo end; sleep 1000")
    case.equal(out, b"block special file 600 nobody\nend\n", "the writer's output")
    case.equal(disk.start(), b"kept", "what the device stores")
    case.contains(" ".join(left()), "/per-alloc/", "mounts while the task runs")
    node.purge("writer")
    case.until(lambda: not left(), 10, "nothing left: %r" % left())
    out = finished("reader", "dd if=/disks/a bs=4 count=1; (echo no > /disks/a) 2>&1; (chmod 600 /disks/a) 2>&1; echo end; sleep 1000",
                   mode="single-node-reader-only", ReadOnly=True)
    case.contains(out.decode(), "kept", "the reader's output")
    case.contains(out.decode(), "Permission denied", "writing to a volume that is read-only")
    case.contains(out.decode(), "Read-only file system", "changing the mode of its node")
    node.purge("reader")
    case.equal(disk.start(), b"kept", "what the device stores")
    case.until(lambda: not left(), 10, "nothing left: %r" % left())


def test_a_device_is_still_there_after_a_restart_of_the_agent():
    node.register(user("stays", "while :; do dd if=/disks/a bs=4 count=1; sleep 0.2; done"))
    (alloc,) = node.wait_running("stays")
    case.until(lambda: b"kept" in node.logs(alloc), 10, "the device")
    node.replace_supervisor()
    (again,) = node.wait_running("stays")
    case.equal(again["ID"], alloc["ID"], "the alloc")
    case.equal(node.ask("/v1/agent/leaks"), [], "leaks")
    node.do("PUT", "/v1/client/allocation/%s/restart" % alloc["ID"], {})
    before = len(node.logs(alloc))
    case.until(lambda: len(node.logs(alloc)) > before + 8, 20, "the restarted task to read the device")
    node.purge("stays")
    case.until(lambda: not left(), 10, "nothing left: %r" % left())


def test_a_device_in_place_of_a_file_system_is_refused():
    text = failure("files", "sleep 1000", attachment="file-system")
    case.contains(text, "it is to be a file system, and plugin disks published a block device", "events")
    case.until(lambda: not left(), 10, "nothing left: %r" % left())


def test_raw_exec_cannot_mount_devices():
    node.refused(400, "driver raw_exec cannot mount volumes: use exec", "POST", "/v1/jobs", user("raw", "sleep 1000", driver="raw_exec"))


def test_no_leaks_are_left():
    node.purge("plugin")
    case.equal(node.ask("/v1/agent/leaks"), [], "leaks")


with loop.Loop() as disk, api.Node() as node:
    node.register(plugin())
    case.until(lambda: [p["NodesHealthy"] for p in node.ask("/v1/plugins", type="csi")] == [1], 20, "a healthy plugin")
    create_volume()
    case.run(globals())
