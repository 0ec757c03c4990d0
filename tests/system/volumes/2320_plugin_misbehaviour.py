#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# timeout: 600
# takes: 110
"""A whole agent with plugins that misbehave: each case gives a status and an error message, loses no data and delays no other plugin; when
the plugin works again, everything continues. Each kind of misbehaviour is its own plugin; all plugins of a test run at the same time."""
import os
import threading

from lib import api, binary, build_dir, case, helper, volumes

SCRIPT = "touch /alloc/data/ran; cat /data/kept; sleep 1000"
SECOND = 10**9


# --- plugins: csi-local and csi_bad can have the same id, one after the other ---

def plugin_job(name, command, args, health_timeout=300 * SECOND):
    return api.job("plugin-" + name, command, args, Env={"PLAYS": " ".join(args)}, CSIPluginConfig={
        "ID": name, "Type": "monolith", "MountDir": "/csi", "HealthTimeout": health_timeout})


def good(*names):
    """Runs csi-local under these plugin ids, each with its own store."""
    for name in names:
        replace(plugin_job(name, binary("csi-local"), ["-root", store(name)]))
    wait_healthy(names)


def bad(rules, **more):
    """Runs csi_bad under these plugin ids. rules: {id: rules}."""
    for name, words in rules.items():
        replace(bad_job(name, words, **more))
    wait_healthy(rules)


def replace(made):
    """Registers a plugin job. Its previous instance ends at once."""
    node.register(made)
    end_at_once(made["Job"]["ID"])


def end_at_once(job):
    """Lets instances that are to stop not wait for volumes that they cannot unmount, which would take 60 s."""
    for alloc in node.allocs(job):
        if alloc["DesiredStatus"] == "stop" and alloc["ClientStatus"] in ("pending", "running"):
            node.do("PUT", "/v1/allocation/%s/stop?no_shutdown_delay=true" % alloc["ID"])


def bad_job(name, words, **more):
    script = 'exec %s "${CSI_ENDPOINT#unix://}" "$@"'.replace("${", "$${") % os.path.join(build_dir(), "tests", "csi_bad")
    return plugin_job(name, "/bin/sh", ["-c", script, "csi_bad"] + words.split(), **more)


def store(name):
    return os.path.join(base, name)


def runs_newest(name):
    """Waits until the newest version of the plugin's job answers."""
    wanted = [a["ID"] for a in node.allocs("plugin-" + name) if a["DesiredStatus"] == "run" and
              a["JobVersion"] == node.ask("/v1/job/plugin-" + name)["Version"]]
    answer = node.request("GET", "/v1/plugin/csi/" + name)
    if answer.status != 200 or len(wanted) != 1:
        return False
    return all(info["Healthy"] and info["AllocID"] == wanted[0] for info in answer.json["Nodes"].values())


def wait_healthy(names):
    for name in names:
        case.until(lambda: runs_newest(name), 30, "plugin %s to be healthy" % name)


def purge_plugins(*names):
    for name in names:
        node.do("DELETE", "/v1/job/plugin-%s?purge=true" % name)
    case.until(lambda: not [p for p in node.ask("/v1/plugins", type="csi") if p["ID"] in names], 30, "plugins to be removed")


# --- volumes and their users ---

def volume(name, plugin, **more):
    made = {"ID": name, "Name": name, "PluginID": plugin, "RequestedCapabilities": [
        {"AccessMode": "single-node-writer", "AttachmentMode": "file-system"}]}
    made.update(more)
    return {"Volumes": [made]}


def create(name, plugin=None, timeout=300):
    return node.request("PUT", "/v1/volume/csi/%s/create" % name, volume(name, plugin or name), timeout)


def created(*names):
    """Creates a volume with data in it on each plugin."""
    for name in names:
        made = create(name)
        case.equal(made.status, 200, made.text)
        with open("%s/volumes/%s/kept" % (store(name), made.json["Volumes"][0]["ExternalID"]), "w", encoding="ascii") as f:
            f.write("kept for " + name)


def delete(name):
    return node.request("DELETE", "/v1/volume/csi/%s/delete" % name, timeout=300)


def deleted(*names):
    for name in names:
        answer = delete(name)
        case.equal(answer.status, 200, name + ": " + answer.text)


