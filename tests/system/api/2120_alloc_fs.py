# SPDX-License-Identifier: Apache-2.0
"""`alloc fs` through a whole agent: the API, requests that it refuses, following, and the command."""
import base64
import concurrent.futures
import json
import os
import signal
import stat
import subprocess
import urllib.parse

from lib import api, binary, case
from lib.fake_api import run_command

BIG = "".join("line %05d\n" % i for i in range(30000)).encode()


def path_of(op, path, of=None, **query):
    words = urllib.parse.urlencode({"path": path, **query})
    return "/v1/client/fs/%s/%s?%s" % (op, (of or alloc)["ID"], words)


def fs(op, path, **query):
    answer = node.request("GET", path_of(op, path, **query))
    case.equal(answer.status, 200, "%s %s: %s" % (op, path, answer.text[:300] if answer.status != 200 else ""))
    return answer


def names(path):
    return [f["Name"] for f in fs("ls", path).json]


def host(path):
    return "%s/alloc/%s/%s" % (node.data, alloc["ID"], path)


def write(path, data, mode="wb"):
    with open(host(path), mode) as f:
        f.write(data)


class Follower:
    """A followed file; .frames are the frames received so far."""

    def __init__(self, path, **query):
        self.socket, self.text, self.frames = node.connect(), "", []
        self.socket.settimeout(case.LEAST_S)
        self.socket.sendall(("GET %s HTTP/1.0\r\n\r\n" % path_of("stream", path, **query)).encode())
        head = b""
        while b"\r\n\r\n" not in head:
            head += self.socket.recv(1)
        case.contains(head, b" 200 ")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def more(self):
        """Reads more frames. Returns False at the end of the stream."""
        data = self.socket.recv(65536)
        self.text += data.decode()
        while "}" in self.text:
            frame, end = json.JSONDecoder().raw_decode(self.text)
            self.frames.append(frame)
            self.text = self.text[end:]
        return bool(data)

    @property
    def data(self):
        return b"".join(base64.b64decode(f.get("Data", "")) for f in self.frames)

    @property
    def events(self):
        return [f["FileEvent"] for f in self.frames if "FileEvent" in f]

    def until(self, condition):
        while not condition(self):
            case.equal(self.more(), True, "the stream ended after %s" % self.frames[-3:])


# --- lists and stat ---

