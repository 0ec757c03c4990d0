#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# timeout: 900
# takes: 90
"""What follows each answer of a plugin: every row of the tables in docs/csi.md; one volume's trouble beside another volume; calls that take
effect late, or are still being worked on when a process ends. The plugin takes its rules from a file and logs its calls."""
import os
import re

from lib import ROOT, api, build_dir, case, volumes

NODE_CALLS = ("NodeStageVolume", "NodePublishVolume")
RETRIED = {"retried": 3, "final": 1}
EXHAUSTED = "8"


def start_plugin():
    script = 'exec %s "${CSI_ENDPOINT#unix://}" "$@"'.replace("${", "$${") % os.path.join(build_dir(), "tests", "csi_bad")
    node.register(api.job("plugin-bad", "/bin/sh", ["-c", script, "csi_bad", "log=" + log, "rules=" + rules, "mounts=yes"], CSIPluginConfig={
        "ID": "bad", "Type": "monolith", "MountDir": "/csi", "HealthTimeout": 30 * 10**9}))
    case.until(healthy, 30, "the plugin to be healthy")


def healthy():
    answer = node.request("GET", "/v1/plugin/csi/bad")
    return answer.status == 200 and answer.json["NodesHealthy"] == 1


def say(*words):
    """Sets the plugin's rules and forgets its calls."""
    for path, text in ((rules, " ".join(words)), (log, "")):
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)


def calls(method, volume=""):
    with open(log, encoding="utf-8") as f:
        return len([line for line in f.read().splitlines() if re.match("%s %s( |$)" % (method, volume or "[^ ]*"), line)])


def tables():
    """Yields (call, number, code, follows, meaning) of each row that says something about a call."""
    with open(ROOT + "/docs/csi.md", encoding="utf-8") as f:
        text = f.read()
    plain = re.findall(r"^\| (\d+) (\w+) \| (\w+) \| \w+ \| (.*) \|$", text, re.M)
    special = {(call, number): (follows, meaning) for call, number, follows, meaning in
               re.findall(r"^\| (\w+) \| (\d+) \w+ \| (\w+) \| \w+ \| (.*) \|$", text, re.M)}
    for call in MADE:
        for number, code, follows, meaning in plain:
            yield (call, number, code, *special.get((call, number), (follows, meaning)))


def volume(name, **more):
    return {"Volumes": [{"ID": name, "Name": name, "PluginID": "bad", "RequestedCapabilities": [
        {"AccessMode": "single-node-writer", "AttachmentMode": "file-system"},
        {"AccessMode": "multi-node-multi-writer", "AttachmentMode": "file-system"},
        {"AccessMode": "single-node-reader-only", "AttachmentMode": "file-system"}], **more}]}


def create(name, **more):
    return node.request("PUT", "/v1/volume/csi/%s/create" % name, volume(name, **more), 300)


def created(*names, **more):
    for name in names:
        made = create(name, **more)
        case.equal(made.status, 200, made.text)


def delete(name):
    return node.request("DELETE", "/v1/volume/csi/%s/delete" % name, timeout=300)


def deleted(*names):
    for name in names:
        case.until(lambda: delete(name).status == 200, 30, "volume %s to be deleted" % name)


def user(name, source=None, **request):
    made = volumes.job("user-" + name, source or name, "touch /data/x; sleep 1000")
    made["Job"]["TaskGroups"][0]["Volumes"]["data"].update(request)
    node.register(made)


def alloc_of(name):
    return node.allocs("user-" + name)[-1]


def wait_alloc(name, status):
    """The job may wait for its allocation, up to 30 s after an EXHAUSTED."""
    case.until(lambda: [a for a in node.allocs("user-" + name) if a["ClientStatus"] == status], 120, "%s to be %s" % (name, status))


def events(name):
    return node.events(alloc_of(name)["ID"])


def stop(*names):
    for name in names:
        node.do("DELETE", "/v1/job/user-%s?purge=true" % name)
    for name in names:
        case.until(lambda: not [a for a in node.ask("/v1/allocations") if a["JobID"] == "user-" + name], 60, "user-%s to be removed" % name)


def no_mounts():
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        case.equal([line for line in f if "/monolith/bad/staging" in line or "/monolith/bad/per-alloc" in line], [])


