#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# timeout: 300
# takes: 44
"""A CSI plugin that is not a task: the agent's configuration has its socket."""
import os
import signal
import socket as socket_module
import subprocess

from lib import api, binary, case, mnt, volumes

CONFIG = 'csi_plugin "outside" {\n  type = "monolith"\n  socket = "%s"\n  health_timeout = "2s"\n}'
running = []


def start_plugin():
    running.append(subprocess.Popen([binary("csi-local"), "-root", store], env={"CSI_ENDPOINT": "unix://" + socket}))


def stop_plugin():
    process = running.pop()
    process.terminate()
    process.wait()


def plugin():
    answer = node.request("GET", "/v1/plugin/csi/outside")
    return list(answer.json["Nodes"].values())[0] if answer.status == 200 else None


def wait_healthy():
    case.until(lambda: plugin() and plugin()["Healthy"], 20, "the plugin to be healthy")


def create(name):
    volume = {"ID": name, "Name": name, "PluginID": "outside", "RequestedCapabilities": [
        {"AccessMode": "single-node-writer", "AttachmentMode": "file-system"}]}
    node.do("PUT", "/v1/volume/csi/%s/create" % name, {"Volumes": [volume]})


def test_a_plugin_that_does_not_run_yet_is_shown_with_the_cause():
    case.until(lambda: plugin() and socket in plugin()["HealthDescription"], 30, "the cause")
    case.equal(plugin()["Healthy"], False)
    case.contains(plugin()["HealthDescription"], "no such file or directory: the plugin does not run")
    node.wait_log("CSI plugin outside of the configuration does not answer: start it, or correct socket")


def test_its_volumes_are_used():
    start_plugin()
    wait_healthy()
    case.equal((plugin()["AllocID"], node.ask("/v1/plugin/csi/outside")["Allocations"]), ("", []))
    create("data")
    node.register(volumes.job("user", "data", "echo kept > /data/x; cat /data/x; sleep 1000"))
    alloc = node.wait_running("user", seconds=30)[0]
    case.until(lambda: node.logs(alloc) == b"kept\n", 10, "the task to use its volume")
    case.equal(node.ask("/v1/agent/leaks"), [])


def test_the_volume_is_unmounted_by_its_next_process():
    """The plugin is restarted, with the agent's help of nobody, while a task uses the volume."""
    stop_plugin()
    alloc = node.allocs("user")[0]["ID"]
    node.do("DELETE", "/v1/job/user")
    case.until(lambda: node.allocs("user")[0]["TaskStates"]["t"]["State"] == "dead", 20, "the end of its task")
    case.equal(len(node.published("data")), 1)
    start_plugin()
    case.until(lambda: not node.published("data"), 25, "the volume to be unmounted")
    wait_healthy()
    node.do("DELETE", "/v1/job/user?purge=true")
    case.until(lambda: alloc not in str(node.ask("/v1/volume/csi/data")["Allocations"]), 20, "its claim to be released")


def test_the_agent_follows_it_after_a_restart():
    node.kill("supervisor")
    node.wait_ready()
    node.register(volumes.job("user", "data", "cat /data/x; sleep 1000"))
    alloc = node.wait_running("user", seconds=60)[0]
    case.until(lambda: node.logs(alloc) == b"kept\n", 10, "the data")
    node.purge("user")


def wait_refused(text):
    case.until(lambda: text in plugin()["HealthDescription"], 40, text)
    case.equal(plugin()["Healthy"], False)


def test_a_socket_of_another_user_or_behind_a_link_is_refused():
    stop_plugin()
    other = base + "/other"
    with socket_module.socket(socket_module.AF_UNIX) as listener:
        listener.bind(other)
        listener.listen()
        os.chown(other, 1000, 1000)
        os.rename(other, socket)
        wait_refused("run/csi.sock is not a socket of root")
    os.unlink(socket)
    os.symlink(other, socket)
    wait_refused("run/csi.sock: a symbolic link leads to it")
    os.unlink(socket)
    start_plugin()
    wait_healthy()


def status():
    """Returns that of the plugin; 0 while a reload replaces the supervisor, which ends its connections."""
    try:
        return node.request("GET", "/v1/plugin/csi/outside").status
    except OSError:
        return 0


def test_a_reload_removes_and_adds_it():
    path = node.top + "/agent.hcl"
    with open(path, encoding="utf-8") as f:
        text = f.read()
    with open(path, "w", encoding="utf-8") as f:
        f.write(text.replace(CONFIG % socket, ""))
    os.kill(node.pid, signal.SIGHUP)
    case.until(lambda: status() == 404, 30, "the plugin to be removed")
    root = node.data + "/csi/monolith/outside"
    case.until(lambda: not os.path.exists(root), 30, "its root to be removed")
    case.equal(mnt.mounts_below(root), [])
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.kill(node.pid, signal.SIGHUP)
    case.until(lambda: status() == 200, 30, "the plugin to be added")
    wait_healthy()
    node.do("DELETE", "/v1/volume/csi/data/delete")


base = case.directory()
os.mkdir(base + "/run")
socket, store = base + "/run/csi.sock", base + "/store"
os.mkdir(store)
with volumes.Node(client=CONFIG % socket) as node:
    try:
        case.run(globals())
    finally:
        while running:
            stop_plugin()