def user(*names):
    """Starts a job for each volume of these names, which uses it."""
    for name in names:
        node.register(volumes.job("user-" + name, name, SCRIPT))


def alloc_of(name):
    return node.allocs("user-" + name)[-1]


def wait_running(*names):
    for name in names:
        alloc = node.wait_running("user-" + name, seconds=30)[0]
        case.until(lambda: node.logs(alloc) == b"kept for " + name.encode(), 10, "the data in " + name)


def wait_failed(name, part, seconds=30):
    """Checks that the only alloc of the volume's job fails with this message, and that its task has never started."""
    case.until(lambda: alloc_of(name)["ClientStatus"] == "failed", seconds, "the job with volume %s to fail" % name)
    alloc = alloc_of(name)
    events = node.events(alloc["ID"])
    case.contains(events, part, name)
    never_started(name)
    print("    %-18s %s" % (name, next(line for line in events.splitlines() if part in line)))


def never_started(name):
    alloc = alloc_of(name)
    case.equal("Started" in node.events(alloc["ID"]), False, "whether the job with volume %s was started" % name)
    case.equal(os.path.exists("%s/alloc/%s/alloc/data/ran" % (node.data, alloc["ID"])), False, name + ": whether its task ran")


def wait_event(name, part, seconds=30):
    alloc = alloc_of(name)
    case.until(lambda: part in node.events(alloc["ID"]), seconds, "%s: event %r" % (name, part))


def stop(*names):
    """Stops the jobs with these volumes. The answer never waits for a hanging plugin."""
    for name in names:
        node.do("DELETE", "/v1/job/user-%s?purge=true" % name)


def stop_well(*names):
    """Stops the jobs with these volumes, whose plugins answer well again."""
    stop(*names)
    gone(*names)
    deleted(*names)
    purge_plugins(*names)


def gone(*names, seconds=30):
    for name in names:
        case.until(lambda: not [a for a in node.ask("/v1/allocations") if a["JobID"] == "user-" + name], seconds,
                   "the allocations of user-%s to be removed" % name)
        case.equal(node.published(name), [], "mounts of " + name)


def others_go_on():
    """Creates, uses and deletes a volume of another plugin meanwhile."""
    created("other")
    user("other")
    wait_running("other")
    stop("other")
    gone("other")
    deleted("other")


# --- the tests ---

def test_a_plugin_that_does_not_introduce_itself_is_never_used():
    cases = {
        "dead": ("connection=dead", "UNAVAILABLE"),
        "silent": ("connection=silent", "no answer within 5000 ms"),
        "full": ("connection=full", ""),
        "noise": ("connection=garbage", ""),
        "http1": ("connection=http1", ""),
        "goaway": ("connection=goaway", ""),
        "probe-hang": ("Probe=hang", "no answer within 5000 ms"),
        "probe-garbage": ("Probe=garbage", "not a valid message"),
        "probe-refuses": ("Probe=status:9", "FAILED_PRECONDITION"),
        "not-ready": ("Probe=huge:0", "it is not ready"),
        "no-name": ("GetPluginInfo=none", "it has no name"),
        "info-text": ("GetPluginInfo=nul", "is not valid text"),
        "info-status": ("GetPluginInfo=noise:13", "GetPluginInfo of plugin info-status"),
        "no-node": ("NodeGetInfo=none", "it has no node id"),
        "caps-garbage": ("GetPluginCapabilities=garbage", "not a valid message"),
    }
    for name, (rule, _) in cases.items():
        node.register(bad_job(name, rule, health_timeout=12 * SECOND))
    for name, (_, part) in cases.items():
        case.until(lambda: node.allocs("plugin-" + name)[0]["ClientStatus"] == "failed", 120, name + " to fail")
        events = node.events(node.allocs("plugin-" + name)[0]["ID"])
        line, = [text for text in events.splitlines() if text.startswith("Plugin became unhealthy")]
        case.contains(line, "Error: CSI plugin failed probe: ", name)
        case.contains(line, part, name)
        case.contains(events, "did not become healthy before configured 12s health timeout", name)
        print("    %-14s %s" % (name, line))
        node.refused(400, "no plugin \"%s\" answers" % name, "PUT", "/v1/volume/csi/v/create", volume("v", name))
    case.equal([p["ID"] for p in node.ask("/v1/plugins", type="csi")], ["other"], "plugins")
    purge_plugins(*cases)