# Each makes one call of this name, and returns what it came to: the HTTP status and the text.
def make_create(name):
    answer = create(name)
    if answer.status != 200:
        node.request("DELETE", "/v1/volume/csi/%s?force=true" % name)
    return answer


def make_register(name):
    path = "/v1/volume/csi/" + name
    answer = node.request("PUT", path, volume(name, ExternalID=name), 300)
    if answer.status == 200:
        node.do("DELETE", path)
    return answer


MADE = {"CreateVolume": make_create, "DeleteVolume": delete, "ValidateVolumeCapabilities": make_register}


def test_every_row_about_a_controller():
    for call, number, code, follows, meaning in tables():
        name = "%s-%s" % (call.lower(), number)
        if call == "DeleteVolume":
            say()
            created(name)
        say("%s=%s:%s" % (call, "again" if follows == "waits" else "status", number))
        answer = MADE[call](name)
        if follows in ("done", "waits"):
            case.equal(answer.status, 200, "%s %s: %s" % (call, code, answer.text))
            case.equal(calls(call), 3 if follows == "waits" else 1, call + " " + code)
        else:
            case.equal(answer.status >= 400, True, call + " " + code)
            case.equal(calls(call), RETRIED[follows], call + " " + code)
            for part in ("%s of plugin bad" % call, meaning, "rpc error: code = %s desc = as commanded" % code):
                case.contains(answer.text, part, call + " " + code)
            case.equal("(tried 3 times)" in answer.text, follows == "retried", answer.text)
        say()
        if node.request("GET", "/v1/volume/csi/" + name).status == 200:
            deleted(name)


def test_unavailable_about_one_volume_does_not_end_the_calls_of_another():
    say()
    created("slow", "sick")
    say("NodePublishVolume/slow=slow:3000", "NodePublishVolume/sick=status:14")
    user("slow")
    case.until(lambda: calls("NodePublishVolume", "slow"), 30, "the slow call")
    user("sick")
    case.until(lambda: alloc_of("sick")["ClientStatus"] == "failed", 30, "the other to fail")
    case.until(lambda: alloc_of("slow")["ClientStatus"] == "running", 30, "the slow one to run")
    case.equal(calls("NodePublishVolume", "slow"), 1, "calls of the slow one")
    say()
    stop("slow", "sick")
    deleted("slow", "sick")
    no_mounts()


def test_a_mount_that_appears_late_is_undone():
    """Each try is answered with UNAVAILABLE at once, and takes effect after the volume was unpublished."""
    say()
    created("late")
    say("NodePublishVolume=late:1500")
    user("late")
    case.until(lambda: alloc_of("late")["ClientStatus"] == "failed", 60, "the allocation to fail")
    stop("late")
    say()
    case.until(lambda: node.published("late") == [], 30, "no mount")
    deleted("late")
    no_mounts()


def test_two_failed_users_of_a_volume_leave_no_staging_directory():
    """The second one ends while the first is still being checked for a late mount."""
    say()
    created("both")
    say("NodeStageVolume=status:13")
    for name in ("first", "second"):
        user(name, "both", AccessMode="multi-node-multi-writer")
    for name in ("first", "second"):
        case.until(lambda: alloc_of(name)["ClientStatus"] == "failed", 60, name + " to fail")
    stop("first", "second")
    say()
    deleted("both")
    case.equal(os.listdir(node.data + "/csi/monolith/bad/staging"), [], "staging directories")
    no_mounts()


def test_a_call_that_outlives_a_process_is_waited_for():
    for process in ("supervisor", "csi-helper"):
        name = "kill-" + process
        say()
        created(name)
        say("NodeStageVolume=slow:4000")
        user(name)
        case.until(lambda: calls("NodeStageVolume", name), 30, "the slow call")
        node.kill(process)
        node.wait_ready()
        case.until(lambda: alloc_of(name)["ClientStatus"] == "running", 60, "the allocation to run after the end of " + process)
        case.equal(calls("NodeStageVolume", name) > 1, True, "whether the call was repeated")
        say()
        stop(name)
        deleted(name)
    no_mounts()


