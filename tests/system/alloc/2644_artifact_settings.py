#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 30
"""Each setting of client { artifact { … } } changes what happens to an artifact, or is named when the agent starts."""
import gzip
import hashlib
import io
import os
import tarfile
import threading

from lib import agent, api, case, s3, web
from lib.fake_api import run_command

LIMITS = """client {
  artifact {
    http_read_timeout = "2s"
    git_timeout       = "3s"
    s3_timeout        = "4s"
    http_max_size     = "1MB"
    decompression_file_count_limit = 3
    decompression_size_limit       = "2MB"
  }
}
"""
NO_EFFECT = """client {
  artifact {
    disable_artifact_inspection = true
    gcs_timeout                 = "1m"
    hg_timeout                  = "1m"
  }
}
"""
CREDENTIALS = "[me]\naws_access_key_id = %s\naws_secret_access_key = %s\n" % (s3.KEY, s3.SECRET)


def packed(entries):
    """entries: {name: bytes, or the target of a link}."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as t:
        for name, what in entries.items():
            info = tarfile.TarInfo(name)
            if isinstance(what, str):
                info.type, info.linkname = tarfile.SYMTYPE, what
            else:
                info.size = len(what)
            t.addfile(info, None if isinstance(what, str) else io.BytesIO(what))
    return gzip.compress(out.getvalue())


def slow(h):
    """Sends a byte now and then, until `go` is set."""
    h.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
    while not go.wait(0.1):
        h.wfile.write(b"x")
        h.wfile.flush()
    h.close_connection = True


def outcome(node, source, **more):
    """Returns "" if the artifact is fetched, else the reason why it cannot be."""
    node.register(api.job("j", "/bin/sleep", ["1000"], Artifacts=[{"GetterSource": source, **more}]))
    case.until(lambda: node.allocs("j") and node.allocs("j")[0]["ClientStatus"] in ("running", "failed"), 60, "a start or its failure")
    alloc = node.allocs("j")[0]
    node.purge("j")
    return "".join(e["DisplayMessage"] for e in alloc["TaskStates"]["t"]["Events"] if e["Type"] == "Failed Artifact Download")


def with_config(text, **env):
    return api.Node([*agent.config_args(text)], env=env)


def test_times():
    with with_config(LIMITS) as node:
        for source, said in (("%s/slow", "the server did not send it in time"), ("git::%s/slow.git", "git did not end in time"),
                             ("s3::%s/bucket/slow", "the server did not send it in time")):
            case.contains(outcome(node, source % server.url), said, source)


def test_sizes_and_numbers():
    with with_config(LIMITS) as node:
        for path, said in (("/fits", ""), ("/big", "the server sends more than the 1000000 bytes that are allowed"),
                           ("/three.tgz", ""), ("/four.tgz", "the archive has more than the 3 entries that are allowed"),
                           ("/bomb.tgz", "unpacked, the archive has more than the 2000000 bytes that are allowed")):
            found = outcome(node, server.url + path)
            case.equal(found.partition('": ')[2], said, path)
    with with_config("") as node:
        for path in ("/big", "/four.tgz", "/bomb.tgz"):
            case.equal(outcome(node, server.url + path), "", path)


def test_variables_and_files_of_the_machine():
    """Without set_environment_variables the fetcher does not know the file; the other two settings let it read it."""
    path = case.write(case.directory() + "/credentials", CREDENTIALS)
    os.chmod(path, 0o644)
    source, options = "s3::%s/tree/dir/a.txt" % bucket.url, {"aws_profile": "me"}
    variable = 'set_environment_variables = "AWS_SHARED_CREDENTIALS_FILE"\n'
    for settings, said in (("", "names no file with credentials"), (variable, "names: Permission denied"), (variable + "disable_filesystem_isolation = true\n", ""),
                           (variable + 'filesystem_isolation_extra_paths = ["f:r:%s"]\n' % path, "")):
        with with_config("client {\n  artifact {\n%s  }\n}\n" % settings, AWS_SHARED_CREDENTIALS_FILE=path) as node:
            found = outcome(node, source, GetterOptions=options)
        if said:
            case.contains(found, said, settings)
        else:
            case.equal(found, "", settings)


def test_files_of_the_machine():
    """Regular files below the named directories that the fetcher's user may read, and nothing else."""
    base = case.directory()
    inside, outside = base + "/in", base + "/in2"
    for path in (inside + "/sub", outside):
        os.makedirs(path)
    os.chmod(base, 0o755)
    for path in (inside + "/a.txt", inside + "/a b", inside + "/sub/secret", outside + "/b.txt"):
        case.write(path, "text of a file")
        os.chmod(path, 0o600 if path.endswith("secret") else 0o644)
    with open(inside + "/sub/a.tgz", "wb") as f:
        f.write(packed({"x": b"1"}))
    os.symlink("../../in2/b.txt", inside + "/sub/link")
    os.mkfifo(inside + "/pipe")
    url = "file://" + inside
    with with_config('client {\n  artifact {\n    file_directories = ["%s"]\n  }\n}\n' % inside) as node:
        digest = "sha256:" + hashlib.sha256(b"text of a file").hexdigest()
        for source, said, more in (
                (inside + "/a.txt", "", {}), (url + "/a%20b", "", {}), (url + "/a.txt", "", {"GetterOptions": {"checksum": digest}}), ("file::" + url + "/sub/a.tgz", "", {}),
                (url + "/a.txt?checksum=md5:" + "0" * 32, "its md5 is", {}), (url + "/a.txt?depth=1", 'a file has no parameter "depth"', {}),
                (url + "/none", "No such file or directory", {}), (url + "/sub/secret", "as the fetcher's user: Permission denied", {}),
                (url + "/sub/link", "leaves %s or has a symbolic link" % inside, {}), (url + "/pipe", "is not a regular file", {}),
                (url + "/sub", "is not a regular file", {}), (url + "2/b.txt", "files of this machine cannot be artifacts", {}),
                (url + "/../in2/b.txt", "files of this machine cannot be artifacts", {}),
                (url + "/%2e%2e/in2/b.txt", "leaves %s or has a symbolic link" % inside, {}), (inside, "files of this machine cannot be artifacts", {})):
            found = outcome(node, source, **more)
            if said:
                case.contains(found, said, source)
            else:
                case.equal(found, "", source)
        node.register(api.job("j", "/bin/sleep", ["1000"], Artifacts=[{"GetterSource": inside + "/a.txt"}, {"GetterSource": url + "/sub/a.tgz"}]))
        case.until(lambda: node.allocs("j") and node.allocs("j")[0]["ClientStatus"] == "running", 60, "a start")
        local = "%s/alloc/%s/t/local" % (node.data, node.allocs("j")[0]["ID"])
        for name, text in (("a.txt", "text of a file"), ("x", "1")):
            with open(local + "/" + name, encoding="ascii") as f:
                case.equal(f.read(), text)