def test_a_plugin_with_wrong_capabilities_creates_no_volume():
    bad({"no-controller": "GetPluginCapabilities=none", "no-create": "ControllerGetCapabilities=none"})
    for name in ("no-controller", "no-create"):
        node.refused(400, "has no controller that creates volumes", "PUT", "/v1/volume/csi/v/create", volume("v", name))
    purge_plugins("no-controller", "no-create")
    case.equal(node.ask("/v1/volumes", type="csi"), [], "volumes")


def test_a_failed_creation_has_an_error_message_and_can_be_repeated():
    cases = {
        "refuses": ("CreateVolume=status:3", 400, "a source that it cannot copy: rpc error: code = InvalidArgument desc = as commanded"),
        "exists": ("CreateVolume=status:6", 500, "exists or is in use in an incompatible way"),
        "no-room": ("CreateVolume=status:8", 500, "no space"),
        "unknown": ("CreateVolume=status:2", 500, "does not say how"),
        "internal": ("CreateVolume=noise:13", 500, "see the logs of the plugin's allocation"),
        "gone": ("CreateVolume=status:14", 500, "the plugin cannot be reached"),
        "no-id": ("CreateVolume=none", 500, "the plugin gave the volume no id"),
        "nothing": ("CreateVolume=nothing", 500, "the plugin's answer cannot be used: it is empty"),
        "bytes": ("CreateVolume=garbage", 500, "the plugin's answer cannot be used"),
        "no-text": ("CreateVolume=nul", 500, "the plugin's answer cannot be used"),
        "large": ("CreateVolume=huge:100000", 500, "the plugin gave the volume no id"),
        "dies": ("CreateVolume=die", 500, "the plugin's task ended during the call and is not started again"),
    }
    bad({name: rule for name, (rule, _, _) in cases.items()})
    for name, (_, status, part) in cases.items():
        answer = create(name)
        case.equal((answer.status, part in answer.text), (status, True), name + ": " + answer.text)
        print("    %-9s %d %s" % (name, answer.status, answer.text.strip()[:150]))
    case.equal([v["Schedulable"] for v in node.ask("/v1/volumes", type="csi")].count(True), 0, "usable volumes")
    good(*cases)
    created(*cases)
    deleted(*cases)
    purge_plugins(*cases)


def test_a_hanging_creation_is_completed_by_the_next_instance():
    bad({"hangs": "CreateVolume=hang"})
    answers = []
    thread = threading.Thread(target=lambda: answers.append(create("hangs")))
    thread.start()
    case.until(lambda: node.request("GET", "/v1/volume/csi/hangs").status == 200, 10, "the row of the volume")
    node.refused(409, "is being created", "PUT", "/v1/volume/csi/hangs/create", volume("hangs", "hangs"))
    node.refused(409, "is being created", "DELETE", "/v1/volume/csi/hangs/delete")
    others_go_on()
    good("hangs")
    thread.join(300)
    case.equal([(a.status, bool(a.json["Volumes"][0]["ExternalID"])) for a in answers], [(200, True)], "the answer to the creation")


def test_a_failed_deletion_has_an_error_message_and_can_be_repeated():
    cases = {
        "hangs": ("DeleteVolume=status:9", "the volume is in use, or has snapshots: rpc error: code = FailedPrecondition"),
        "del-dies": ("DeleteVolume=die", "the plugin's task ended during the call and is not started again"),
        "del-bytes": ("DeleteVolume=garbage", "the plugin's answer cannot be used"),
    }
    good(*cases)
    created("del-dies", "del-bytes")
    bad({name: rule for name, (rule, _) in cases.items()})
    for name, (_, part) in cases.items():
        answer = delete(name)
        case.equal((answer.status, part in answer.text), (500, True), name + ": " + answer.text)
        case.equal(node.ask("/v1/volume/csi/" + name)["ID"], name, "whether the volume still exists")
    good(*cases)
    deleted(*cases)
    purge_plugins(*cases)


