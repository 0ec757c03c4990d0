# SPDX-License-Identifier: Apache-2.0
"""The table of CSI calls and codes (supervisor/volume/csi_codes.def), and the life of volumes in which drover makes each of its calls.

A step of that life makes one call for each of many volumes at the same time, and fails it as a rule of the plugin csi_bad says. Volumes are called
GROUP-NAME; all groups live from `create` to `delete`, but in each step another call of theirs fails.
"""
import concurrent.futures
import os
import re
import time

from . import ROOT, api, build_dir, case, volumes

PARALLEL = 12  # requests at the same time
SIZE = 1 << 20


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


class Table:
    """What csi_codes.def says: calls; codes {number: name}; rows {(call, number): (verdict, effect, meaning)}; origins {name: (verdict, meaning)}."""

    def __init__(self):
        text = read("supervisor/volume/csi_codes.def")
        number = {name: int(value) for name, value in re.findall(r"^#define (PLUGIN_\w+)\s+(\d+)$", read("supervisor/volume/plugin_retry.h"), re.M)}
        self.tries_max, self.tries_once = number["PLUGIN_TRIES_MAX"], number["PLUGIN_TRIES_ONCE"]
        self.backoff_ms = number["PLUGIN_BACKOFF_USEC"] // 1000
        found = re.findall(r'^CSI_CALL\(\s*(\w+),\s*"(\w+)",\s*"([^"]*)",\s*(\w+)\)', text, re.M)
        symbols = {symbol: name for symbol, name, _, _ in found}
        self.half = {name: half for _, name, half, _ in found}
        self.once = {name for _, name, _, once in found if once == "true"}
        self.calls = list(self.half)
        codes = re.findall(r'^CSI_CODE\(\s*(\d+),\s*"(\w+)",\s*\w+,\s*(\w+),\s*(\w+),\s*"(.*)"\)', text, re.M)
        self.codes = {int(status): name for status, name, _, _, _ in codes}
        self.rows = {(call, int(status)): row for status, _, *row in codes for call in self.calls}
        rules = re.findall(r'^CSI_RULE\(\s*(\w+),\s*(\d+),\s*(\w+),\s*(\w+),\s*"(.*)"\)', text, re.M)
        self.rows.update({(symbols[symbol], int(status)): row for symbol, status, *row in rules})
        self.origins = {symbol: (verdict, meaning) for symbol, _, verdict, meaning in
                        re.findall(r'^CSI_ORIGIN\(\s*(\w+),\s*"([^"]*)",\s*\w+,\s*(\w+),\s*"(.*)"\)', text, re.M)}
        case.equal((len(self.calls), len(codes), len(rules), len(self.origins)),
                   tuple(len(re.findall(r"^CSI_%s\(" % kind, text, re.M)) for kind in ("CALL", "CODE", "RULE", "ORIGIN")), "rows that were read")

    def verdict(self, call, status):
        return self.rows[call, status][0]

    def is_unknown(self, call, status):
        return self.rows[call, status][1] == "UNKNOWN"

    def bad_answers(self, call, status):
        """Returns how many answers in a row with this status end the call, or for one that waits, two."""
        if call in self.once:
            return self.tries_once if self.verdict(call, status) == "RETRY" else 1
        return {"DONE": 1, "FINAL": 1, "RETRY": self.tries_max, "PENDING": 2}[self.verdict(call, status)]

    def ends_well(self, call, status):
        verdict = self.verdict(call, status)
        return verdict == "DONE" or (verdict == "PENDING" and call not in self.once)

    def sentence(self, call, status, plugin, desc="as commanded"):
        tries = self.bad_answers(call, status)
        tried = " (tried %d times)" % tries if tries > 1 else ""
        half = self.half[call] if self.codes[status] == "Internal" else ""
        return "%s of plugin %s%s: %s%s: rpc error: code = %s desc = %s" % (
            call, plugin, tried, half, self.rows[call, status][2], self.codes[status], desc)