def test_directories_are_listed():
    case.equal(names("/"), ["alloc", "t"])
    case.equal(names("t"), ["local", "private", "secrets", "tmp"])
    case.equal(names("/alloc/"), ["data", "logs", "tmp"])
    case.equal([(f["Name"], f["IsDir"]) for f in fs("ls", "alloc").json], [("data", True), ("logs", True), ("tmp", True)])
    case.equal("t.stdout.0" in names("alloc/logs"), True, "logs")
    write("t/local/b\nb", b"12")
    os.symlink("b\nb", host("t/local/a"))
    os.mkfifo(host("t/local/fifo"), 0o600)
    os.mknod(host("t/local/null"), 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    found = {f["Name"]: f for f in fs("ls", "t/local").json}
    case.equal({n: (f["FileMode"], f["IsDir"]) for n, f in found.items() if n not in ("big", "spin")},
               {"a": ("Lrwxrwxrwx", False), "b\nb": ("-rw-r--r--", False), "fifo": ("prw-------", False),
                "null": ("Dcrw-r--r--", False)})
    case.equal((found["b\nb"]["Size"], "ContentType" in found["b\nb"]), (2, False))
    case.equal(found["b\nb"]["ModTime"].endswith("Z"), True, "time")
    for name in ("a", "b\nb", "fifo", "null"):
        os.unlink(host("t/local/" + name))


def test_files_have_their_attributes():
    for path, kind in (("x.json", "application/json"), ("text", "text/plain; charset=utf-8"),
                       ("bytes", "application/octet-stream")):
        write("t/local/" + path, b"hello\n" if path != "bytes" else b"\0\1")
        found = fs("stat", "t/local/" + path).json
        case.equal((found["Name"], found["IsDir"], found["FileMode"], found["ContentType"]),
                   (path, False, "-rw-r--r--", kind))
    found = fs("stat", "/").json
    case.equal((found["Name"], found["IsDir"], found["FileMode"]), ("/", True, "drwx--x---"))
    case.equal(fs("stat", "alloc").json["FileMode"], "dtrwxrwxrwx")
    case.equal(fs("stat", "alloc/logs").json["IsDir"], True)


def test_files_are_read_from_an_offset():
    case.equal(fs("cat", "t/local/big").body, BIG)
    case.equal(fs("cat", "/t/./local//x/../big").body, BIG)
    case.equal(fs("readat", "t/local/big", offset=22, limit=11).body, BIG[22:33])
    case.equal(fs("readat", "t/local/big", offset=22).body, BIG[22:])
    case.equal(fs("readat", "t/local/big", offset=10**9, limit=5).body, b"")
    case.equal(fs("cat", "alloc/logs/t.stdout.0").body, b"started\n")
    text, found = fs("stream", "t/local/big", follow="false", origin="end", offset=200000).text, []
    while text:
        frame, end = json.JSONDecoder().raw_decode(text)
        found.append(frame)
        text = text[end:]
    case.equal(b"".join(base64.b64decode(f["Data"]) for f in found), BIG[-200000:])
    case.equal(max(len(f["Data"]) for f in found) <= 65536 * 4 // 3 + 4, True, "size of a frame")
    case.equal((found[-1]["Offset"], found[0]["File"]), (len(BIG), "t/local/big"))


def test_many_readers_at_once():
    with concurrent.futures.ThreadPoolExecutor(40) as pool:
        found = list(pool.map(lambda i: fs("readat", "t/local/big", offset=11 * i, limit=11).body, range(200)))
    case.equal(found, [BIG[11 * i:11 * i + 11] for i in range(200)])


# --- refusals ---

def test_paths_that_leave_the_alloc_are_refused():
    with open(node.data + "/outside", "wb") as f:
        f.write(b"outside")
    for name, target in (("abs", "/etc/passwd"), ("up", "../../../../outside"), ("other", "../../../%s/t/local/x" % other["ID"]),
                         ("loop", "loop"), ("key", "../private/key")):
        os.symlink(target, host("t/local/" + name))
    write("t/private/key", b"key")
    os.mkfifo(host("t/local/fifo"))
    os.mknod(host("t/local/null"), 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    escapes = "Path escapes the alloc directory"
    for path in ("..", "../" + other["ID"] + "/t/local", "t/local/../../../x", "t/local/abs", "t/local/up", "t/local/other"):
        node.refused(400, escapes, "GET", path_of("cat", path))
        node.refused(500, escapes, "GET", path_of("ls", path))
        node.refused(500, escapes, "GET", path_of("stat", path))
    for path in ("t/secrets", "t/secrets/x", "t/private/key", "t/local/key", "t/local/../private/key"):
        for op in ("cat", "stream", "readat"):
            node.refused(400, "Reading secret file prohibited: ", "GET", path_of(op, path, offset=0))
        node.refused(500, "Reading secret file prohibited: ", "GET", path_of("ls", path))
    for path in ("t/local/fifo", "t/local/null"):
        node.refused(400, "neither a file nor a directory", "GET", path_of("cat", path))
        case.equal(fs("stat", path).json["ContentType"], "application/octet-stream")
    node.refused(400, 'file "t/local" is a directory', "GET", path_of("cat", "/t/local"))
    node.refused(400, "no such file or directory", "GET", path_of("cat", "t/local/nothing"))
    node.refused(404, "alloc/%s/t/local/nothing: no such file or directory" % alloc["ID"], "GET",
                 path_of("stat", "t/local/nothing"))
    node.refused(500, "not a directory", "GET", path_of("ls", "t/local/big"))
    node.refused(400, "", "GET", path_of("cat", "t/local/loop"))
    node.refused(400, "must provide a file name", "GET", path_of("cat", ""))
    node.refused(400, "parsing offset", "GET", path_of("readat", "t/local/big"))
    node.refused(400, "parsing offset", "GET", path_of("stream", "t/local/big", offset="x"))
    node.refused(400, "boolean", "GET", path_of("stream", "t/local/big", follow="maybe"))
    node.refused(400, "origin must be", "GET", path_of("stream", "t/local/big", origin="middle"))
    nobody = {"ID": "99999999-9999-4999-8999-999999999999"}
    for op in ("ls", "stat", "cat", "stream"):
        node.refused(404, 'Unknown allocation "9999', "GET", path_of(op, "t", nobody))
        node.refused(400, "must provide a valid alloc id", "GET", path_of(op, "t", {"ID": "x"}))
    for name in ("abs", "up", "other", "loop", "key", "fifo", "null"):
        os.unlink(host("t/local/" + name))


def test_directories_with_many_files_are_listed():
    os.mkdir(host("t/local/many"))
    for i in range(20000):
        os.close(os.open(host("t/local/many/%06d" % i), os.O_CREAT | os.O_WRONLY))
    case.equal(names("t/local/many"), ["%06d" % i for i in range(20000)])


# --- following ---

def test_a_followed_file_that_grows_is_truncated_replaced_and_deleted():
    write("t/local/grows", b"one")
    with Follower("t/local/grows") as f:
        f.until(lambda f: f.data == b"one")
        write("t/local/grows", b"two", "ab")
        f.until(lambda f: f.data == b"onetwo")
        write("t/local/grows", b"3")
        f.until(lambda f: f.data == b"onetwo3")
        case.equal(f.events, ["file truncated"])
        f.until(lambda f: {} in f.frames)  # a heartbeat
        write("t/local/new", b"rotated")
        os.link(host("t/local/grows"), host("t/local/grows.1"))
        os.rename(host("t/local/new"), host("t/local/grows"))  # replaced atomically: the file always exists
        f.until(lambda f: f.data == b"onetwo3rotated")
        case.equal(f.events, ["file truncated"] * 2)
        os.unlink(host("t/local/grows"))
        f.until(lambda f: f.events[-1] == "file deleted")
        while f.more():
            pass


def test_a_file_is_followed_from_its_end():
    with Follower("t/local/big", origin="end", offset=11) as f:
        f.until(lambda f: f.data == BIG[-11:])
        with Follower("t/local/big", offset=len(BIG) - 5) as g:
            g.until(lambda g: g.data == BIG[-5:])


def test_a_follower_survives_the_death_of_the_helper():
    write("t/local/kept", b"one")
    with Follower("t/local/kept") as f:
        f.until(lambda f: f.data == b"one")
        pid = node.kill("file-helper")
        write("t/local/kept.new", b"two")
        os.rename(host("t/local/kept.new"), host("t/local/kept"))
        f.until(lambda f: f.data == b"onetwo")
        node.wait_process("file-helper", pid)
    case.equal(fs("cat", "t/local/kept").body, b"two")


def test_a_task_that_renames_directories_while_they_are_read():
    seen = set()

    def look():
        answer = node.request("GET", path_of("cat", "t/local/spin/d/f"))
        seen.add(answer.text if answer.status == 200 else answer.status)
        case.equal(seen <= {"mine\n", 400, 500}, True, "seen: %s" % seen)
        return "mine\n" in seen
    for _ in range(150):
        look()
    # The task may not have run for so long.
    case.until(look, 60, "the file to be in its own directory")


def test_logs_of_an_exec_task():
    node.register(api.job("e", "/bin/sh", ["-c", "echo inside > /local/f; echo said; exec sleep 1000"], driver="exec"))
    inside = node.wait_running("e")[0]
    query = path_of("cat", "alloc/logs/t.stdout.0", inside)
    case.until(lambda: node.request("GET", query).body == b"said\n", 10, "the log")
    case.equal(node.request("GET", path_of("cat", "t/local/f", inside)).body, b"inside\n")
    case.equal([f["Name"] for f in node.request("GET", path_of("ls", "alloc", inside)).json], ["data", "logs", "tmp"])


# --- the command ---

def drover(*words, code=0):
    r = run_command(("alloc", "fs") + words, env={"DROVER_ADDR": "unix://" + node.socket_path})
    case.equal(r.code, code, "alloc fs %s: %s%s" % (" ".join(words), r.out, r.err))
    return r


def test_the_command_alloc_fs():
    write("t/local/c", b"1\n2\n3\n")
    out = drover(alloc["ID"][:8]).out.split("\n")
    case.equal(out[0].split(), ["Mode", "Size", "Modified", "Time", "Name"])
    case.equal([line.split()[-1] for line in out[1:3]], ["alloc/", "t/"])
    case.contains(drover(alloc["ID"], "t/local/").out, "big")
    out = drover("-stat", alloc["ID"], "t/local/big").out
    case.contains(out, "Content Type")
    case.contains(out, "322 KiB")
    case.contains(drover("-stat", "-H", alloc["ID"], "t/local/big").out, str(len(BIG)))
    case.equal(drover(alloc["ID"], "t/local/c").out, "1\n2\n3\n")
    case.equal(drover("-n", "2", alloc["ID"], "t/local/c").out, "2\n3\n")
    case.equal(drover("-n", "0", alloc["ID"], "t/local/c").out, "")
    case.equal(drover("-n", "9", alloc["ID"], "t/local/c").out, "1\n2\n3\n")
    case.equal(drover("-c", "3", alloc["ID"], "t/local/c").out, "\n3\n")
    case.equal(drover("-tail", alloc["ID"], "t/local/big").out, BIG[-110:].decode())
    case.equal(drover("-n", "29999", alloc["ID"], "t/local/big").out, BIG[11:].decode())
    case.equal(drover(alloc["ID"], "t/local/big").out, BIG.decode())
    case.contains(drover(alloc["ID"], "t/private", code=1).err, "secret")
    case.contains(drover(alloc["ID"], "nothing", code=1).err, "no such file")
    json.loads(drover("-json", "-stat", alloc["ID"], "t/local/c").out)
    with subprocess.Popen([binary("drover"), "alloc", "fs", "-f", "-n", "1", alloc["ID"], "t/local/c"], stdout=subprocess.PIPE,
                          env=dict(os.environ, DROVER_ADDR="unix://" + node.socket_path)) as p:
        try:
            case.equal(p.stdout.readline(), b"3\n")
            write("t/local/c", b"4\n", "ab")
            case.equal(p.stdout.readline(), b"4\n")
            os.unlink(host("t/local/c"))
            case.equal(p.wait(case.LEAST_S), 0, "exit code")
        finally:
            if p.poll() is None:
                p.send_signal(signal.SIGKILL)


SPIN = """echo started; cd "$NOMAD_TASK_DIR"; mkdir -p spin/d spin/e; echo mine > spin/d/f; echo mine > spin/e/f
ln -s /etc spin/l; ln -s ../private spin/p
while :; do mv spin/d spin/x; mv spin/l spin/d; mv spin/d spin/l; mv spin/p spin/d; mv spin/d spin/p; mv spin/x spin/d; done"""

with api.Node() as node:
    node.register(api.job("a", "/bin/sh", ["-c", SPIN]))
    node.register(api.job("b"))
    alloc, other = node.wait_running("a")[0], node.wait_running("b")[0]
    case.until(lambda: os.path.isdir(host("t/local/spin")), 10, "the task")
    node.wait_said(alloc, b"started\n")
    case.equal(os.path.realpath(host("alloc/logs")), "%s/logs/%s" % (node.data, alloc["ID"]))
    write("t/local/big", BIG)
    case.run(globals())
