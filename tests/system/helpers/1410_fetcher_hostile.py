# SPDX-License-Identifier: Apache-2.0
"""The fetcher alone: servers that misbehave. Each fetch ends with one sentence, and harms no other."""
import errno
import os
import signal
import socket
import threading
import time

from lib import agent, case, fetch, takeover, web
from lib.ipc import RequestError

OPENAT, CLOSE, SOCKET, MOUNT, PTRACE, UNSHARE, CHROOT = 257, 3, 41, 165, 101, 272, 161  # x86-64
TRUNCATE, RENAME, MKDIR, LINK, UNLINK, SYMLINK = 76, 82, 83, 86, 87, 88
AT_FDCWD = (1 << 64) - 100
BODY = b"x" * 1000


def raw(answer):
    """Answers with these bytes, then closes the connection."""
    def send(h):
        h.wfile.write(answer)
        h.close_connection = True
    return send


def endless(head, chunk):
    """Sends the chunk until nobody reads any more."""
    def send(h):
        h.close_connection = True
        h.wfile.write(head)
        while True:
            h.wfile.write(chunk)
    return send


def silent(h):
    """Sends a part, and then nothing."""
    h.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + BODY)
    h.wfile.flush()
    stop.wait()
    h.close_connection = True


def dripping(h):
    """Sends a byte now and then."""
    h.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    while not stop.wait(0.05):
        h.wfile.write(b"x")
        h.wfile.flush()
    h.close_connection = True


def flowing(h):
    """Sends 20 MiB a second."""
    h.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
    while not stop.wait(0.05):
        h.wfile.write(b"x" * (1 << 20))
    h.close_connection = True


def redirect(h):
    """Redirects for ever, each time somewhere else."""
    h.reply(b"", 302, [("Location", "/loop?%d" % len(h.server.requests))])


