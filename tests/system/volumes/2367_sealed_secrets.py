#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 40
"""Secrets of volumes are sealed in state.db: rows of an earlier version too, at the first start. Without their key, or in another
row, they do not open; then no call is made without them, and all else goes on."""
import contextlib
import json
import os
import shutil
import sqlite3

from lib import api, build_dir, case, csi, state, volumes

SECRET, FLAG, CONTEXT = "s3cr3t-of-the-volume", "password=fl4g-of-the-volume", "c0nt3xt-of-the-attachment"
VOLUME = {"PluginID": "p", "RequestedCapabilities": [{"AccessMode": "multi-node-multi-writer", "AttachmentMode": "file-system"}]}
SECRETS = {"key": SECRET, "": "empty key", "empty": "", "lines": "a\nb"}
LOST = "its secrets cannot be read, because state/seal.key is not the key they were encrypted with"


def register(name, **more):
    return node.do("PUT", "/v1/volume/csi/" + name, {"Volumes": [dict(VOLUME, ID=name, Name=name, ExternalID=name, **more)]})


def job(name, volume):
    made = volumes.job(name, volume, "sleep 1000")
    made["Job"]["TaskGroups"][0]["Volumes"]["data"]["AccessMode"] = "multi-node-multi-writer"
    return made


def use(volume, name="user"):
    node.register(job(name, volume))
    node.wait_running(name)


def release(volume, name="user"):
    node.purge(name)
    case.until(lambda: node.ask("/v1/volume/csi/%s/claims" % volume) == [], 60, "the claims to be released")


def calls(method):
    return csi.calls(base + "/calls", method)


def wait_healthy():
    case.until(lambda: node.request("GET", "/v1/plugin/csi/p").status == 200 and
               node.ask("/v1/plugin/csi/p")["ControllersHealthy"] == 1, 30, "the plugin to be healthy")


@contextlib.contextmanager
def stopped():
    """Stops the whole agent, but no task, and starts it again."""
    node.kill_launcher()
    yield
    node.start()
    node.wait_ready()
    wait_healthy()


def write_sql(*statements):
    """Changes the database in a child that does not close it, so that its writes stay in the log, as after SIGKILL."""
    pid = os.fork()
    if pid == 0:
        try:
            db = sqlite3.connect(node.data + "/state/state.db", isolation_level=None)
            db.execute("PRAGMA wal_autocheckpoint = 0")
            db.execute("PRAGMA secure_delete = OFF")
            for statement in statements:
                db.execute(*statement)
            os._exit(0)
        finally:
            os._exit(1)
    case.equal(os.waitpid(pid, 0)[1], 0, "the child's status")
    os.unlink(node.data + "/state/state.db-shm")


def test_what_is_stored_is_sealed():
    register("a", Secrets=SECRETS, MountOptions={"MountFlags": [FLAG, "noatime"]}, Context={"device": CONTEXT})
    key = node.data + "/state/seal.key"
    case.equal((os.stat(key).st_mode & 0o7777, os.stat(key).st_size, os.stat(key).st_uid), (0o600, 64, os.stat(node.data + "/state").st_uid))
    use("a")
    case.equal(csi.entries(calls("NodePublishVolume")[-1]["publish_context"]), {"device": CONTEXT})
    case.equal(state.files_with(node, SECRET, FLAG), [])
    row = state.volume(node, "a")
    case.equal((row["Secrets"], row["MountOptions"]["MountFlags"]), (SECRETS, [FLAG, "noatime"]))
    (_, _, contexts), = state.query(node, "SELECT json, secrets, contexts FROM volume WHERE id = 'a'")
    case.contains(state.unseal(node, "volume contexts of default/a", contexts).decode(), "\0device\0%s\0" % CONTEXT)


def test_it_is_read_again_after_a_crash():
    # The context of the attachment too: the second user gets it without another attachment.
    before = len(calls("ControllerPublishVolume"))
    node.replace_supervisor()
    use("a", "second")
    sent = calls("NodePublishVolume")[-1]
    case.equal(csi.entries(sent["secrets"]), SECRETS)
    case.equal(csi.entries(sent["publish_context"]), {"device": CONTEXT})
    case.equal(sent["volume_capability"]["mount"]["mount_flags"], [FLAG, "noatime"])
    case.equal(len(calls("ControllerPublishVolume")), before, "attachments")
    node.purge("second")


def test_rows_of_an_earlier_version_are_sealed():
    """Schema 4 had all in the column json."""
    row = state.volume(node, "a")
    claims = {alloc: dict(claim, PublishContext={"device": CONTEXT}) for alloc, claim in row["WriteClaims"].items()}
    with stopped():
        write_sql(("UPDATE volume SET json = ?", [json.dumps(dict(row, WriteClaims=claims))]),
                  ("ALTER TABLE volume DROP COLUMN secrets",), ("ALTER TABLE volume DROP COLUMN contexts",),
                  *[("DROP TABLE " + table,) for table in ("variable", "signing_key", "acl_policy", "acl_role", "acl_token", "image")],
                  *[("ALTER TABLE run DROP COLUMN " + column,) for column in ("id_range", "layers")],
                  ("ALTER TABLE alloc DROP COLUMN tokens",), ("PRAGMA user_version = 4",))
        case.equal({text for _, text in state.files_with(node, SECRET, FLAG, '"PublishContext"')}, {SECRET, FLAG, '"PublishContext"'})
    case.until(lambda: state.files_with(node, SECRET, FLAG, '"PublishContext"') == [], 20, "no secret in a file")
    case.equal(state.volume(node, "a")["Secrets"], SECRETS)
    case.until(lambda: state.query(node, "SELECT 1 FROM meta WHERE key = 'log_has_secrets'") == [], 20, "the end of the upgrade")
    release("a")
    case.equal(csi.entries(calls("ControllerUnpublishVolume")[-1]["secrets"]), SECRETS)


