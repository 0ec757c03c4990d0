# SPDX-License-Identifier: Apache-2.0
"""A lane of lib/storm.py: a plugin of its own, with which it runs one sequence after the other. After each it checks that nothing is left,
that the volumes can be used and have their size, and that every call had the secrets and mount options of its volume."""
import collections
import contextlib
import os
import queue
import re
import threading
import time
import traceback

from . import api, build_dir, crash, storm_plan

SETTLE_S = 240  # only ends the wait for what hangs: two call timeouts and what follows
REMAINS_S = 30
SHORT_S = 3     # then the plugin is restarted, and drover retries at once

MIB = 1 << 20

# Fails unless /data is the volume's own file system. $1: the volume's id at the plugin; $2: writes or reads.
TASK = """
while read -r _ _ _ _ at rest; do if [ "$at" = /data ]; then found="$rest"; fi; done < /proc/self/mountinfo
me=$NOMAD_ALLOC_ID
case "$found" in
*" - tmpfs $1 "*) ;;
*) echo "bad $me: /data is $found" >> /report/$1; exit 9 ;;
esac
if [ $2 = reads ]; then
    if echo no > /data/reader; then echo "bad $me: a reader can write" >> /report/$1; fi
    echo ok $me >> /report/$1
    exec sleep 1000
fi
echo mark > /data/mark.$me || { echo "bad $me: cannot write" >> /report/$1; exit 9; }
read -r kept < /data/mark.$me
echo ok $me $kept >> /report/$1
while sleep 1; do echo again > /data/mark.$me; done
"""

# Fails unless /data is the volume's own device. $3: its number.
DEVICE_TASK = """
me=$NOMAD_ALLOC_ID
found=$(stat -c %t:%T /data)
[ "$found" = $3 ] || { echo "bad $me: /data is $found, and not $3" >> /report/$1; exit 9; }
if [ $2 = reads ]; then
    if echo no > /data; then echo "bad $me: a reader can write" >> /report/$1; fi
    echo ok $me >> /report/$1
    exec sleep 1000
fi
printf mark | dd of=/data conv=notrunc 2>&1 || { echo "bad $me: cannot write" >> /report/$1; exit 9; }
[ "$(dd if=/data bs=4 count=1)" = mark ] || { echo "bad $me: cannot read what it wrote" >> /report/$1; exit 9; }
echo ok $me >> /report/$1
exec sleep 1000
"""


class Failure(Exception):
    pass


