# SPDX-License-Identifier: Apache-2.0
"""What one random sequence does, from its seed alone: the kind of the plugin, its rules, the steps, and how long each waits.

    plan = storm_plan.Plan(17)
    print(plan.kind, plan.steps)
"""
import collections
import random

# A seed's kind is its remainder: whether the plugin stages volumes, whether its controller attaches them, whether they are block devices (which
# need loop devices), and the types of its jobs.
Kind = collections.namedtuple("Kind", "stages attaches devices types")
KINDS = (Kind(True, False, False, ("monolith",)), Kind(False, False, False, ("monolith",)), Kind(True, True, False, ("monolith",)),
         Kind(False, True, False, ("monolith",)), Kind(True, True, False, ("node", "controller")), Kind(True, True, True, ("monolith",)))
PROCESSES = ("supervisor", "csi-helper", "mount-helper", "exec-helper", "file-helper", "launcher", "executor")

# Who uses what: a volume with one writer and one that many share, also read-only. A slot is a job.
VOLUMES = {"one": "single-node-writer", "many": "multi-node-multi-writer"}
SLOTS = {"a0": ("one", False), "a1": ("one", False), "m0": ("many", False), "m1": ("many", False), "m2": ("many", True)}

STEPS = {"publish": 50, "unpublish": 30, "wait": 30, "rules": 20, "pause": 20, "kill": 15, "plugin": 10, "restart": 8, "expand": 25,
         "reboot": 0.6}

BEHAVIOURS = {"status": 20, "once": 10, "again": 5, "lost": 12, "slow": 10, "late": 12, "lies": 8, "die": 8, "drop": 5, "hang": 4, "garbage": 3,
              "nothing": 3, "ok": 4}


class Plan:
    """.kind, .steps: [(step, argument)], .patient: the plugin is not restarted at the end, so that drover's own retries must do."""

    def __init__(self, seed):
        self.seed, self.choice = seed, random.Random(seed)
        self.kind = seed % len(KINDS)
        self.stages, self.attaches, _, self.types = KINDS[self.kind]
        self.hangs = False
        self.patient = self.choice.random() < 0.5
        self.steps = [("rules", self.rules())] if self.choice.random() < 0.8 else []
        self.steps.append(("publish", self.choice.choice(list(SLOTS))))
        for _ in range(self.choice.randint(2, 7)):
            step = self.choice.choices(list(STEPS), list(STEPS.values()))[0]
            self.steps.append((step, self.argument(step)))

    def volume(self, name):
        return "s%d-%s" % (self.seed, name)

    def argument(self, step):
        if step in ("publish", "unpublish", "wait", "restart"):
            return self.choice.choice(list(SLOTS))
        if step == "rules":
            return self.rules()
        if step == "expand":
            return self.choice.choice(list(VOLUMES))
        if step == "kill":
            return self.choice.choice(PROCESSES)
        if step == "plugin":
            return self.choice.choice(self.types)
        return round(self.choice.uniform(0, 0.5), 3) if step == "pause" else None

    def rules(self):
        """Returns up to four rules of csi_bad; the first that matches a call applies."""
        methods = ["NodePublishVolume", "NodeUnpublishVolume"] * 2 + ["ControllerExpandVolume", "NodeExpandVolume"]
        methods += ["NodeStageVolume", "NodeUnstageVolume"] * self.stages
        methods += ["ControllerPublishVolume", "ControllerUnpublishVolume"] * self.attaches
        return " ".join(self.rule(self.choice.choice(methods)) for _ in range(self.choice.randint(0, 4)))

    def rule(self, method):
        about = self.choice.choice(("", "", "/" + self.volume("one"), "/" + self.volume("many")))
        call = "at:%d:" % self.choice.randint(1, 3) if self.choice.random() < 0.4 else ""
        behaviour = self.behaviour()
        if behaviour == "lies" and "Expand" in method:  # nobody can notice that
            behaviour = "ok"
        self.hangs = self.hangs or behaviour == "hang"
        return "%s%s=%s%s" % (method, about, call, behaviour)

    def behaviour(self):
        kind = self.choice.choices(list(BEHAVIOURS), list(BEHAVIOURS.values()))[0]
        if kind in ("status", "once", "again", "lost"):
            return "%s:%d" % (kind, self.choice.randint(1, 16))
        if kind in ("slow", "late"):
            # Most end soon; a few last longer than drover waits for a mount that may still appear.
            return "%s:%d" % (kind, self.choice.choice((20, 100, 300, 700, 1500, 5000)))
        return kind
