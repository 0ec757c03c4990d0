# SPDX-License-Identifier: Apache-2.0
# timeout: 900
# takes: 80
"""Processes die while an archive is unpacked, a repository is cloned, a bucket is read, and their directories are copied and moved: no task ever sees a
part of one, and the server is asked again only for what was not complete."""
import contextlib
import hashlib
import io
import os
import signal
import tarfile
import threading

from lib import agent, case, s3, web
from lib.crash_page import page
from lib.crash_sweep import SUPERVISOR, check_reached, kill_at, spread, sweep, whole
from lib import crash

FILES = {"f%d" % i: b"file %d\n" % i * 1000 for i in range(6)} | {"sub/g%d" % i: os.urandom(20000) for i in range(3)}
TOP = 7  # entries of the directory itself
# A shell command that prints one checksum of all files in a directory, without those that git adds.
SUM = '(cd "$1" && find . -type f ! -path "*/.git/*" ! -name ".git*" | LC_ALL=C sort | xargs cat | md5sum)'
WANTED = "%s  -" % hashlib.md5(b"".join(FILES[name] for name in sorted(FILES, key=lambda n: "./" + n))).hexdigest()
# The task that runs already looks at the shared directory all the time.
WATCH = 'look() { %s; }; while :; do [ ! -e $NOMAD_ALLOC_DIR/tree ] || [ "$(look $NOMAD_ALLOC_DIR/tree)" = "%s" ] || ' \
        'echo half >>$NOMAD_ALLOC_DIR/data/half; sleep 0.01; done' % (SUM, WANTED)
CHECK = 'look() { %s; }; for d in %%s; do [ "$(look $d)" = "%s" ] || { look $d; ls -lR $d; exit 9; }; done; exec sleep 100000' % (SUM, WANTED)


def archive():
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as t:
        for name, text in FILES.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(text), 0o644
            t.addfile(info, io.BytesIO(text))
    return out.getvalue()


NEW, OLD = "${NOMAD_ALLOC_DIR}/tree", "local"  # a directory that the artifact makes, and one that exists


class Bed:
    """A source: its url, the path of a request for it, and options."""

    def __init__(self, node, server, url, first, options=None):
        self.node, self.server, self.url, self.first, self.options, self.dests = node, server, url, first, options or {}, ()

    def begin(self, *dests):
        self.dests = dests
        self.server.requests.clear()
        seen = " ".join(dest.replace("{", "").replace("}", "") for dest in dests)
        made = crash.job("trees", then=CHECK % seen, Artifacts=[
            {"GetterSource": self.url, "GetterOptions": self.options, "RelativeDest": dest} for dest in dests])
        made["Job"]["TaskGroups"][0]["Tasks"].append(dict(made["Job"]["TaskGroups"][0]["Tasks"][0], Name="watch", Artifacts=None, Config={
            "command": "/bin/sh", "args": ["-c", WATCH]}, Lifecycle={"Hook": "prestart", "Sidecar": True}))
        self.node.register(made)

    def finish(self, failures=0):
        """Returns how many of these requests there were beyond the first for each artifact."""
        node = self.node
        alloc = node.wait_running("trees", 1, 30)[0]["ID"]
        case.until(lambda: crash.alloc_data(node, alloc, "starts"), 30, "the task to record its start")
        events = node.ask("/v1/allocation/" + alloc)["TaskStates"]["t"]["Events"]
        found = [e["DisplayMessage"] for e in events if e["Type"] in ("Terminated", "Failed Artifact Download")]
        case.equal((len(found) <= failures, crash.alloc_data(node, alloc, "half")), (True, []), "failures and parts: %s" % found)
        again = self.server.count(self.first) - len(self.dests)
        node.purge("trees")
        case.until(lambda: os.listdir(node.data + "/alloc/.fetch") == [], 30, "the staging directory to be empty")
        crash.wait_nothing_left(node)
        case.equal(crash.unexplained(node), [], "objects without a row")
        return again

    def kill(self, point, victim, skip=0, ended=None):
        """As kill_at(). Returns what finish() does."""
        dest = OLD if point == "FILE_AFTER_MOVE_ENTRY" else NEW
        try:
            kill_at(self.node, point, victim, lambda: self.begin(dest), skip, ended)
            return self.finish()
        except AssertionError as e:
            raise AssertionError("%s killed at pass %d of %s: %s" % (victim, skip, point, e)) from None