class Lane(threading.Thread):
    def __init__(self, storm, number):
        super().__init__(name="lane %d" % number)
        self.storm, self.node, self.number = storm, storm.node, number
        self.plugin = "p%d" % number
        self.stages, self.attaches, has_devices, self.types = storm_plan.KINDS[number % len(storm_plan.KINDS)]
        self.dir = os.path.join(storm.dir, self.plugin)
        self.rules, self.log, self.attached, self.sizes, self.devices = (
            os.path.join(self.dir, n) for n in ("rules", "log", "attach", "sizes", "devices"))
        os.makedirs(self.sizes)
        os.mkdir(self.devices)
        self.disks = {name: storm.disk() for name in storm_plan.VOLUMES} if has_devices else None
        self.codes, self.done = collections.Counter(), 0
        self.doing, self.plan, self.error = "nothing", None, None

    # --- the plugin ---

    def start_plugin(self):
        self.set_rules("")
        script = 'exec %s "$${CSI_ENDPOINT#unix://}" "$@"' % os.path.join(build_dir(), "tests", "csi_bad")
        if self.disks:
            script = "CSI_BAD_DEVICE=%s %s" % (self.devices, script)
        for kind in self.types:
            words = ["log=" + self.log, "rules=" + self.rules, "mounts=yes", "expects=yes", "sizes=" + self.sizes]
            words += ["attach=" + self.attached] * self.attaches + ["stages=no"] * (not self.stages)
            self.node.register(api.job(self.plugin_job(kind), "/bin/sh", ["-c", script, kind] + words, Resources={"CPU": 5, "MemoryMB": 20},
                                       group={"RestartPolicy": crash.RESTART}, CSIPluginConfig={
                                           "ID": self.plugin, "Type": kind, "MountDir": "/csi", "HealthTimeout": 300 * 10**9}))
        self.until(self.is_healthy, "the plugin to be healthy")

    def plugin_job(self, kind):
        return self.plugin + "-" + kind

    def is_healthy(self):
        answer = self.node.request("GET", "/v1/plugin/csi/" + self.plugin)
        return answer.status == 200 and answer.json["NodesHealthy"] == 1 and (not self.attaches or answer.json["ControllersHealthy"] == 1)

    def set_rules(self, words):
        """The seed makes the text new, so that the plugin counts calls from here on."""
        text = "%s seed-%s" % (words, self.plan.seed if self.plan else 0)
        with open(self.rules + ".new", "w", encoding="utf-8") as f:
            f.write(text.strip())
        os.rename(self.rules + ".new", self.rules)

    def kill_plugin(self, kind):
        """Kills the process of this type: its socket is below the directory of its allocation."""
        ids = [a["ID"] for a in self.node.ask("/v1/job/%s/allocations" % self.plugin_job(kind))]
        self.storm.kill_tasks("%s (%s)" % (self.plugin, kind), lambda argv: len(argv) > 1 and argv[0].endswith("/csi_bad") and
                              any(i in argv[1] for i in ids))

    def count_calls(self):
        """Counts the behaviours that calls met, and forgets the calls and the sizes."""
        with open(self.log, "a+", encoding="utf-8") as f:
            f.seek(0)
            for call, rule in (line.rstrip("\n").split(" rule=", 1) for line in f if " rule=" in line):
                behaviour = re.sub("^at:[0-9]+:", "", rule.split("=", 1)[1])
                self.codes[call.split(" ")[0], behaviour] += 1
            f.truncate(0)
        for directory in (self.sizes, self.devices):
            for name in os.listdir(directory):
                os.unlink(os.path.join(directory, name))

    def wrong_calls(self):
        with open(self.log, "a+", encoding="utf-8") as f:
            f.seek(0)
            return [line.strip() for line in f if line.startswith("bad ")]

    def size_at_plugin(self, name):
        with contextlib.suppress(FileNotFoundError, ValueError), open(os.path.join(self.sizes, name), encoding="ascii") as f:
            return int(f.read())
        return 0

    # --- waiting ---

    def until(self, condition, what, seconds=SETTLE_S):
        end, pause = time.monotonic() + seconds, 0.02
        while not condition():
            if time.monotonic() > end:
                raise Failure("%s: not within %d s" % (what, seconds))
            time.sleep(pause)
            pause = min(0.3, pause * 1.5)

    def soon(self, condition, seconds):
        try:
            self.until(condition, "", seconds)
        except Failure:
            return False
        return True

    # --- steps ---

    def job(self, slot):
        return self.plan.volume("job-" + slot)

    def user(self, slot):
        volume, read_only = storm_plan.SLOTS[slot]
        name = self.plan.volume(volume)
        words = ["-c", DEVICE_TASK if self.disks else TASK, "sh", name, "reads" if read_only else "writes"]
        if self.disks:
            number = os.stat(self.disks[volume]).st_rdev
            words.append("%x:%x" % (os.major(number), os.minor(number)))
        made = api.job(self.job(slot), "/bin/sh", words, driver="exec",
                       Resources={"CPU": 5, "MemoryMB": 10}, KillTimeout=5 * 10**8, VolumeMounts=[
                           {"Volume": "data", "Destination": "/data"}, {"Volume": "report", "Destination": "/report"}])
        made["Job"]["TaskGroups"][0]["Volumes"] = {
            "report": {"Name": "report", "Type": "host", "Source": "report"},
            "data": {"Name": "data", "Type": "csi", "Source": name, "ReadOnly": read_only, "AttachmentMode": self.attachment(),
                     "AccessMode": storm_plan.VOLUMES[volume]}}
        if slot == "m1" and not self.disks:
            made["Job"]["TaskGroups"][0]["Volumes"]["data"]["MountOptions"] = {"MountFlags": ["other-" + name]}
        return made

    def allocs(self, slots):
        """Returns the allocs of these slots' jobs that are not purged."""
        answers = [self.node.request("GET", "/v1/job/%s/allocations" % self.job(slot)) for slot in slots]
        found = [a for answer in answers if answer.status == 200 for a in answer.json]
        self.ids.update(a["ID"] for a in found)
        return found

    def do_step(self, step, what):
        if step == "rules":
            self.set_rules(what)
        elif step == "publish":
            self.node.register(self.user(what))
            self.used.add(what)
        elif step == "unpublish" and what in self.used:
            self.node.request("DELETE", "/v1/job/" + self.job(what))
        elif step == "wait" and what in self.used:
            self.soon(lambda: all(a["ClientStatus"] != "pending" for a in self.allocs([what])), 2)
        elif step == "restart" and what in self.used:
            for alloc in self.allocs([what]):
                self.storm.ask_once("PUT", "/v1/client/allocation/%s/restart" % alloc["ID"], {})
        elif step == "expand":
            self.expand(what)
        elif step == "pause":
            time.sleep(what)
        elif step == "plugin":
            self.kill_plugin(what)
        elif step == "kill" and what == "executor":
            self.storm.kill_executor(self.allocs(self.used))
        elif step == "kill":
            self.storm.kill(what, self.is_healthy)
        elif step == "reboot":
            self.storm.reboot(self.is_healthy)

    def run_sequence(self, plan):
        self.plan, self.used, self.ids, self.silent, self.wanted = plan, set(), set(), set(), {}
        self.say("making volumes")
        self.set_rules("")
        for name in storm_plan.VOLUMES:
            self.make_volume(name)
        for step, what in plan.steps:
            self.say("%s %s" % (step, what))
            self.do_step(step, what)
            time.sleep(0.02)
        self.settle()
        self.check_nothing_left()
        self.say("using the volumes again")
        for slot in ("a0", "m2"):
            self.use_again(slot)
        self.check_sizes()
        self.settle()
        self.check_nothing_left()
        self.say("deleting the volumes")
        for name in storm_plan.VOLUMES:
            self.delete_volume(name)

    # --- volumes: the plugin makes one, and the other is registered ---

    def attachment(self):
        return "block-device" if self.disks else "file-system"

    def volume(self, name, **more):
        """Returns the body of a request. Without Secrets the volume keeps those that it has."""
        made = {"ID": self.plan.volume(name), "Name": self.plan.volume(name), "PluginID": self.plugin, "RequestedCapabilities": [
            {"AccessMode": storm_plan.VOLUMES[name], "AttachmentMode": self.attachment()}], **more}
        if not self.disks:
            made["MountOptions"] = {"FSType": "storm", "MountFlags": ["flag-" + self.plan.volume(name)]}
        return {"Volumes": [made]}

    def path(self, name):
        return "/v1/volume/csi/" + self.plan.volume(name)

    def make_volume(self, name):
        volume = self.plan.volume(name)
        more = {"RequestedCapacityMin": MIB} if name == "one" else {"ExternalID": volume}
        body = self.volume(name, Secrets={"key": "secret of " + volume}, **more)
        path = self.path(name) + ("/create" if name == "one" else "")
        if self.disks:
            os.symlink(self.disks[name], os.path.join(self.devices, volume))
        self.until(lambda: self.node.request("PUT", path, body).status == 200, "volume %s to be made" % name)

    def delete_volume(self, name):
        answer = self.node.request("DELETE", self.path(name) + ("/delete" if name == "one" else ""))
        if answer.status not in (200, 404):  # 404: the answer to an earlier try was lost
            raise Failure("volume %s cannot be removed: %s" % (name, answer.text))
        os.unlink(os.path.join(self.storm.report, self.plan.volume(name)))

    def ask_for_size(self, name):
        return "PUT", self.path(name) + "/create", self.volume(name, RequestedCapacityMin=self.wanted[name])

    def expand(self, name):
        """Does not wait long for the answer, which comes after all mounts have the size."""
        self.wanted[name] = self.wanted.get(name, MIB) + MIB
        self.storm.ask_once(*self.ask_for_size(name), 0.5)

    def check_sizes(self):
        """The volumes are mounted. A request that failed is repeated; if only mounts are to take the size, drover retries by itself."""
        self.say("comparing sizes")
        for name, size in self.wanted.items():
            if self.node.ask(self.path(name))["Capacity"] < size:
                self.until(lambda name=name: self.node.request(*self.ask_for_size(name)).status == 200, "volume %s to be expanded" % name)
        if not self.is_patient() and not self.soon(lambda: not self.other_sizes(), SHORT_S):
            for name in self.wanted:
                self.node.request(*self.ask_for_size(name))
        if not self.soon(lambda: not self.other_sizes(), SETTLE_S):
            raise Failure("sizes after %d s: %s" % (SETTLE_S, "; ".join(self.other_sizes())))

    def other_sizes(self):
        """Returns the volumes that do not have the wanted size for the agent, at the plugin, and on the node."""
        found = []
        for name, size in self.wanted.items():
            volume = self.node.ask(self.path(name))
            sizes = (volume["Capacity"], self.size_at_plugin(volume["ID"]), self.size_at_plugin(volume["ID"] + ".node"))
            if sizes != (size, size, size) or volume.get("NodeExpansion"):
                found.append("volume %s: %s and not %d; due is %s: %s" % (
                    name, sizes, size, volume.get("NodeExpansion"), volume.get("NodeExpansionError")))
        return found

    # --- afterwards ---

    def settle(self):
        """Stops the jobs; the plugin answers well again."""
        self.say("settling")
        self.set_rules("")
        self.silent |= {a["ID"] for a in self.allocs(self.used) if a["ClientStatus"] == "failed" and not self.says_why(a)}
        for slot in self.used:
            self.node.request("DELETE", "/v1/job/%s?purge=true" % self.job(slot))
        if not self.is_patient() and not self.soon(lambda: not self.left(), SHORT_S):
            for kind in self.types:
                self.kill_plugin(kind)
        if not self.soon(lambda: not self.left(), SETTLE_S):
            raise Failure("left after %d s: %s" % (SETTLE_S, "; ".join(self.left())))

    def is_patient(self):
        return not self.plan.hangs and (self.plan.patient or not any(step == "rules" and what for step, what in self.plan.steps))

    def says_why(self, alloc):
        events = [e for state in (alloc["TaskStates"] or {}).values() for e in state["Events"] or []]
        return any(e["Type"] not in ("Received", "Task Setup", "Started") and e["DisplayMessage"] for e in events)

    def use_again(self, slot):
        volume = self.plan.volume(storm_plan.SLOTS[slot][0])
        before = len(self.reports(volume))
        self.node.register(self.user(slot))
        self.used.add(slot)
        self.until(lambda: len(self.reports(volume)) > before, "a task to use volume %s again" % volume)

    def reports(self, volume):
        path = os.path.join(self.storm.report, volume)
        if not os.path.exists(path):
            return []
        with open(path, encoding="utf-8") as f:
            return f.read().splitlines()

    def left(self):
        """Returns what is left of the sequence, by the agent's own account."""
        for i in self.ids:
            if self.node.request("GET", "/v1/allocation/" + i).status == 200:
                return ["allocation " + i]
        found = []
        for name in map(self.plan.volume, storm_plan.VOLUMES):
            claims = self.node.ask("/v1/volume/csi/%s/claims" % name)
            found += ["claim of %s by %s: %s" % (name, c["AllocationID"], c.get("WaitsFor")) for c in claims]
        return found or self.mounts() or self.directories()

    def is_ours(self, path):
        return "/" + self.plan.volume("") in path or any(i in path for i in self.ids)

    def mounts(self):
        with open("/proc/self/mountinfo", encoding="utf-8") as f:
            return ["mount " + line.strip() for line in f if self.is_ours(line.split(" ")[4])]

    def directories(self):
        root = "%s/csi/%s/%s/" % (self.node.data, self.types[0], self.plugin)
        found = [os.path.join(at, d) for part in ("staging", "per-alloc") for at, dirs, files in os.walk(root + part)
                 for d in dirs + files]
        return ["directory " + path for path in found if self.is_ours(path)]

    def check_nothing_left(self):
        """The database is copied between two writes, and the last directory may just be being removed: what stays is wrong."""
        self.say("checking that nothing is left")
        if not self.soon(lambda: not self.remains(), REMAINS_S):
            raise Failure("; ".join(self.remains()) or "something was left for %d s" % REMAINS_S)

    def remains(self):
        """Returns what is left of the sequence, by other accounts than left(), and what its tasks found wrong."""
        found = ["leak %s" % one for one in crash.leaks(self.node) if self.is_ours(one["Name"])]
        found += ["row " + row for row in self.storm.mount_rows() if '"%s' % self.plan.volume("") in row]
        found += ["socket of " + i for i in self.ids if os.path.exists("%s/csi/sock/%s" % (self.node.data, i))]
        found += ["allocation %s failed, and no event says why" % i for i in self.silent]
        found += self.storm.strangers(self.types[0], self.plugin) + self.wrong_calls()
        for name in map(self.plan.volume, storm_plan.VOLUMES):
            found += [name + ": " + line for line in self.reports(name) if not line.startswith("ok ")]
            found += self.still_attached(name)
        return found

    def still_attached(self, name):
        if not self.plan.attaches or not os.path.exists(self.attached):
            return []
        with open(self.attached, encoding="utf-8") as f:
            calls = [line for line in f if line.split(" ")[1] == name]
        return ["the last call about its attachment: " + calls[-1].strip()] if calls and not calls[-1].startswith("detach") else []

    # --- the thread ---

    def say(self, what):
        self.doing, self.since = what, time.monotonic()
        if self.plan:
            self.storm.note(self.plan.seed, what)

    def run(self):
        try:
            self.start_plugin()
        except BaseException:
            self.error = traceback.format_exc()
        while not self.error and not self.storm.ending:
            try:
                seed = self.storm.seeds[self.number % len(storm_plan.KINDS)].get_nowait()
            except queue.Empty:
                break
            plan = storm_plan.Plan(seed)
            self.storm.begin(plan)
            try:
                self.run_sequence(plan)
            except BaseException as e:
                self.storm.fail(self, plan, str(e) if isinstance(e, Failure) else traceback.format_exc())
                for slot in self.used:
                    self.storm.ask_once("DELETE", "/v1/job/%s?purge=true" % self.job(slot), None)
            del self.storm.notes[seed]
            self.count_calls()
            self.done += 1
        self.plan = None
        self.say("ended")