OK = b"HTTP/1.1 200 OK\r\n"
FILES = {
    "/ok": BODY,
    "/flowing": flowing,
    "/mute": lambda h: stop.wait(),
    "/mute/info/refs": lambda h: stop.wait(),
    "/endless": endless(OK + b"\r\n", b"x" * 65536),
    "/endless_chunks": endless(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1000\r\n" + b"x" * 4096 + b"\r\n"),
    "/endless_headers": endless(OK, b"X-%s: y\r\n" % (b"h" * 5000)),
    "/endless_header": endless(OK + b"X: ", b"x" * 65536),
    "/endless_continue": endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "/10gb": raw(OK + b"Content-Length: 10000000000\r\n\r\n" + BODY),
    "/short": raw(OK + b"Content-Length: 2000\r\n\r\n" + BODY),
    "/two_lengths": raw(OK + b"Content-Length: 1000\r\nContent-Length: 2000\r\n\r\n" + BODY),
    "/no_length": raw(OK + b"Content-Length: -5\r\n\r\n" + BODY),
    "/bad_chunk": raw(OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n" + BODY),
    "/cut_chunk": raw(OK + b"Transfer-Encoding: chunked\r\n\r\n2000\r\n" + BODY),
    "/garbage": raw(os.urandom(3000)),
    "/nothing": raw(b""),
    "/half": raw(b"HTTP/1.1 2"),
    "/loop": redirect,
    "/silent": silent,
    "/dripping": dripping,
    "/500": lambda h: h.reply(b"<html>secret of the server</html>", 500),
    "/204": raw(b"HTTP/1.1 204 No Content\r\n\r\n"),
    "/304": raw(b"HTTP/1.1 304 Not Modified\r\n\r\n"),
}
stop = threading.Event()


def get(path, **more):
    return f.get(server.url + path, max_bytes=1 << 20, http_ms=more.pop("http_ms", 60000), **more)


def test_answers_without_an_end():
    for path in ("/endless", "/endless_chunks"):
        case.equal(get(path), "the server sends more than the 1048576 bytes that are allowed", path)
    case.equal(get("/10gb"), "the server sends more than the 1048576 bytes that are allowed")
    for path in ("/endless_headers", "/endless_header", "/endless_continue"):
        answer = get(path)
        case.equal(isinstance(answer, str) and "\n" not in answer, True, "%s: %r" % (path, answer))


def test_answers_of_a_wrong_length_or_form():
    for path in ("/short", "/two_lengths", "/no_length", "/bad_chunk", "/cut_chunk", "/garbage", "/nothing", "/half", "/304"):
        answer = get(path)
        case.equal(isinstance(answer, str) and len(answer) > 10, True, "%s: %r" % (path, answer))
        case.equal("secret" in answer, False, answer)


def test_ten_thousand_redirects():
    before = len(server.requests)
    case.equal(get("/loop"), "the server redirects more than 10 times")
    case.equal(len(server.requests) - before, 11, "requests")


def test_errors_of_the_server():
    case.equal(get("/500"), "the server answered with status 500")
    case.contains(f.get("http://127.0.0.1:1/x"), "Failed to connect to 127.0.0.1 port 1")
    case.contains(f.get("http://no-such-host.invalid/x"), "Could not resolve host")


def test_a_server_that_is_slow_ends_by_the_limit():
    for path in ("/silent", "/dripping"):
        case.contains(get(path, http_ms=500), "the server did not send it in time", path)


def test_what_is_in_progress_is_told_and_can_be_cancelled():
    staging = f.send(server.url + "/silent")
    ask = {"staging": staging}

    def told():
        try:
            return f.ipc.call("FET_ARTIFACT_PROGRESS_REQ", ask).fields
        except RequestError as e:
            return case.equal(e.code, -errno.ENOENT)
    progress = case.until(lambda: (p := told()) and p["bytes"] == 1000 and p, 10, "progress")
    case.equal(progress["total"], 100000)
    workers = agent.children(f.helper.pid)
    case.equal(len(workers), 1, "workers")
    f.ipc.send("FET_ARTIFACT_CANCEL_EV", ask)
    case.contains(f.wait(), "died")
    case.equal(case.raises(RequestError, f.ipc.call, "FET_ARTIFACT_PROGRESS_REQ", ask).code, -errno.ENOENT)
    f.ipc.send("FET_ARTIFACT_CANCEL_EV", ask)  # it has ended
    case.equal(get("/ok"), {"ok": BODY})


def test_the_slowest_transfer_is_given_up_while_others_wait():
    window_ms = 300  # several bursts of /flowing

    def others_wait(slow_ms):
        time.sleep(0 if slow_ms > window_ms else 1.2 * slow_ms / 1000)
        f.ipc.send("FET_OTHERS_WAIT_EV", {"slow_ms": slow_ms})

    def arrived(staging, least=1):
        case.until(lambda: f.ipc.call("FET_ARTIFACT_PROGRESS_REQ", {"staging": staging}).fields["bytes"] >= least, 10, "bytes")
    sent = {path: f.send(server.url + path) for path in ("/flowing", "/silent", "/dripping")}
    arrived(sent["/flowing"], 1 << 22)
    arrived(sent["/silent"], 1000)
    arrived(sent["/dripping"])
    slow = "the server sends less than 16 KiB a second, while other artifacts wait"
    others_wait(1 << 30)  # none is as old
    for _ in ("/silent", "/dripping"):
        others_wait(window_ms)
        case.equal(f.wait(), slow)
    others_wait(window_ms)
    arrived(sent["/flowing"], 1 << 23)
    f.ipc.send("FET_ARTIFACT_CANCEL_EV", {"staging": sent["/flowing"]})
    case.contains(f.wait(), "died")
    # One that does not begin to send, and one that is asked again and again.
    for path in ("/mute", "/500"):
        f.send(server.url + path)
        case.until(lambda p=path: server.count(p), 10, "the request")
        others_wait(window_ms)
        case.contains(f.wait(), "other artifacts wait" if path == "/mute" else "")
    case.equal(get("/ok"), {"ok": BODY})


def test_a_worker_that_dies_harms_no_other():
    f.send(server.url + "/silent")
    first = case.until(lambda: agent.children(f.helper.pid), 10, "its worker")[0]
    waiting = f.send(server.url + "/silent", http_ms=700)
    os.kill(first, signal.SIGKILL)
    answers = sorted([f.wait(), f.wait()])
    case.contains(answers[0], "worker process %d died" % first)
    case.contains(answers[1], "the server did not send it in time")
    case.equal(os.path.exists(f.path(waiting)), True, "its staging directory, which the supervisor has removed")


def test_a_hanging_worker_is_killed_at_its_deadline():
    f.send(server.url + "/silent", timeout_ms=300)
    case.contains(f.wait(), "no answer in time; worker process")


def test_requests_that_are_not_valid():
    staging = f.send(server.url + "/silent")
    for fields in ({"staging": staging, "timeout_ms": 1000}, {"staging": bytes(16), "timeout_ms": 1000}, {"staging": os.urandom(16), "timeout_ms": 0}):
        f.send(server.url + "/ok", **fields)
        case.contains(f.wait(), "is not valid" if fields["staging"] != staging else "")
    f.ipc.send("FET_ARTIFACT_CANCEL_EV", {"staging": staging})
    f.wait()
    for spec in ({}, [], "x", {**fetch.SPEC}, {**fetch.SPEC, "source": 5}, {**fetch.SPEC, "source": server.url, "mode": "x"},
                 {**fetch.SPEC, "source": server.url, "options": []}, {**fetch.SPEC, "source": server.url, "headers": {"x": 1}}):
        f.send("", spec=spec)
        case.equal(isinstance(f.wait(), str), True, str(spec))


def call_with_paths(pid, number, *args):
    """Makes the process execute a system call. Arguments that are texts are passed as pointers to them."""
    with open("/proc/%d/maps" % pid, encoding="ascii") as maps:
        stack = int(next(line for line in maps if "[stack]" in line).split("-")[0], 16)  # the end that is not in use
    values = []
    with open("/proc/%d/mem" % pid, "r+b", buffering=0) as memory:
        for i, arg in enumerate(args):
            if isinstance(arg, str):
                memory.seek(stack + 512 * i)
                memory.write(arg.encode() + b"\0")
                arg = stack + 512 * i
            values.append(arg)
    return takeover.call(pid, number, *values)


def opens(pid, path, flags=os.O_RDONLY):
    fd = call_with_paths(pid, OPENAT, AT_FDCWD, path, flags, 0o600)
    return fd if fd < 0 else takeover.call(pid, CLOSE, fd)


def test_it_reaches_no_unix_socket_and_no_other_file():
    """The programs that it runs have these limits too. The files that it may read are readable for everybody."""
    pid = f.helper.pid
    case.equal(opens(pid, "/etc/passwd"), 0)
    case.equal(opens(pid, f.places.data + "/alloc/.fetch/new", os.O_WRONLY | os.O_CREAT), 0)
    for path in ("/etc/hostname", "/proc/self/status", "/proc/1/cmdline", "/sys/kernel/mm", "/", f.places.data + "/instance", "/usr/share/doc"):
        case.equal(opens(pid, path), -errno.EACCES, path)
    for path in ("/tmp/x", "/var/tmp/x", "/dev/shm/x", "/etc/passwd"):
        case.equal(opens(pid, path, os.O_WRONLY | os.O_CREAT) in (-errno.EACCES, -errno.ENOENT), True, path)
    for number, args in ((SOCKET, (socket.AF_UNIX, 1, 0)), (SOCKET, (socket.AF_NETLINK, 3, 0)), (SOCKET, (socket.AF_PACKET, 3, 0)), (MOUNT, (0,) * 5),
                         (PTRACE, (16, 1, 0, 0)), (UNSHARE, (1 << 28,)), (CHROOT, ("/",))):
        case.equal(call_with_paths(pid, number, *args), -errno.EPERM, "call %d" % number)
    case.equal(get("/ok"), {"ok": BODY})


def reach_for(pid, own, other):
    """Tries as process pid, which fetches into `own`, to use the staging directory `other`."""
    parent = os.path.dirname(other)
    create = os.O_WRONLY | os.O_CREAT
    case.equal(opens(pid, own + "/mine", create), 0, "its own directory")
    case.equal(opens(pid, own), 0, "its own directory")
    for path in (parent, other, other + "/out", other + "/out/silent"):
        case.equal(opens(pid, path), -errno.EACCES, "read %s" % path)
    for path, flags in ((other + "/out/silent", os.O_WRONLY), (other + "/out/silent", os.O_WRONLY | os.O_TRUNC), (other + "/new", create),
                        (other + "/done", create), (parent + "/another", create)):
        case.equal(opens(pid, path, flags), -errno.EACCES, "write %s" % path)
    refused = -errno.EACCES, -errno.EXDEV, -errno.EPERM
    for number, args in ((MKDIR, (other + "/new", 0o700)), (MKDIR, (parent + "/another", 0o700)), (UNLINK, (other + "/out/silent",)),
                         (TRUNCATE, (other + "/out/silent", 0)), (SYMLINK, ("/", other + "/new")), (RENAME, (own + "/mine", other + "/new")),
                         (RENAME, (other + "/out/silent", own + "/theirs")), (RENAME, (other, own + "/theirs")),
                         (LINK, (own + "/mine", other + "/new")), (LINK, (other + "/out/silent", own + "/theirs"))):
        case.equal(call_with_paths(pid, number, *args) in refused, True, "call %d %s" % (number, args))
    os.unlink(own + "/mine")


def descendants(pid):
    found = agent.children(pid)
    return found + [inner for child in found for inner in descendants(child)]


def test_a_worker_and_its_programs_do_not_reach_the_directory_of_another_artifact():
    victim = f.send(server.url + "/silent")
    case.until(lambda: os.path.exists(f.path(victim) + "/out/silent") and os.path.getsize(f.path(victim) + "/out/silent"), 10, "a part of it")
    before = fetch.tree_of(f.path(victim))
    known = descendants(f.helper.pid)
    for source, request, least in (("/silent", "/silent", 1), ("/mute", "/mute/info/refs?service=git-upload-pack", 4)):
        asked = server.count(request)
        staging = f.send(("git::" if source == "/mute" else "") + server.url + source)
        case.until(lambda r=request, n=asked: server.count(r) > n, 10, "the request")
        mine = [pid for pid in descendants(f.helper.pid) if pid not in known]
        case.equal(len(mine) >= least, True, "processes: %s" % [agent.arguments(pid)[:2] for pid in mine])
        for pid in mine:
            reach_for(pid, f.path(staging), f.path(victim))
        f.ipc.send("FET_ARTIFACT_CANCEL_EV", {"staging": staging})
        case.contains(f.wait(), "died")
    case.equal(fetch.tree_of(f.path(victim)), before, "the directory of the other artifact")
    f.ipc.send("FET_ARTIFACT_CANCEL_EV", {"staging": victim})
    f.wait()


with web.Server(FILES) as server, fetch.Fetcher() as f:
    try:
        case.run(globals())
    finally:
        stop.set()