def test_a_mount_that_the_plugin_leaves_is_unmounted_without_it():
    say()
    created("left")
    user("left")
    node.wait_running("user-left", seconds=30)
    say("NodeUnpublishVolume=lies", "NodeUnstageVolume=lies")
    alloc = alloc_of("left")["ID"]
    node.do("DELETE", "/v1/job/user-left")
    case.until(lambda: "drover has unmounted it" in node.events(alloc), 30, "the event")
    case.until(lambda: node.ask("/v1/volume/csi/left")["WriteAllocs"] == {}, 30, "the claim to be released")
    stop("left")
    say()
    deleted("left")
    no_mounts()


def test_a_volume_that_is_not_staged_is_not_used():
    """The plugin says that it has staged the volume, and then publishes the empty directory: once, or twice at the same path, which mounts it
    also on itself."""
    for name, rule in (("bare", ""), ("twice", "NodePublishVolume=at:1:lost:14")):
        say()
        created(name)
        say("NodeStageVolume=lies", rule)
        user(name)
        case.until(lambda: alloc_of(name)["ClientStatus"] in ("failed", "running"), 30, "the allocation to fail")
        case.contains(events(name), "what it mounted is its staging directory, on which nothing is mounted")
        case.equal("Started" in events(name), False, "whether the task was started")
        stop(name)
        say()
        deleted(name)
        no_mounts()


def test_options_of_the_request_reach_the_plugin():
    say()
    created("opts", MountOptions={"FSType": "ext4", "MountFlags": ["noatime"]})
    user("opts", MountOptions={"FSType": "xfs", "MountFlags": ["ro", "discard"]})
    node.wait_running("user-opts", seconds=30)
    with open(log, encoding="utf-8") as f:
        case.equal([line for line in f.read().splitlines() if line.split(" ")[0] in NODE_CALLS],
                   [call + " opts fs=xfs flags=ro,discard" for call in NODE_CALLS])
    stop("opts")
    deleted("opts")


def test_one_volume_is_staged_once_for_different_uses():
    say()
    created("shared", MountOptions={"FSType": "ext4"})
    user("one", "shared", AccessMode="multi-node-multi-writer")
    node.wait_running("user-one", seconds=30)
    user("two", "shared", AccessMode="multi-node-multi-writer", ReadOnly=True)
    node.wait_running("user-two", seconds=30)
    user("three", "shared", AccessMode="multi-node-multi-writer", MountOptions={"MountFlags": ["noatime"]})
    node.wait_running("user-three", seconds=30)
    case.equal((calls("NodeStageVolume"), calls("NodePublishVolume")), (1, 3), "calls")
    user("four", "shared", AccessMode="multi-node-multi-writer", MountOptions={"FSType": "xfs"})
    case.until(lambda: alloc_of("four")["ClientStatus"] == "failed", 30, "the one with another file system to fail")
    case.contains(events("four"), "volume shared is staged on this node for allocation ")
    case.contains(events("four"), "with file system ext4, not xfs")
    stop("one", "four")
    case.equal(calls("NodeUnstageVolume"), 0, "unstage before the last user has ended")
    stop("two", "three")
    case.until(lambda: calls("NodeUnstageVolume") == 1, 30, "unstage after the last user")
    deleted("shared")
    no_mounts()


def test_every_row_about_a_mount():
    """All rows at the same time: each is about a volume of its own. RESOURCE_EXHAUSTED comes last, and this
    test too, because the plugin's further volumes are not placed for 30 s after it."""
    rows = [(call, number, code) for number, code in sorted((row[1:3] for row in list(tables())[:16]), key=lambda row: row[0] == EXHAUSTED)
            for call in NODE_CALLS]
    names = {(call, number): "%s-%s" % (call.lower(), number) for call, number, _ in rows}
    say()
    created(*names.values())
    say(*["%s/%s=%s:%s" % (call, name, "again" if number == "10" else "status", number) for (call, number), name in names.items()])
    for name in names.values():
        user(name)
    for call, number, code in rows:
        name = names[call, number]
        if number == "10":
            wait_alloc(name, "running")
            case.equal(calls(call, name), 3, name)
            continue
        wait_alloc(name, "failed")
        case.contains(events(name), "rpc error: code = %s desc = as commanded" % code, name)
        case.equal("(tried 3 times)" in events(name), number in ("4", EXHAUSTED, "14"), events(name))
    say()
    stop(*names.values())
    deleted(*names.values())
    no_mounts()


base = case.directory()
log, rules = base + "/log", base + "/rules"
with volumes.Node() as node:
    say()
    start_plugin()
    case.run(globals())