def test_a_failed_mount_fails_the_alloc_with_an_error_message():
    cases = {
        "stage-13": ("NodeStageVolume=status:13", "node plugin internal error"),
        "stage-14": ("NodeStageVolume=status:14", "(tried 3 times): the plugin cannot be reached"),
        "stage-bytes": ("NodeStageVolume=garbage", "the plugin's answer cannot be used"),
        "stage-dies": ("NodeStageVolume=die", "the plugin's task ended during the call and is not started again"),
        "publish-9": ("NodePublishVolume=status:9", "or is in use, or is not staged: rpc error: code = FailedPrecondition"),
        "publish-none": ("NodePublishVolume=nothing", "the plugin's answer cannot be used: it is empty"),
        "publish-dies": ("NodePublishVolume=die", "the plugin's task ended during the call and is not started again"),
        # The plugin reports success without a mount.
        "publish-lies": ("NodePublishVolume=ok", "said that it is mounted, but the path does not exist on the host"),
        # Nor does it stage the volume.
        "caps-lie": ("NodeGetCapabilities=none", "said that it is mounted, but the path does not exist on the host"),
    }
    good(*cases)
    created(*cases)
    bad({name: rule for name, (rule, _) in cases.items()})
    user(*cases)
    others_go_on()
    for name, (_, part) in cases.items():
        wait_failed(name, part)
    stop(*cases)
    # Requests that plugins received before they died are undone when they run again.
    good(*cases)
    gone(*cases)
    for name in cases:
        case.equal(node.ask("/v1/volume/csi/" + name)["WriteAllocs"], {}, "claims of " + name)
        user(name)
    wait_running(*cases)
    stop_well(*cases)


def test_a_volume_that_is_already_staged_is_not_staged_again():
    good("staged")
    created("staged")
    user("staged")
    wait_running("staged")
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        place, = [p for p in (line.split(" ")[4] for line in f) if "/staged/staging/" in p]
    stop("staged")
    gone("staged")
    bad({"staged": "NodeStageVolume=status:13"})
    os.makedirs(place)
    helper.mount("staged", place, "tmpfs")  # as a mount that the plugin made before it died without an answer
    user("staged")
    wait_failed("staged", "said that it is mounted, but the path does not exist on the host")  # NodeStageVolume was not called
    stop("staged")
    gone("staged")  # the plugin says that it has unstaged the volume; drover unmounts it
    case.equal(os.path.exists(place), False, "whether the staging directory exists")
    good("staged")
    deleted("staged")
    purge_plugins("staged")


def test_a_hanging_mount_is_reported_and_the_alloc_can_be_stopped_or_recover():
    names = ("stage-hangs", "publish-hangs", "mended")
    good(*names)
    created(*names)
    bad({"stage-hangs": "NodeStageVolume=hang", "publish-hangs": "NodePublishVolume=hang", "mended": "NodeStageVolume=hang"})
    user(*names)
    others_go_on()
    for name, call in (("stage-hangs", "NodeStageVolume"), ("publish-hangs", "NodePublishVolume"), ("mended", "NodeStageVolume")):
        wait_event(name, "%s of plugin %s has not been answered yet" % (call, name))
        case.equal(alloc_of(name)["ClientStatus"], "pending", name)
        never_started(name)
    stop("stage-hangs")
    stop("publish-hangs")
    gone("stage-hangs", "publish-hangs")
    good("mended")
    wait_running("mended")
    stop("mended")
    gone("mended")
    good("stage-hangs", "publish-hangs")
    user("stage-hangs", "publish-hangs")
    wait_running("stage-hangs", "publish-hangs")
    stop("stage-hangs", "publish-hangs")
    gone(*names)
    deleted(*names)
    purge_plugins(*names)


