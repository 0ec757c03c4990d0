# SPDX-License-Identifier: Apache-2.0
"""The volume commands with a real agent and a real plugin: writers, refusals, and a plugin that is restarted."""
import json
import os
import re
import shutil

from lib import ROOT, agent, binary, case
from lib.fake_api import run_command

EXAMPLES = ROOT + "/contrib/examples/"


class Node(agent.Agent):
    """An agent that runs the example's plugin job, with the plugin's binary in a host volume."""

    def __init__(self):
        super().__init__(start=False)
        store = self.base + "/store"
        os.mkdir(store)
        os.chmod(store, 0o777)
        shutil.copy(binary("csi-local"), store)
        with open(self.base + "/agent.hcl", "w", encoding="utf-8") as f:
            f.write('client { host_volume "csi-local" { path = "%s" } }\n' % store)
        self.args = ["-config", self.base + "/agent.hcl"]
        self.start()

    def drover(self, *words, code=0, stdin=None):
        r = run_command(words, env={"DROVER_ADDR": "unix://" + self.socket_path}, stdin=stdin)
        case.equal(r.code, code, "drover %s: %s%s" % (" ".join(words), r.out, r.err))
        return r

    def run(self, name, replace=(), code=0):
        with open(EXAMPLES + name, encoding="utf-8") as f:
            text = f.read()
        for old, new in replace:
            text = text.replace(old, new)
        return self.drover("job", "run", "-", code=code, stdin=text.encode())

    def start_plugin(self):
        self.run("plugin.json", [("/usr/libexec/drover/", "/store/")])
        case.until(lambda: "local" in self.drover("plugin", "status").out and json.loads(
            self.drover("plugin", "status", "-json", "local").out)["NodesHealthy"] == 1, 20, "the plugin to be healthy")

    def running(self, job):
        found = json.loads(self.drover("alloc", "status", "-json").out)
        return [a["ID"] for a in found if a["JobID"] == job and a["ClientStatus"] == "running"]


def test_a_volume_has_only_one_writer():
    with Node() as node:
        node.wait_ready()
        case.contains(node.drover("volume", "create", EXAMPLES + "volume.json", code=1).err, "local")
        node.start_plugin()
        case.contains(node.drover("volume", "create", EXAMPLES + "volume.json").out, 'Volume "demo" is created')
        node.run("writer.json")
        writer = node.running("writer")[0]
        # The second writer is refused with the reason, and never mounts the volume.
        r = node.run("writer.json", [('"writer"', '"writer2"')], code=2)
        case.contains(r.out, "volume max claims reached")
        case.contains(r.out, writer)
        case.equal(node.running("writer2"), [])
        case.contains(node.drover("volume", "delete", "demo", code=1).err, "in use")
        case.contains(node.drover("volume", "status", "de").out, writer[:8] + "    write")
        case.contains(node.drover("status").out.splitlines()[0], "writer2 is pending")
        node.drover("job", "stop", "-purge", "writer2")
        node.drover("job", "stop", "writer")
        case.until(lambda: json.loads(node.drover("volume", "status", "-json", "demo").out)["WriteAllocs"] in ({}, None), 10,
                   "the claim to be released")
        case.contains(node.drover("volume", "delete", "demo").out, "is deleted")
        case.equal(node.drover("volume", "status").out, "No volumes\n")
        case.equal(node.drover("leaks").out, "no leaks\n")


def rows(text):
    """Returns the cells of the table with the volumes of allocations."""
    lines = iter(text.splitlines())
    case.equal("CSI Volumes" in lines, True, text)
    return [[cell for cell in re.split("  +", line.strip())] for line in list(iter(lambda: next(lines, ""), ""))[1:]]


def test_volumes_of_allocations_are_shown_with_their_mount_options():
    """The mount flags are never shown. Which options are shown: 1501."""
    with Node() as node:
        node.wait_ready()
        node.start_plugin()
        with open(EXAMPLES + "volume.json", encoding="utf-8") as f:
            volume = json.load(f)
        for flags, more, options in ((["noatime"], "", "flags: [REDACTED]"), ([], "", "-"),
                                     ([], ', "MountOptions": {"MountFlags": ["noatime"]}', "flags: [REDACTED]")):
            volume["mount_options"] = {"mount_flags": flags}
            node.drover("volume", "create", "-", stdin=json.dumps(volume).encode())
            case.equal("Mount Options        = flags: [REDACTED]\n" in node.drover("volume", "status", "demo").out, bool(flags))
            node.run("writer.json", [('"Source": "demo",', '"Source": "demo"%s,' % more)])
            writer, = node.running("writer")
            known = json.loads(node.drover("volume", "status", "-json", "demo").out)
            wanted = [writer[:8], "data", "demo", "local", "%s %s" % (known["Provider"], known["ProviderVersion"]), "true", "false",
                      options]
            here = json.loads(node.drover("node", "status", "-json").out)[0]["ID"]
            for words in (("volume", "status", "demo"), ("node", "status", here)):
                case.equal(rows(node.drover(*words).out), [wanted], " ".join(words))
            found = node.drover("alloc", "status", "-verbose", writer).out
            case.equal(rows(found), [[writer] + wanted[1:]], "alloc status")
            case.equal("noatime" in found, False, "flags")
            node.drover("job", "stop", "-purge", "writer")
            case.until(lambda: not json.loads(node.drover("volume", "status", "-json", "demo").out)["WriteAllocs"], 60,
                       "the claim to be released")
            case.equal("CSI Volumes" in node.drover("node", "status", here).out, False, "volumes of an allocation without volumes")
            node.drover("volume", "delete", "demo")


def test_a_volume_cannot_be_used_while_its_plugin_is_stopped():
    with Node() as node:
        node.wait_ready()
        node.start_plugin()
        node.drover("volume", "create", EXAMPLES + "volume.json")
        node.drover("job", "stop", "csi-local")
        case.equal(node.drover("plugin", "status").out, "No plugins\n")
        case.contains(node.drover("status").out, "Problem: volume demo cannot be used")
        r = node.run("writer.json", code=2)
        case.contains(r.out, "local")
        case.equal(node.running("writer"), [])
        # It runs as soon as the plugin is back, without another registration.
        node.start_plugin()
        case.until(lambda: node.running("writer"), 15, "the writer to run")
        node.drover("node", "drain", "-yes")
        case.equal(node.drover("leaks").out, "no leaks\n")


case.run(globals())