class Plugin:
    """csi_bad as a task. Its effects are real mounts, and files in `state`."""

    def __init__(self, node, name="bad", words=(), **restart):
        self.node, self.name, self.words = node, name, list(words)
        self.base = case.directory()
        self.state = self.base + "/state"
        os.mkdir(self.state)
        self.say()
        script = 'exec %s "$${CSI_ENDPOINT#unix://}" "$@"' % os.path.join(build_dir(), "tests", "csi_bad")
        args = ["-c", script, "csi_bad", "log=" + self.base + "/log", "rules=" + self.base + "/rules", "state=" + self.state, "mounts=yes",
                "clock=yes", "group=yes", *words]
        job = api.job("plugin-" + name, "/bin/sh", args, CSIPluginConfig={
            "ID": name, "Type": "monolith", "MountDir": "/csi", "HealthTimeout": 300 * 10**9})
        job["Job"]["TaskGroups"][0]["RestartPolicy"].update(restart)
        job["Job"]["TaskGroups"][0]["Tasks"][0]["Resources"] = {"CPU": 20, "MemoryMB": 200}
        node.register(job)
        case.until(self.is_healthy, 30, "plugin %s to be healthy" % name)

    def is_healthy(self):
        answer = self.node.request("GET", "/v1/plugin/csi/" + self.name)
        return answer.status == 200 and answer.json["NodesHealthy"] == 1 and answer.json["ControllersHealthy"] == 1

    def say(self, rules=()):
        """Sets the rules, and forgets the calls."""
        for file, text in (("rules", "\n".join(rules)), ("log", "")):
            with open(self.base + "/new", "w", encoding="utf-8") as f:
                f.write(text)
            os.rename(self.base + "/new", self.base + "/" + file)

    def calls(self, method, volume):
        """Returns when the calls came, in milliseconds."""
        with open(self.base + "/log", encoding="utf-8") as f:
            return [int(ms) for ms in re.findall(r"^%s %s(?: \S+)* ms=(\d+)$" % (method, re.escape(volume)), f.read(), re.M)]

    def purge(self):
        self.node.purge("plugin-" + self.name)