def test_a_failed_unmount_keeps_the_claim_until_it_succeeds():
    cases = {
        "unpublish-13": ("NodeUnpublishVolume=status:13", "node plugin internal error"),
        "unpublish-dies": ("NodeUnpublishVolume=die", "the plugin's task ended during the call and is not started again"),
        "unstage-9": ("NodeUnpublishVolume=status:5 NodeUnstageVolume=status:9", "NodeUnstageVolume of plugin unstage-9: the volume is in use: "),
    }
    good(*cases)
    created(*cases)
    user(*cases)
    wait_running(*cases)
    bad({name: rule for name, (rule, _) in cases.items()})
    holders = {name: alloc_of(name)["ID"] for name in cases}
    for name in cases:
        node.do("DELETE", "/v1/job/user-" + name)
    others_go_on()
    for name, (_, part) in cases.items():
        wait_event(name, part)
        wait_event(name, "the volume stays claimed")
        case.equal(alloc_of(name)["ClientStatus"], "complete", name)
        case.equal(node.ask("/v1/volume/csi/" + name)["WriteAllocs"], {holders[name]: None}, "the claim of " + name)
        case.equal(delete(name).status, 409, "deletion of %s, which is in use" % name)
    stop(*cases)
    node.kill("supervisor")
    node.wait_ready()
    good(*cases)
    gone(*cases)
    user(*cases)
    wait_running(*cases)
    stop_well(*cases)


def test_all_failures_of_post_run_hooks_are_in_one_event():
    """Two volumes of one allocation, and its other hooks: each is cleaned up even if an earlier one failed."""
    names = ("first", "second")
    good(*names)
    created(*names)
    made = volumes.job("user-both", "first", "sleep 1000")
    group = made["Job"]["TaskGroups"][0]
    group["Volumes"]["more"] = {**group["Volumes"]["data"], "Name": "more", "Source": "second"}
    group["Services"] = [{"Name": "both", "Provider": "nomad"}]
    node.register(made)
    alloc = node.wait_running("user-both", seconds=60)[0]["ID"]
    case.equal(len(node.ask("/v1/service/both")), 1, "its service")
    bad({"first": "NodeUnpublishVolume=status:13", "second": "NodeUnpublishVolume=die"})
    node.do("DELETE", "/v1/job/user-both")

    def sentences():
        return [line for line in node.events(alloc).splitlines() if "post-run hooks failed: " in line]
    case.until(sentences, 120, "the error message in the events")
    case.equal(len(sentences()), 1, node.events(alloc))
    for part in ("csi_hook: ", "node plugin internal error", "the plugin's task ended during the call"):
        case.contains(sentences()[0], part)
    case.equal(sentences()[0].count("the volume stays claimed, and drover retries until it is unmounted"), 2, sentences()[0])
    case.equal((alloc_of("both")["ClientStatus"], node.ask("/v1/service/both")), ("complete", []))
    # The allocation is removed only when all volumes are unmounted: until then its directories stay.
    stop("both")
    good("first")
    case.until(lambda: not node.published("first"), 120, "the first to be unmounted")
    case.equal(os.path.isdir("%s/alloc/%s" % (node.data, alloc)), True, "whether its directories exist while a volume is mounted")
    good("second")
    gone("both", seconds=120)
    case.until(lambda: not os.path.exists("%s/alloc/%s" % (node.data, alloc)), 60, "its directories to be removed")
    deleted(*names)
    purge_plugins(*names)


def test_a_volume_whose_unmount_fails_can_be_deregistered_by_force():
    good("forced")
    created("forced")
    user("forced")
    wait_running("forced")
    path = "/v1/volume/csi/forced"
    node.refused(409, "volume in use", "DELETE", path + "?force=true")
    node.refused(400, "invalid force value", "DELETE", path + "?force=perhaps")
    bad({"forced": "NodeUnpublishVolume=status:13"})
    node.do("PUT", "/v1/allocation/%s/stop" % alloc_of("forced")["ID"])
    wait_event("forced", "the volume stays claimed", 60)
    node.refused(409, "volume in use", "DELETE", path)
    node.refused(409, "volume in use", "DELETE", path + "?force=false")
    node.do("DELETE", path + "?force=true")
    node.refused(404, "volume not found", "GET", path)
    # Its replacement waits for a volume of that name, not for the mount.
    case.until(lambda: "missing CSI volume forced" in str([e["FailedTGAllocs"] for e in node.ask("/v1/job/user-forced/evaluations")
                                                            if e["Status"] == "blocked"]), 60, "its replacement to wait for another volume")
    good("forced")
    case.until(lambda: node.published("forced") == [], 60, "the mount to be removed nevertheless")
    node.purge("user-forced")
    purge_plugins("forced")