def kill_others(bed, again):
    """The supervisor or a helper dies while a worker of that helper is at a point. The worker dies with the helper; with the supervisor after a second at
    the latest."""
    for point, wanted in again.items():
        helper = "fetcher" if point.startswith("FET") else "file-helper"
        for skip in spread(TOP, 2) if point.endswith("ENTRY") else (0,):
            what = "requests more after a kill of the %%s at pass %d of %s" % (skip, point)
            found = bed.kill(point, helper, skip, helper)
            # git may not have asked yet.
            case.equal(found, min(found, wanted) if point == "FET_AFTER_GIT_START" else wanted, what % helper)
            # Until it dies, a worker that has the list fetches objects.
            case.equal(bed.kill(point, "supervisor", skip) <= wanted + (point == "FET_AFTER_LIST"), True, what % "supervisor")
        if point.endswith("ENTRY"):
            case.equal(bed.kill(point, "supervisor", 3, helper), wanted, what % "supervisor, with the worker,")


def die_at_points(what, bed, again):
    """If the fetcher's main process dies, the other artifact may be in the making too."""
    def cycle():
        bed.begin(NEW, OLD)
        case.equal(bed.finish() <= again[point] + (point == "FET_AFTER_GET"), True, "not too many requests")
    for point in again:
        sweep(what, whole(cycle), [point], 3)


# How many requests more each point costs.
AGAIN = {"FET_BEFORE_MARK": 1, "FET_AFTER_MARK": 0, "FET_AFTER_GET": 0, "FILE_AFTER_COPY_ENTRY": 0, "FILE_AFTER_COPY": 0,
         "FILE_AFTER_MOVE_ENTRY": 0, "FILE_AFTER_PLACE": 0}


def test_an_archive():
    again = {"FET_BEFORE_UNPACK": 1, "FET_AFTER_ENTRY": 1, **AGAIN}
    with web.Server({"/a.tar.gz": archive()}) as server, crash.Node(env=page.env) as node:
        bed = Bed(node, server, server.url + "/a.tar.gz", "/a.tar.gz")
        bed.begin(NEW, OLD)
        case.equal(bed.finish(), 0, "requests more without a kill")
        die_at_points("archive", bed, again)
        kill_others(bed, again)

        def cycle():
            bed.begin(NEW, OLD)
            case.equal(bed.finish() <= 2, True, "not too many requests")
        sweep("archive", whole(cycle), SUPERVISOR, 6)


