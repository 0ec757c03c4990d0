#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# timeout: 300
"""What users see of a plugin that does not answer yet, of one that ends, and of the mounts of its volumes."""
import os

from lib import api, binary, build_dir, case, volumes

SECOND = 10**9
SERVE = 'exec %s "${CSI_ENDPOINT#unix://}" "$@"'
# It leaves a socket on which nobody listens.
STALE = "import os, socket, time; s = socket.socket(socket.AF_UNIX); s.bind(os.environ['CSI_ENDPOINT'][7:]); s.close(); time.sleep(1000)"


def plugin(name, command, args, timeout=120):
    node.register(api.job("plugin-" + name, command, args, CSIPluginConfig={
        "ID": name, "Type": "monolith", "MountDir": "/csi", "HealthTimeout": timeout * SECOND}))


def bad(name, *rules):
    script = SERVE.replace("${", "$${") % os.path.join(build_dir(), "tests", "csi_bad")
    plugin(name, "/bin/sh", ["-c", script, "csi_bad", *rules])


def events(name):
    return node.events(node.allocs("plugin-" + name)[0]["ID"])


def storage_events(subsystem):
    return [e for e in node.ask("/v1/node/" + node.ask("/v1/nodes")[0]["ID"])["Events"] or [] if e["Subsystem"] == subsystem]


def test_a_plugin_without_a_socket_says_why_it_is_not_ready():
    cases = {
        "never": ("/bin/sleep", ["1000"], "no such file or directory: the plugin does not listen at its CSI_ENDPOINT"),
        "elsewhere": (os.path.join(build_dir(), "tests", "csi_bad"), [base + "/other.sock"], "no such file or directory"),
        "stale": ("/usr/bin/python3", ["-c", STALE], "csi.sock is stale: nobody listens on it"),
    }
    for name, (command, args, _) in cases.items():
        plugin(name, command, args)
    bad("noise", "connection=garbage")
    bad("closes", "connection=dead")
    cases["noise"] = cases["closes"] = (None, None, "it takes connections, but no gRPC server answers")
    for name, (_, _, part) in cases.items():
        case.until(lambda: "Plugin is not ready" in events(name), 30, "the event of " + name)
        line = [text for text in events(name).splitlines() if text.startswith("Plugin is not ready: ")][0]
        print("    %-10s %s" % (name, line))
        case.contains(line, "failed to open grpc connection to addr %s/csi/sock/%s/csi.sock: " % (
            node.data, node.allocs("plugin-" + name)[0]["ID"]))
        case.contains(line, part)
        case.contains(line, "(health_timeout is 2m0s)")
        info, = node.ask("/v1/plugin/csi/" + name)["Nodes"].values()
        case.equal((info["Healthy"], part in info["HealthDescription"]), (False, True), info["HealthDescription"])
        case.contains(node.drover("alloc", "why", node.allocs("plugin-" + name)[0]["ID"]).out, part)
        case.contains(" ".join(node.drover("plugin", "status", name).out.split()), part)
        node.purge("plugin-" + name)


def test_each_new_cause_is_an_event():
    """The plugin makes its socket only when the file exists, and then does not speak gRPC."""
    script = "until [ -e %s/go ]; do sleep 0.1; done; " % base + SERVE.replace("${", "$${") % os.path.join(build_dir(), "tests", "csi_bad")
    plugin("changes", "/bin/sh", ["-c", script, "csi_bad", "connection=dead"])
    case.until(lambda: "no such file or directory" in events("changes"), 30, "the first cause")
    open(base + "/go", "w", encoding="ascii").close()
    case.until(lambda: "no gRPC server answers" in events("changes"), 30, "the second cause")
    case.equal(events("changes").count("Plugin is not ready"), 2, events("changes"))
    node.purge("plugin-changes")


def test_mounts_and_plugins_are_events_of_the_node():
    node.start_plugin()
    node.create("seen")
    node.register(volumes.job("user", "seen", "sleep 1000"))
    alloc = node.wait_running("user", seconds=30)[0]["ID"]
    node.purge("user")
    node.purge("csi-local")
    case.until(lambda: "ended" in str(storage_events("CSI")), 30, "the end of the plugin")
    case.equal([(e["Message"], e["Details"]) for e in storage_events("Storage")], [
        (word + " volume", {"volume_id": "seen", "alloc_id": alloc, "success": "true"}) for word in ("Mount", "Unmount")])
    case.equal([e["Message"] for e in storage_events("CSI")], [
        "CSI plugin local became healthy", "CSI plugin local became unhealthy: the plugin's task has ended"])
    case.equal(storage_events("CSI")[0]["Details"], {"plugin": "local", "type": "monolith"})
    text = node.drover("node", "status", node.ask("/v1/nodes")[0]["ID"]).out
    case.contains(text, "Mount volume")
    case.contains(text, "CSI plugin local became healthy")


base = case.directory()
with volumes.Node() as node:
    case.run(globals())