def test_detach_retries_an_unmount_and_says_what_it_waits_for():
    good("detached")
    created("detached")
    user("detached")
    wait_running("detached")
    path, me = "/v1/volume/csi/detached/detach", node.ask("/v1/nodes")[0]["ID"]
    node.refused(409, "volume in use: detached (by allocation %s, which runs: stop it first)" % alloc_of("detached")["ID"],
                 "DELETE", path + "?node=" + me)
    node.refused(400, "detach requires node ID", "DELETE", path)
    node.refused(404, "can only be on node " + me, "DELETE", path + "?node=other")
    node.refused(404, "volume not found", "DELETE", path.replace("detached", "none") + "?node=" + me)
    bad({"detached": "NodeUnpublishVolume=status:13"})
    node.do("DELETE", "/v1/job/user-detached")
    wait_event("detached", "the volume stays claimed", 60)
    node.refused(409, "volume in use", "DELETE", "/v1/volume/csi/detached")
    said = "volume detached is still mounted on this node for allocation %.8s: NodeUnpublishVolume of plugin detached" % alloc_of("detached")["ID"]
    case.contains(node.drover("volume", "detach", "detached", me[:8], code=1).err, said)
    case.equal(node.ask("/v1/volume/csi/detached")["WriteAllocs"], {alloc_of("detached")["ID"]: None}, "the claim")
    claim, = node.ask("/v1/volume/csi/detached/claims")
    case.equal((claim["State"], claim["Mode"], claim["NodeID"], claim["Attached"]), ("unpublishing", "write", me, "no"))
    case.contains(claim["WaitsFor"], said)
    case.contains(claim["WaitsFor"], "rpc error: code = Internal desc = as commanded; tried ")
    good("detached")
    case.until(lambda: node.request("DELETE", path + "?node=" + me).status == 200, 60, "the volume to be detached")
    case.equal(node.ask("/v1/volume/csi/detached")["Allocations"], [])
    case.equal(node.published("detached"), [], "mounts")
    node.do("DELETE", path + "?node=" + me)  # nothing is left to do
    stop("detached")
    gone("detached")
    deleted("detached")
    purge_plugins("detached")


def test_a_drain_does_not_wait_for_a_plugin_that_hangs():
    names = ("hangs", "hangs-too")
    good(*names)
    created(*names)
    user(*names)
    wait_running(*names)
    bad({"hangs": "NodeUnpublishVolume=hang", "hangs-too": "NodeUnpublishVolume=hang NodeUnstageVolume=hang"})
    old = [alloc_of(name)["ID"] for name in names]
    self = node.ask("/v1/nodes")[0]["ID"]
    node.do("POST", "/v1/node/%s/drain" % self, {"DrainSpec": {"Deadline": 0}})
    for name in names:
        wait_event(name, "NodeUnpublishVolume of plugin %s has not been answered yet; the volume stays claimed" % name)
        end_at_once("plugin-" + name)
    case.until(lambda: not node.ask("/v1/node/" + self)["DrainStrategy"], 40, "the end of the drain")
    for name, alloc in zip(names, old):
        node.wait_log("volume %s of allocation %.8s stays mounted and claimed" % (name, alloc))
        case.equal(len(node.published(name)), 1, "mounts of " + name)
        case.equal(node.ask("/v1/volume/csi/" + name)["WriteAllocs"], {alloc: None}, "the claim of " + name)
    node.stop()
    node.start()
    node.wait_ready()
    node.do("POST", "/v1/node/%s/drain" % self, {"DrainSpec": None, "MarkEligible": True})
    good("other", *names)
    for name, alloc in zip(names, old):
        case.until(lambda: not [p for p in node.published(name) if alloc in p], 10, "mounts of the previous agent to be removed")
    wait_running(*names)
    stop_well(*names)


def test_no_leaks_are_left():
    purge_plugins("other")
    case.until(lambda: node.ask("/v1/allocations") == [], 90, "allocations to be removed")
    case.equal(node.ask("/v1/agent/leaks"), [], "leaks")
    case.equal(node.ask("/v1/volumes", type="csi"), [], "volumes")


base = case.directory()
with volumes.Node() as node:
    good("other")
    case.run(globals())