def test_links_are_refused_without_landlock():
    with with_config("client {\n  artifact {\n    disable_filesystem_isolation = true\n  }\n}\n") as node:
        case.contains(outcome(node, server.url + "/out.tgz"), 'the link "l" leads out of the artifact')


def test_settings_without_an_effect_are_named():
    path = case.write(case.directory() + "/a.hcl", NO_EFFECT)
    said = run_command(["config", "validate", path]).err
    for line, text in ((3, "'disable_artifact_inspection' has no effect: what an artifact contains is always inspected"),
                       (4, "'gcs_timeout' has no effect: artifacts of gcs:: are refused"),
                       (5, "'hg_timeout' has no effect: artifacts of hg:: are refused")):
        case.contains(said, "%s:%d:" % (path, line))
        case.contains(said, text)
    with with_config(NO_EFFECT) as node:
        case.contains(node.log(), "artifacts of gcs:: are refused")
        case.contains(outcome(node, server.url + "/out.tgz"), 'the link "l" leads out of the artifact')
        for getter in ("gcs", "hg"):
            case.contains(outcome(node, getter + "::" + server.url + "/fits"), getter + " is not supported: only http, https, git, s3 and file are")


go = threading.Event()
FILES = {"/slow": slow, "/slow.git/info/refs": slow, "/bucket/slow": slow, "/fits": b"x" * 1000000, "/big": b"x" * 1000001,
         "/three.tgz": packed({str(i): b"1" for i in range(3)}), "/four.tgz": packed({str(i): b"1" for i in range(4)}),
         "/bomb.tgz": packed({"zeros": bytes(3000000)}), "/out.tgz": packed({"l": "../../../etc/passwd"})}
with web.Server(FILES) as server, s3.Server({"dir/a.txt": b"a"}) as bucket:
    try:
        case.run(globals())
    finally:
        go.set()
