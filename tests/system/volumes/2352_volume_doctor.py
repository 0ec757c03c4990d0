# SPDX-License-Identifier: Apache-2.0
# takes: 40
"""`drover volume doctor` names what disagrees between mounts, directories, plugin and allocations, and repairs what is safe."""
import glob
import os
import shutil
import signal
import uuid

from lib import case, helper, volumes

SCRIPT = "sleep 1000"


def start(name):
    """Returns the alloc of a job that uses the volume v-NAME, and the volume's path."""
    node.create("v-" + name)
    node.register(volumes.job(name, "v-" + name, SCRIPT))
    (alloc,) = node.wait_running(name)
    (path,) = node.published("v-" + name)
    return alloc["ID"], path


def end(name):
    node.purge(name)
    case.until(lambda: node.published("v-" + name) == [], 20, "the unmount")


def page(volume):
    (found,) = node.ask("/v1/agent/volumes", id=volume)["Volumes"]
    return found


def problems(volume):
    """Returns the kinds of what disagrees, each with whether it can be repaired."""
    return [(p["Kind"], p["Fixable"]) for p in page(volume)["Problems"]]


def fix(volume, code=0):
    return node.drover("volume", "doctor", "-fix", volume, code=code).out


def below(path):
    """Returns a path relative to the data directory."""
    return os.path.relpath(path, node.data)


def external_id(volume):
    return node.ask("/v1/volume/csi/" + volume)["ExternalID"]


def test_a_page_says_what_is_known():
    alloc, path = start("good")
    found = page("v-good")
    case.equal(found["Problems"], [])
    (claim,), (row,) = found["Claims"], found["Mounts"]
    case.equal((claim["AllocationID"], claim["AllocStatus"], claim["State"], claim["Mode"]), (alloc, "running", "taken", "write"))
    case.equal((row["AllocationID"], row["Step"], row["TargetPath"], row["TargetMounts"], row["StagingMounts"], row["EffectUnknown"]),
               (alloc, "published", below(path), 1, 1, False))
    plugin = found["Plugin"]
    case.equal((plugin["Instances"], plugin["Healthy"], plugin["Listed"], plugin["PublishedNodes"], plugin["Condition"]),
               (1, 1, True, [plugin["NodeID"]], {"Abnormal": False, "Message": "the volume is normal"}))
    out = node.drover("volume", "doctor", "v-go").out
    for part in (alloc[:8], "1 of 1 healthy", "Condition", "published", external_id("v-good"), "Nothing disagrees"):
        case.contains(out, part)
    case.equal("Disagreements" in out, False, out)
    out = node.drover("volume", "doctor").out
    case.contains(out, "v-good")
    case.contains(node.drover("volume", "doctor", "no-such", code=1).err, 'no volume "no-such" is known on this node')
    case.contains(node.drover("volume", "doctor", "-json", "v-good").out, '"ClaimsKnown": true')
    end("good")
    case.equal((page("v-good")["Mounts"], page("v-good")["Claims"], problems("v-good")), ([], [], []))


def test_the_fill_level_is_shown():
    start("full")
    case.until(lambda: page("v-full")["Usage"] and page("v-full")["Usage"]["Bytes"], 60, "the plugin to report the fill level")
    case.equal(page("v-full")["Usage"]["Condition"], "normal")
    out = node.drover("volume", "doctor", "v-full").out
    for part in ("Used", "inodes", "Reported"):
        case.contains(out, part)
    end("full")


def test_a_volume_that_is_not_mounted_any_more_is_published_again():
    alloc, path = start("gone")
    plugin = [int(p) for p in os.listdir("/proc") if p.isdigit() and b"drover-csi-local\0-root\0/store" in cmdline(p)]
    for pid in plugin:
        os.kill(pid, signal.SIGSTOP)  # so that nothing repairs it before the test has seen it
    try:
        helper.umount(path)
        out = node.drover("volume", "doctor", "v-gone", code=2).out
        for part in ("[fixable] it was", "-fix publishes it again", "plugin local has not listed its volumes in 10 s"):
            case.contains(out, part)
    finally:
        for pid in plugin:
            os.kill(pid, signal.SIGCONT)
    fix("v-gone")
    case.equal((node.published("v-gone"), problems("v-gone")), ([path], []))
    case.equal([a["ClientStatus"] for a in node.allocs("gone")], ["running"])
    end("gone")


