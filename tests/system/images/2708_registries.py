# SPDX-License-Identifier: Apache-2.0
# takes: 40
"""Debian's docker-registry: passwords from Docker's file or from a helper, and certificates."""
import json
import os
import shutil
import signal

from lib import agent, api, case, helper, images, nomad_server, registry

USER, PASSWORD = "somebody", "Zq81-secret-of-a-registry"
HOST = "server.global.nomad"  # a name in make_certificates(); the registries of 127.0.0.1 itself need no certificate
HELPER = "/usr/local/bin/docker-credential-drover-test"
IMAGE = images.Image([images.tar([images.file("a", b"x")])])
SHELL = images.Image([images.tar(images.busybox("sh", "sleep"))])
WITH = "the user name and password that are configured for this registry may be wrong"
WITHOUT = 'there is no user name and password for this registry in auth of the task or of plugin "docker"'
where = case.directory()


def configured(text="", auths=None, **more):
    """Starts a node whose plugin "docker" has this text in auth { }, and the file of credentials."""
    path = where + "/config.json"
    with open(path, "w", encoding="ascii") as f:
        f.write(auths if isinstance(auths, str) else json.dumps({"auths": auths or {}, **more}))
    os.chmod(path, 0o600)
    return api.Node(agent.config_args('plugin "docker" { config { auth { %s } } }' % (text or 'config = "%s"' % path)))


def pull(node, name):
    def ended():
        found = [x for x in node.ask("/v1/agent/images") if x["Name"] == name]
        return found and found[-1]["Status"] in ("ready", "failed") and found[-1]
    node.do("PUT", "/v1/agent/images", {"Name": name})
    return case.until(ended, 60, "the end of the pull of " + name)


def fails(node, name, part):
    image = pull(node, name)
    case.equal(image["Status"], "failed", "the pull")
    case.contains(image["Error"], part)
    print("        " + image["Error"])


def entry(r, user=USER, password=PASSWORD):
    return {r.address: {"auth": registry.credentials(user, password)}}


def test_without_a_password():
    with registry.Registry() as r, api.Node() as node:
        r.push("team/app", "1", IMAGE)
        case.equal(pull(node, r.name("team/app:1"))["Status"], "ready", "the pull")


def test_the_file_of_credentials():
    with registry.Registry(USER, PASSWORD) as r:
        r.push("team/app", "1", IMAGE)
        with api.Node() as node:
            fails(node, r.name("team/app:1"), "authentication required: " + WITHOUT)
        with configured(auths=entry(r)) as node:
            case.equal(pull(node, r.name("team/app:1"))["Status"], "ready", "the pull")
            fails(node, r.name("team/other:1"), "manifest unknown")
            # The file is read again.
            old = node.processes()["supervisor"]
            with open(where + "/config.json", "w", encoding="ascii") as f:
                json.dump({"auths": entry(r, password="wrong")}, f)
            os.kill(node.pid, signal.SIGHUP)
            node.wait_process("supervisor", old)
            node.wait_ready()
            node.do("DELETE", "/v1/agent/images?name=" + r.name("team/app:1"))
            fails(node, r.name("team/app:1"), "authentication required: " + WITH)
            case.equal(PASSWORD in node.log(), False, "the password in the log")
        with configured(auths="no JSON") as node:
            fails(node, r.name("team/app:1"), "the file that auth.config names is not a JSON object")


def test_the_password_of_a_job():
    """The image's registry gets it, whatever server_address says."""
    def start(**config):
        made = api.job("user", driver="docker")
        made["Job"]["TaskGroups"][0]["Tasks"][0]["Config"] = {"image": r.name("team/shell:1"), "network_mode": "host", "command": "/bin/sleep", "args": ["1000"], **config}
        node.register(made)
    with registry.Registry(USER, PASSWORD) as r, api.Node() as node:
        r.push("team/shell", "1", SHELL)
        start(auth=[{"username": USER, "password": "wrong"}])
        case.until(lambda: any("authentication required: " + WITH in json.dumps(a["TaskStates"]) for a in node.allocs("user")), 60, "a refusal")
        node.purge("user")
        start(auth=[{"username": USER, "password": PASSWORD, "server_address": "https://hub.example.com/v1/"}])
        node.wait_running("user", seconds=60)
        case.equal(PASSWORD in node.log(), False, "the password in the log")
        node.purge("user")


def test_a_helper():
    """A program that is asked for each registry. The one that a file names comes first."""
    helper.mount("tmpfs", "/usr/local/bin", "tmpfs")
    try:
        with registry.Registry(USER, PASSWORD) as r:
            r.push("team/app", "1", IMAGE)
            with open(HELPER, "w", encoding="ascii") as f:
                f.write("#!/bin/sh\nread -r name\n[ \"$1\" = get ] || exit 1\necho '{\"ServerURL\": \"'$name'\", \"Username\": \"%s\", \"Secret\": \"%s\"}'\n" % (USER, PASSWORD))
            os.chmod(HELPER, 0o755)
            for node in (configured('helper = "drover-test"'), configured(credsStore="drover-test", auths={r.address: {}}),
                         configured(credHelpers={r.address: "drover-test"})):
                with node:
                    case.equal(pull(node, r.name("team/app:1"))["Status"], "ready", "the pull")
            with configured('helper = "absent"') as node:
                fails(node, r.name("team/app:1"), "docker-credential-absent")
    finally:
        helper.umount("/usr/local/bin")


def test_certificates():
    """A registry that is not on 127.0.0.1 must have a certificate that this machine or /etc/docker/certs.d trusts."""
    made = nomad_server.make_certificates(where)
    hosts = where + "/hosts"
    with open("/etc/hosts", encoding="utf-8") as f, open(hosts, "w", encoding="utf-8") as g:
        g.write(f.read() + "127.0.0.1 %s\n" % HOST)
    helper.mount(hosts, "/etc/hosts", flags=4096)
    os.makedirs("/etc/docker", exist_ok=True)
    helper.mount("tmpfs", "/etc/docker", "tmpfs")
    try:
        with registry.Registry(USER, PASSWORD, HOST, (*made["server"], made["ca"][0])) as r:
            r.push("team/app", "1", IMAGE)
            with configured(auths=entry(r)) as node:
                fails(node, r.name("team/app:1"), "certificate signed by unknown authority")
            trusted = "/etc/docker/certs.d/%s:%d" % (HOST, r.port)
            os.makedirs(trusted)
            shutil.copy(made["ca"][0], trusted + "/ca.crt")
            with configured(auths=entry(r)) as node:
                case.equal(pull(node, r.name("team/app:1"))["Status"], "ready", "the pull")
    finally:
        helper.umount("/etc/docker")
        helper.umount("/etc/hosts")


if not registry.program() or not shutil.which("skopeo"):
    case.skip("no docker-registry or no skopeo")
case.run(globals())