def test_without_their_key_nothing_is_called_and_all_else_goes_on():
    register("plain")
    use("a")
    kept, key = base + "/kept", node.data + "/state/seal.key"
    lines = len(node.log())
    with stopped():
        shutil.move(key, kept)
    case.contains(node.log()[lines:], "the secrets of these volumes cannot be read, because state/seal.key is not the key they were "
                  "encrypted with: a; bring that file back and restart the agent, or register them again with their secrets")
    case.equal((node.ask("/v1/volume/csi/a").get("SecretsLost"), node.ask("/v1/volume/csi/plain").get("SecretsLost")), (True, None))
    case.equal([a["ClientStatus"] for a in node.allocs("user")], ["running"])
    use("plain", "other")
    release("plain", "other")
    before = len(calls("ControllerPublishVolume") + calls("NodePublishVolume") + calls("ControllerUnpublishVolume"))
    node.register(job("second", "a"))
    case.until(lambda: [a for a in node.allocs("second") if a["ClientStatus"] == "failed"], 60, "the alloc to fail")
    case.contains(node.events(node.allocs("second")[0]["ID"]), LOST)
    node.refused(500, LOST, "PUT", "/v1/volumes/snapshot", {"Snapshots": [{"SourceVolumeID": "a", "Name": "s"}]})
    node.purge("second")
    case.equal(len(calls("ControllerPublishVolume") + calls("NodePublishVolume") + calls("ControllerUnpublishVolume")), before)
    # The row still has them: the file that is brought back opens them.
    with stopped():
        shutil.copy2(kept, key)
        os.chown(key, os.stat(node.data + "/state").st_uid, -1)
    case.equal(node.ask("/v1/volume/csi/a").get("SecretsLost"), None)
    release("a")


def test_registering_it_again_is_enough():
    with stopped():
        with open(node.data + "/state/seal.key", "r+b") as f:
            f.write(b"another")
    case.equal(node.ask("/v1/volume/csi/a")["SecretsLost"], True)
    node.refused(500, LOST, "PUT", "/v1/volume/csi/a", {"Volumes": [node.ask("/v1/volume/csi/a")]})
    register("a", Secrets=SECRETS, MountOptions={"MountFlags": [FLAG]}, Context={"device": CONTEXT})
    case.equal(node.ask("/v1/volume/csi/a").get("SecretsLost"), None)
    use("a")
    case.equal(csi.entries(calls("NodePublishVolume")[-1]["secrets"]), SECRETS)
    release("a")


def test_a_volume_that_had_only_mount_flags_needs_no_secrets():
    register("flags", MountOptions={"MountFlags": [FLAG]})
    with stopped():
        with open(node.data + "/state/seal.key", "r+b") as f:
            f.write(b"one more")
    case.equal(node.ask("/v1/volume/csi/flags")["SecretsLost"], True)
    lost = LOST.replace("its secrets", "its mount flags")
    node.refused(500, lost, "PUT", "/v1/volume/csi/flags", {"Volumes": [node.ask("/v1/volume/csi/flags")]})
    node.refused(500, lost, "PUT", "/v1/volume/csi/flags", {"Volumes": [dict(VOLUME, ID="flags", Name="flags", ExternalID="flags")]})
    register("flags", MountOptions={"MountFlags": ["noatime"]})
    case.equal(node.ask("/v1/volume/csi/flags").get("SecretsLost"), None)
    case.equal(state.volume(node, "flags")["MountOptions"]["MountFlags"], ["noatime"])
    node.do("DELETE", "/v1/volume/csi/flags")
    register("a", Secrets=SECRETS)


def test_secrets_open_in_their_own_row_only():
    register("b", Secrets={"key": "of b"})
    with stopped():
        write_sql(("UPDATE volume SET secrets = (SELECT secrets FROM volume WHERE id = 'b') WHERE id = 'a'",))
    case.equal((node.ask("/v1/volume/csi/a").get("SecretsLost"), node.ask("/v1/volume/csi/b").get("SecretsLost")), (True, None))


def test_a_key_that_is_no_key_is_kept_beside_the_new_one():
    lines = len(node.log())
    with stopped():
        with open(node.data + "/state/seal.key", "w", encoding="ascii") as f:
            f.write("not a key")
    case.contains(node.log()[lines:], "seal.key is not a key of drover, which has 64 bytes")
    case.contains(node.log()[lines:], "encrypted with: a, b; bring that file back")
    register("b", Secrets={"key": "again"})
    with open(node.data + "/state/seal.key.old", encoding="ascii") as f:
        case.equal(f.read(), "not a key")
    case.equal(state.volume(node, "b")["Secrets"], {"key": "again"})


def test_no_leaks_are_left():
    for name in ("a", "b", "plain"):
        node.do("DELETE", "/v1/volume/csi/" + name)
    node.purge("plugin-p")
    case.until(lambda: node.ask("/v1/agent/leaks") == [], 20, "no leaks")


base = case.directory()
os.chmod(base, 0o777)
with volumes.Node() as node:
    script = 'exec %s "$${CSI_ENDPOINT#unix://}" "$@"' % os.path.join(build_dir(), "tests", "csi_bad")
    node.register(api.job("plugin-p", "/bin/sh", ["-c", script, "csi_bad", "attach=%s/attached" % base, "context=volume", "mounts=yes",
                                                  "requests=%s/calls" % base], CSIPluginConfig={"ID": "p", "Type": "monolith", "MountDir": "/csi"}))
    wait_healthy()
    case.run(globals())
