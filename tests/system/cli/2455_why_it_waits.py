#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""drover alloc why for allocations that wait for something, or were ended by it: a reschedule policy, the previous allocation, a
deployment, a volume, a drain. Also for jobs without allocations."""
from lib import api, build_dir, case, volumes
from lib.fake_api import run_command

S = 10**9
MANUAL = {"MaxParallel": 1, "HealthCheck": "manual"}


def drover(*words):
    r = run_command(words, env={"DROVER_ADDR": "unix://" + node.socket_path})
    case.equal(r.code, 0, "drover %s: %s%s" % (" ".join(words), r.out, r.err))
    return r.out


def said(alloc, part, now=True):
    """Waits until a cause of the allocation contains this text; now: a current cause, else a past one."""
    def texts():
        return [c["Text"] for c in node.ask("/v1/client/allocation/%s/why" % alloc)["Causes"] if (c["Time"] == 0) == now]
    try:
        return case.until(lambda: [t for t in texts() if part in t], 20, part)[0]
    except AssertionError as e:
        raise AssertionError("%s; it says %s" % (e, texts())) from None


def unsaid(alloc, part):
    for c in node.ask("/v1/client/allocation/%s/why" % alloc)["Causes"]:
        case.equal(part in c["Text"], False, c["Text"])


def failed(name, **policy):
    policy = {"Interval": 3600 * S, "Delay": 1800 * S, "DelayFunction": "constant", "Unlimited": False, **policy}
    node.register(api.job(name, "/bin/false", [], group={"ReschedulePolicy": policy}))
    node.wait_allocs(name, [(0, "run", "failed")])
    return node.allocs(name)[0]["ID"]


def test_an_allocation_that_waits_for_its_reschedule_delay():
    alloc = failed("later", Attempts=2)
    said(alloc, "A replacement is placed in ")
    case.contains(drover("alloc", "why", "later"), "A replacement is placed in ")
    node.purge("later")


def test_an_allocation_that_may_not_be_rescheduled():
    said(failed("never", Attempts=0), "No replacement is placed: its reschedule policy allows none.")
    node.purge("never")
    node.register(api.job("used", "/bin/false", [], group={"ReschedulePolicy": {
        "Attempts": 1, "Interval": 3600 * S, "Delay": 5 * S, "DelayFunction": "constant", "Unlimited": False}}))
    case.until(lambda: [a["ClientStatus"] for a in node.allocs("used")] == ["failed", "failed"], 60, "the last attempt")
    first, last = [a["ID"] for a in node.allocs("used")]
    said(first, "Allocation %s replaces it." % last)
    unsaid(first, "No replacement is placed")
    said(last, "No replacement is placed: its reschedule policy allows no more than 1 in 1h0m0s.")
    node.purge("used")


def test_a_replacement_that_waits_for_the_end_of_the_previous_allocation():
    made = api.job("deaf", "/bin/sh", ["-c", "trap '' INT; echo here; while [ ! -e $0 ]; do sleep 0.1; done", node.base + "/end"],
                   KillTimeout=600 * S)
    node.register(made)
    alloc = node.wait_running("deaf")[0]
    node.wait_said(alloc, b"here")
    node.do("PUT", "/v1/allocation/%s/stop" % alloc["ID"])
    said(alloc["ID"], "Its replacement is placed when it has ended.")
    said(alloc["ID"], "It was told to stop and has not ended yet.")
    with open(node.base + "/end", "w", encoding="ascii"):
        pass
    said(alloc["ID"], "replaces it.")
    unsaid(alloc["ID"], "Its replacement is placed")
    node.purge("deaf")


def running(name, version):
    """Waits until an allocation of this version runs, and returns the newest."""
    def look():
        return [a["ID"] for a in node.allocs(name) if (a["JobVersion"], a["ClientStatus"]) == (version, "running")]
    return case.until(look, 30, "version %d of %s to run" % (version, name))[-1]


def test_canaries_that_wait_for_promotion():
    def version(n):
        return api.job("bird", "/bin/sh", ["-c", "echo %d; exec sleep 1000" % n], group={"Update": dict(MANUAL, Canary=1)})
    node.register(version(0))
    old = running("bird", 0)
    first = node.ask("/v1/job/bird/deployment")["ID"]
    said(old, "Deployment %s waits until it is found healthy." % first)
    node.do("PUT", "/v1/deployment/pause/" + first, {"DeploymentID": first, "Pause": True})
    said(old, "Its deployment %s is paused." % first)
    node.register(version(1))
    canary = running("bird", 1)
    deployment = node.ask("/v1/job/bird/deployment")["ID"]
    unsaid(old, "deployment")
    said(canary, "It is a canary of deployment %s, and has not been found healthy yet." % deployment)
    health = "/v1/deployment/allocation-health/" + deployment
    node.do("PUT", health, {"DeploymentID": deployment, "HealthyAllocationIDs": [canary]})
    said(canary, "It is a healthy canary, and waits for deployment %s to be promoted." % deployment)
    case.contains(drover("alloc", "why", "bird"), "waits for deployment")
    node.do("PUT", "/v1/deployment/promote/" + deployment, {"DeploymentID": deployment, "All": True})
    said(old, "It was stopped: ", now=False)
    said(canary, "It runs. Nothing has stopped or restarted it.")
    node.purge("bird")


def test_a_deployment_of_an_unhealthy_version():
    node.register(api.job("sick", group={"Update": MANUAL}))
    alloc = running("sick", 0)
    deployment = node.ask("/v1/job/sick/deployment")["ID"]
    node.do("PUT", "/v1/deployment/allocation-health/" + deployment,
            {"DeploymentID": deployment, "UnhealthyAllocationIDs": [alloc]})
    said(alloc, "Its allocation is not healthy: Unhealthy because an operator said so.", now=False)
    node.purge("sick")


def bad_plugin(name, rule):
    script = 'exec %s/tests/csi_bad "$${CSI_ENDPOINT#unix://}" GetPluginCapabilities=none %s' % (build_dir(), rule)
    node.register(api.job("plugin-" + name, "/bin/sh", ["-c", script], CSIPluginConfig={
        "ID": name, "Type": "node", "MountDir": "/csi", "HealthTimeout": 300 * S}))
    case.until(lambda: node.request("GET", "/v1/plugin/csi/" + name).status == 200 and
               node.ask("/v1/plugin/csi/" + name)["NodesHealthy"] == 1, 60, "plugin " + name)
    node.do("PUT", "/v1/volume/csi/" + name, {"Volumes": [{
        "ID": name, "Name": name, "ExternalID": "x", "PluginID": name, "RequestedCapabilities": [
            {"AccessMode": "single-node-writer", "AttachmentMode": "file-system"}]}]})
    node.register(volumes.job("on-" + name, name, "sleep 1000"))
    return node.allocs("on-" + name)[0]["ID"]


def test_an_allocation_that_waits_for_a_volume():
    refuses = bad_plugin("refuses", "NodePublishVolume=status:9")
    case.contains(said(refuses, "It could not be set up: ", now=False), "NodePublishVolume")
    lies = bad_plugin("lies", "NodePublishVolume=ok")
    case.contains(said(lies, "It could not be set up: ", now=False), "the path does not exist on the host")
    hangs = bad_plugin("hangs", "NodePublishVolume=hang")
    said(hangs, "It waits for its volumes to be claimed and mounted.")
    node.register(volumes.job("second", "hangs", "sleep 1000"))
    case.contains(drover("alloc", "why", "second"), "volume hangs (single-node-writer) is written by alloc " + hangs)
    for name in ("second", "on-hangs", "on-lies", "on-refuses"):
        node.do("DELETE", "/v1/job/" + name)
    host = api.job("host", driver="exec", VolumeMounts=[{"Volume": "data", "Destination": "/data"}])
    host["Job"]["TaskGroups"][0]["Volumes"] = {"data": {"Name": "data", "Type": "host", "Source": "nonesuch"}}
    node.register(host)
    case.contains(drover("alloc", "why", "host"), "Excluded by: missing host volume nonesuch")
    node.purge("host")
    for name in ("hangs", "lies", "refuses"):
        node.do("DELETE", "/v1/job/plugin-" + name)


def test_jobs_without_allocations():
    def batch(name, **more):
        made = api.job(name, "/bin/true", [])
        made["Job"].update(Type="batch", **more)
        return made
    node.register(batch("parameterized", ParameterizedJob={}))
    node.register(batch("periodic", Periodic={"Enabled": True, "SpecType": "cron", "Spec": "0 0 1 1 *"}))
    node.register(batch("off", Periodic={"Enabled": False, "SpecType": "cron", "Spec": "0 0 1 1 *"}))
    node.register(api.job("nothing", count=0))
    for name, text in (("parameterized", "It is parameterized"), ("periodic", "at its times it launches jobs"),
                       ("off", "not enabled"), ("nothing", "The count of all its groups is 0")):
        case.contains(drover("alloc", "why", name), text)
    far = api.job("far")
    far["Job"]["Datacenters"] = ["moon"]
    node.register(far)
    case.contains(drover("alloc", "why", "far"), "No node is in the datacenters of the job")
    node.do("DELETE", "/v1/job/periodic")
    case.contains(drover("alloc", "why", "periodic"), "It was stopped.")


def test_an_allocation_of_a_draining_node():
    """The last test, because it drains the node."""
    node.register(api.job("drained"))
    alloc = node.wait_running("drained")[0]["ID"]
    node.do("POST", "/v1/node/%s/eligibility" % node.ask("/v1/nodes")[0]["ID"], {"Eligibility": "ineligible"})
    node.register(api.job("unwelcome"))
    case.contains(drover("alloc", "why", "unwelcome"), "No node is eligible")
    node.do("POST", "/v1/node/%s/drain" % node.ask("/v1/nodes")[0]["ID"], {"DrainSpec": {"Deadline": 60 * S}})
    said(alloc, "It was stopped: node is draining.", now=False)
    said(alloc, "Its replacement cannot be placed yet.")


with volumes.Node(client='max_kill_timeout = "10m"') as node:
    case.run(globals())