def cmdline(pid):
    try:
        with open("/proc/%s/cmdline" % pid, "rb") as f:
            return f.read()
    except OSError:
        return b""


def test_other_mounts_over_a_volume_are_named():
    _, path = start("over")
    helper.mount("other", path, "tmpfs")
    out = node.drover("volume", "doctor", "-fix", "v-over", code=2).out
    case.equal(problems("v-over"), [("other-mount", False)])
    case.contains(out, "unmount it by hand")
    helper.umount(path)
    helper.mount(path, path, flags=4096)  # MS_BIND
    case.equal(problems("v-over"), [("mounted-more-than-once", False)])
    helper.umount(path)
    case.equal(problems("v-over"), [])
    end("over")


def test_a_mount_without_a_row_is_unmounted():
    path = node.data + "/csi/monolith/local/per-alloc/%s/v-good/rw" % uuid.uuid4()
    os.makedirs(path)
    helper.mount("late", path, "tmpfs")
    holder = os.open(path, os.O_DIRECTORY)  # so that it cannot be unmounted yet
    try:
        case.equal(problems("v-good"), [("mount-without-row", True)])
        case.contains(fix("v-good", code=2), "not done: volume v-good: %s is mounted, but drover has no record of it" % path)
    finally:
        os.close(holder)
    fix("v-good")
    case.equal((os.path.exists(path), problems("v-good")), (False, []))


def test_a_directory_without_a_row_is_removed_if_it_is_empty():
    path = node.data + "/csi/monolith/local/staging/v-good/rw"
    os.makedirs(path)
    case.equal(problems("v-good"), [("directory-without-row", True)])
    with open(path + "/data", "w", encoding="utf-8"):
        pass
    case.contains(fix("v-good", code=2), "not done: volume v-good: the staging directory %s exists" % path)
    os.unlink(path + "/data")
    case.contains(fix("v-good"), "done: volume v-good: the staging directory")
    case.equal((os.path.exists(path), problems("v-good")), (False, []))


def test_a_volume_that_nobody_knows_is_named():
    path = node.data + "/csi/monolith/local/staging/stranger/rw"
    os.makedirs(path)
    case.equal(problems("stranger"), [("directory-without-row", True), ("not-registered", False)])
    out = node.drover("volume", "doctor", code=2).out
    case.contains(out, "Volume stranger")
    node.drover("volume", "doctor", "-fix")
    case.equal(os.path.exists(path), False)


def test_what_the_plugin_has_lost_is_named():
    start("lost")
    external = external_id("v-lost")
    store = node.store + "/volumes"
    shutil.move(store + "/volumes/" + external, node.top + "/data")
    case.equal(problems("v-lost"), [("condition", False)])
    shutil.move(node.top + "/data", store + "/volumes/" + external)
    case.equal(problems("v-lost"), [])
    shutil.move(store + "/meta/" + external, node.top + "/meta")
    case.equal(problems("v-lost"), [("unknown-to-plugin", False)])
    out = node.drover("volume", "doctor", "v-lost", code=2).out
    case.contains(out, "does not list the volume with external id %s: it was deleted there, or the plugin does not list all" % external)
    shutil.move(node.top + "/meta", store + "/meta/" + external)
    end("lost")


def test_a_volume_without_its_plugin_is_named_and_its_claim_released_later():
    alloc, path = start("late")
    node.purge("csi-local")
    case.until(lambda: ("plugin-missing", False) in problems("v-late"), 20, "the plugin to be gone")
    node.do("DELETE", "/v1/job/late")
    case.until(lambda: ("unmount-fails", True) in problems("v-late"), 120, "the failing unmount")
    node.kill("supervisor")
    node.wait_ready()
    node.do("DELETE", "/v1/job/late?purge=true")
    case.until(lambda: ("claim-left", True) in problems("v-late"), 60, "the claim")
    out = fix("v-late", code=2)
    case.contains(out, "not done: volume v-late: allocation %s" % alloc[:8])
    case.equal(node.published("v-late"), [path])
    node.start_plugin()
    fix("v-late")
    case.equal((page("v-late")["Claims"], node.published("v-late"), problems("v-late")), ([], [], []))


def test_nothing_is_left():
    node.drover("volume", "doctor")
    for path in glob.glob(node.data + "/csi/monolith/local/*/*"):
        raise AssertionError(path)


with volumes.Node() as node:
    node.start_plugin()
    case.run(globals())