class Life:
    """Each method makes one call for each volume at the same time. It returns {volume: (whether it went well, what drover says about it)}."""

    def __init__(self, node, plugin):
        self.node, self.plugin, self.sizes, self.versions = node, plugin, {}, 0

    def each(self, ask, names):
        with concurrent.futures.ThreadPoolExecutor(PARALLEL) as pool:
            answers = list(pool.map(ask, names))
        return {name: (answer.status == 200, answer.text) for name, answer in zip(names, answers)}

    def volume(self, name, **more):
        return {"Volumes": [{"ID": name, "Name": name, "PluginID": self.plugin.name, "RequestedCapacityMin": self.sizes.get(name, SIZE),
                             "RequestedCapabilities": [{"AccessMode": "single-node-writer", "AttachmentMode": "file-system"}], **more}]}

    def create(self, names):
        return self.each(lambda name: self.node.request("PUT", "/v1/volume/csi/%s/create" % name, self.volume(name), 300), names)

    def grow(self, names):
        for name in names:
            self.sizes[name] = 2 * SIZE
        return self.create(names)

    def delete(self, names):
        return self.each(lambda name: self.node.request("DELETE", "/v1/volume/csi/%s/delete" % name, timeout=300), names)

    def register(self, names):
        """Registers volumes that the plugin has, and deregisters them."""
        def ask(name):
            answer = self.node.request("PUT", "/v1/volume/csi/" + name, self.volume(name, ExternalID=name), 300)
            if answer.status == 200:
                self.node.do("DELETE", "/v1/volume/csi/" + name)
            return answer
        return self.each(ask, names)

    def list_volumes(self, names):
        return self.each(lambda name: self.node.request("GET", "/v1/volumes/external?plugin_id=%s&next_token=%s" % (self.plugin.name, name)), names)

    def list_snapshots(self, names):
        return self.each(lambda name: self.node.request("GET", "/v1/volumes/snapshot?plugin_id=%s&next_token=%s" % (self.plugin.name, name)), names)

    def snapshot(self, names):
        return self.each(lambda name: self.node.request("PUT", "/v1/volumes/snapshot", {"Snapshots": [{"SourceVolumeID": name, "Name": name}]}, 300),
                         names)

    def delete_snapshot(self, names):
        return self.each(lambda name: self.node.request("DELETE", "/v1/volumes/snapshot?plugin_id=%s&snapshot_id=%s" % (self.plugin.name, name),
                                                        timeout=300), names)

    def modify(self, names):
        return self.each(lambda name: self.node.request("PUT", "/v1/volume/csi/%s/modify" % name, {"MutableParameters": {"a": "b"}}, 300), names)

    def group(self, names):
        """Makes a group snapshot of each volume alone, with its name."""
        return self.each(lambda name: self.node.request("PUT", "/v1/volumes/group-snapshot", {
            "PluginID": self.plugin.name, "Name": name, "SourceVolumeIDs": [name]}, 300), names)

    def delete_group(self, names):
        return self.each(lambda name: self.node.request("DELETE", "/v1/volumes/group-snapshot?plugin_id=%s&group_snapshot_id=%s&snapshot_id=%s" % (
            self.plugin.name, name, name), timeout=300), names)

    def newest(self, names):
        """Returns {volume: the newest allocation of its user}."""
        found = {}
        for alloc in sorted(self.node.ask("/v1/allocations"), key=lambda a: a["CreateIndex"]):
            found[alloc["JobID"]] = alloc
        return {name: found["user-" + name] for name in names if "user-" + name in found}

    def use(self, names):
        """Starts an alloc with each volume."""
        self.versions += 1
        for name in names:
            self.node.register(volumes.job("user-" + name, name, "sleep 1000", Meta={"version": str(self.versions)}))
        before = {}

        def ended():
            found = self.newest(names)
            before.update({name: a for name, a in found.items() if a["JobVersion"] == self.node_version(name) and
                           a["ClientStatus"] in ("running", "failed")})
            return len(before) == len(names)
        self.wanted = {name: self.node.ask("/v1/job/user-" + name)["Version"] for name in names}
        try:
            case.until(slowly(ended), 120, "the allocations to run or fail")
        except AssertionError:
            print(self.node.log()[-5000:])
            raise AssertionError("not ended: %s" % sorted(set(names) - set(before))) from None
        return {name: (a["ClientStatus"] == "running", self.node.events(a["ID"])) for name, a in before.items()}

    def node_version(self, name):
        return self.wanted[name]

    def leave(self, names):
        """Stops the allocs, and waits until the volumes are released. What went wrong in between is in the events and the log."""
        allocs = self.newest(names)
        for name in names:
            self.node.do("DELETE", "/v1/job/user-" + name)
        left = set(names)

        def released():
            left.difference_update([name for name in left if not self.node.ask("/v1/volume/csi/%s/claims" % name)])
            return not left
        try:
            case.until(slowly(released), 120, "the volumes to be released")
        except AssertionError:
            raise AssertionError("not released: %s" % [self.node.ask("/v1/volume/csi/%s/claims" % name) for name in sorted(left)]) from None
        log = self.node.log().splitlines()
        return {name: (None, self.node.events(allocs[name]["ID"]) + "\n" + "\n".join(line for line in log if "volume %s " % name in line or
                                                                                   "volume %s:" % name in line)) for name in names}

    def forget_users(self, names):
        for name in names:
            self.node.do("DELETE", "/v1/job/user-%s?purge=true" % name)
        jobs = {"user-" + name for name in names}
        case.until(slowly(lambda: not [a for a in self.node.ask("/v1/allocations") if a["JobID"] in jobs]), 60, "the allocations to be removed")


def slowly(condition):
    """Polls less often: an agent with many volumes has enough to do."""
    def so():
        time.sleep(0.15)
        return condition()
    return so


# The steps of a life, in order: the calls that fail in each, by group, and how they are made. None: as the other groups.
STEPS = (
    {"a": ("CreateVolume", "create"), "b": (None, "create"), "c": (None, "create"), "m": (None, "create"), "g": (None, "create"),
     "v": ("ValidateVolumeCapabilities", "register")},
    {"a": ("NodeStageVolume", "use"), "b": ("NodePublishVolume", "use"), "c": ("ControllerPublishVolume", "use")},
    {"a": ("ControllerExpandVolume", "grow"), "b": ("NodeExpandVolume", "grow"), "c": ("CreateSnapshot", "snapshot"),
     "m": ("ControllerModifyVolume", "modify"), "g": ("CreateVolumeGroupSnapshot", "group"),
     "l": ("ListVolumes", "list_volumes"), "s": ("ListSnapshots", "list_snapshots")},
    {"a": ("NodeUnstageVolume", "leave"), "b": ("NodeUnpublishVolume", "leave"), "c": ("ControllerUnpublishVolume", "leave")},
    {"a": ("DeleteVolume", "delete"), "b": (None, "delete"), "c": ("DeleteSnapshot", "delete_snapshot"), "m": (None, "delete"),
     "g": ("DeleteVolumeGroupSnapshot", "delete_group")},
    {"c": (None, "delete"), "g": (None, "delete")},
)