def git_processes():
    """Returns the processes that git consists of, but for its guard."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/comm" % pid, encoding="ascii") as f:
                found += [int(pid)] if f.read().startswith("git") else []
        except OSError:
            pass
    return found


def kill_git(_):
    for pid in git_processes():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def kill_worker(node):
    """The parent of git is its guard, whose parent is the worker."""
    for pid in git_processes():
        for _ in range(4):
            with contextlib.suppress(OSError), open("/proc/%d/stat" % pid, encoding="ascii") as f:
                parent = int(f.read().rpartition(")")[2].split()[1])
                if parent == node.processes().get("fetcher"):
                    os.kill(pid, signal.SIGKILL)
                    return
                pid = parent
    raise AssertionError("no worker is found")


def kill_while_git_works(bed, slow, kill, failures):
    """The server does not answer a request for an object before the process was killed. Returns what finish() does."""
    reached, go = threading.Event(), threading.Event()
    content = bed.server.files[slow]

    def answer(h):
        reached.set()
        go.wait(60)
        h.reply(content)
    bed.server.files[slow] = answer
    try:
        bed.begin(NEW)
        case.equal(reached.wait(30), True, "whether git asks for the object")
        old = git_processes()
        bed.server.files[slow] = content
        kill(bed.node)
        agent.wait_gone(old)
    finally:
        go.set()
        bed.server.files[slow] = content
    return bed.finish(failures)


def test_a_repository():
    again = {"FET_AFTER_GIT_START": 1, "FET_BEFORE_MARK": 1, "FET_AFTER_MARK": 0}
    repository = {"/r.git" + path: data for path, data in web.repository("", FILES).items()}
    slow = sorted(path for path in repository if path.startswith("/r.git/objects/"))[3]
    with web.Server(repository) as server, crash.Node(env=page.env) as node:
        bed = Bed(node, server, "git::" + server.url + "/r.git", "/r.git/info/refs?service=git-upload-pack")
        bed.begin(NEW, OLD)
        case.equal(bed.finish(), 0, "requests more without a kill")
        die_at_points("repository", bed, again)
        kill_others(bed, again)
        for kill, failures in ((lambda node: node.kill("supervisor"), 0), (lambda node: node.kill("fetcher"), 0), (kill_worker, 0), (kill_git, 1)):
            case.equal(kill_while_git_works(bed, slow, kill, failures), 1, "requests more after a kill while git works")


def test_a_repository_with_a_submodule():
    """The process dies while git clones the repository, and while it clones the submodule."""
    parts = [{name[len(top):]: text for name, text in FILES.items() if name.startswith("sub/") == bool(top)} for top in ("", "sub/")]
    inner = web.repository("", parts[1])
    commit = inner["/refs/heads/main"].decode().strip()
    with web.Server({"/m.git" + path: data for path, data in inner.items()}) as server, crash.Node(env=page.env) as node:
        server.files.update(("/r.git" + path, data) for path, data in web.repository("", parts[0], ("sub", server.url + "/m.git", commit)).items())
        first = {name: "/%s.git/info/refs?service=git-upload-pack" % name for name in "rm"}
        beds = {name: Bed(node, server, "git::" + server.url + "/r.git", path) for name, path in first.items()}
        beds["r"].begin(NEW)
        case.equal((beds["r"].finish(), server.count(first["m"])), (0, 1), "requests without a kill")
        for skip in (0, 1):
            for victim, ended in (("fetcher", "fetcher"), ("supervisor", None)):
                found = beds["r"].kill("FET_AFTER_GIT_START", victim, skip, ended)
                case.equal(found <= 1 and found >= skip, True, "requests more after a kill of the %s in command %d of git" % (victim, skip))
        die_at_points("submodule", beds["r"], {"FET_AFTER_GIT_START": 1, "FET_BEFORE_MARK": 1, "FET_AFTER_MARK": 0})
        slow = sorted(path for path in server.files if path.startswith("/m.git/objects/"))[3]
        for kill, failures in ((lambda node: node.kill("supervisor"), 0), (lambda node: node.kill("fetcher"), 0), (kill_worker, 0), (kill_git, 1)):
            case.equal(kill_while_git_works(beds["m"], slow, kill, failures), 1, "requests for the submodule more after a kill while git works")


def test_a_list_of_checksums():
    """An archive is verified with a list that is fetched again if the archive is."""
    body = archive()
    with web.Server({"/a.tar.gz": body, "/sums": b"%s  a.tar.gz\n" % hashlib.sha256(body).hexdigest().encode()}) as server, crash.Node(env=page.env) as node:
        bed = Bed(node, server, server.url + "/a.tar.gz", "/sums", {"checksum": "file:%s/sums" % server.url})
        bed.begin(NEW, OLD)
        case.equal(bed.finish(), 0, "requests more without a kill")
        again = {"FET_AFTER_SUMS": 1, "FET_BEFORE_UNPACK": 1, "FET_BEFORE_MARK": 1, "FET_AFTER_MARK": 0}
        die_at_points("checksums", bed, again)
        kill_others(bed, again)


def test_a_bucket():
    """Its objects are listed two at a time, and fetched one by one."""
    with s3.Server({"dir/" + name: text for name, text in FILES.items()}) as server, crash.Node(env=page.env) as node:
        bed = Bed(node, server, "s3::" + server.url + "/tree/dir", "/tree/dir/f0", s3.SIGNED)
        bed.begin(NEW, OLD)
        case.equal(bed.finish(), 0, "requests more without a kill")
        again = {"FET_AFTER_LIST": 0, "FET_AFTER_OBJECT": 1, "FET_BEFORE_MARK": 1, "FET_AFTER_MARK": 0}
        die_at_points("bucket", bed, again)
        kill_others(bed, again)
        for victim in ("fetcher", "supervisor"):
            case.equal(bed.kill("FET_AFTER_OBJECT", victim, len(FILES) - 1) <= 1, True, "requests more after a kill of the %s at the last object" % victim)


def test_each_point_was_reached():
    check_reached(crash.OF_TREES)


case.run(globals())
