# SPDX-License-Identifier: Apache-2.0
# takes: 20
"""exec-helper and executor alone: files of a start or of a session in the task's directories: places, modes, owners, links, and what does not fit."""
import errno
import os
import threading
import uuid

from lib import case, exe, runs

SECONDS = 60
MIB = 1 << 20
USERS = (("EXEC", "", 65534), ("RAW_EXEC", "daemon", 1), ("RAW_EXEC", "", 0))


def fields(driver, user):
    return {"driver": "EXEC_DRIVER_" + driver, "user": user}


def running(r, **more):
    run = r.start("sleep", ["1000"], **more)
    record = r.wait_state(run, exe.EXE_RUNNING, exe.EXE_FAILED, seconds=SECONDS)
    case.equal((record["state"], record["step"], record["error"]), (exe.EXE_RUNNING, 0, 0), "state, failed step, error")
    return run


def end(r, run):
    with r.connect(run) as c:
        c.send(exe.EXE_STOP, signal=9, timeout_ms=0)
        c.wait_exited()
    r.reap(run)


def top(r, alloc):
    return "%s/alloc/%s/" % (r.places.data, uuid.UUID(bytes=alloc))


def path_of(r, run, path):
    """Returns where the host has a file of a running task."""
    first, _, rest = path.partition("/")
    if first == "secrets":
        return r.secrets(run) + "/" + rest
    return top(r, uuid.UUID(run.alloc).bytes) + (path if first == "alloc" else "web/" + path)


def read(path):
    with open(path, "rb") as f:
        return f.read()


def failed(r, run):
    """Returns (errno, number of the file) of a start that could not write its files."""
    record = r.ended(run, SECONDS)
    case.equal((record["state"], record["step"]), (exe.EXE_FAILED, exe.EXE_STEP_SECRETS), "state and step")
    return record["error"], record["detail"]


def not_replaced(r, run, secrets, error, number, **more):
    e = case.raises(exe.Error, r.replace, run, secrets, **more)
    case.contains(str(e), "'step': %d, 'error': %d, 'detail': %d" % (exe.EXE_STEP_SECRETS, error, number))


def test_places_and_modes():
    places = {"secrets/a/b": 0o600, "local/a/b/c d": 0o640, "local/.hidden": 0o444, "alloc/a/b": 0o644, "alloc/data/x": 0o777, "own/dir/x": 0o4}
    with runs.Runs() as r:
        for driver, user, uid in USERS:
            run = running(r, driver=driver, user=user, secrets={"%o -1 -1 %s" % (mode, path): path.encode() for path, mode in places.items()})
            for new in (b"", b" again"):
                for path, mode in places.items():
                    at = path_of(r, run, path)
                    st = os.lstat(at)
                    case.equal((read(at), oct(st.st_mode), st.st_uid), (path.encode() + new, oct(0o100000 | mode), uid), at)
                if not new:
                    again = {"%o -1 -1 %s" % (mode, path): path.encode() + b" again" for path, mode in places.items()}
                    case.equal(r.replace(run, again, **fields(driver, user)), 0)
            for path in ("local/a/b", "alloc/a", "own"):
                st = os.lstat(path_of(r, run, path))
                case.equal((oct(st.st_mode), st.st_uid), (oct(0o40755), uid), path)
            case.equal(sorted(os.listdir(path_of(r, run, "local"))), [".hidden", "a"], "nothing is left")
            end(r, run)


def test_links_are_not_followed():
    """The task has made a link in place of each part of the path."""
    with runs.Runs() as r:
        outside = case.directory()
        os.chmod(outside, 0o777)
        for driver, user, _ in USERS:
            for path in ("local/a/b/c", "alloc/a/b/c", "own/a/c"):
                parts = path.split("/")
                for n in range(1 if parts[0] != "own" else 0, len(parts)):
                    alloc = r.make_alloc()
                    link = top(r, alloc) + ("" if path.startswith("alloc") else "web/") + "/".join(parts[:n + 1])
                    os.makedirs(os.path.dirname(link), exist_ok=True)
                    target = outside + ("/file" if n == len(parts) - 1 else "")
                    os.symlink(target, link)
                    for at in {os.path.dirname(link), link} - {top(r, alloc) + name for name in ("alloc", "web", "web/local")}:
                        os.lchown(at, *{"": (0, 0) if driver == "RAW_EXEC" else (65534, 65534)}.get(user, (1, 1)))
                    run = r.start("sleep", ["1000"], driver=driver, user=user, alloc=alloc, secrets={"600 -1 -1 " + path: b"x"})
                    if n == len(parts) - 1:
                        r.wait_state(run, exe.EXE_RUNNING, seconds=SECONDS)
                        case.equal((os.path.islink(link), read(link)), (False, b"x"), "the file in place of the link")
                        end(r, run)
                    else:
                        case.equal(failed(r, run), (errno.ENOTDIR, 1), (driver, link))
                        r.reap(run)
                    case.equal(os.listdir(outside), [], link)
            # Later too.
            run = running(r, driver=driver, user=user)
            os.symlink(outside, path_of(r, run, "local/a"))
            not_replaced(r, run, {"local/b": b"", "local/a/c": b"x"}, errno.ENOTDIR, 2, **fields(driver, user))
            os.unlink(path_of(r, run, "local/a"))
            end(r, run)
        case.equal(os.listdir(outside), [], "outside")


def test_owners():
    """Only root can give a file to others."""
    with runs.Runs() as r:
        for driver, user, uid in USERS:
            run = running(r, driver=driver, user=user)
            for owner, want in (("-1 -1", (uid, uid)), ("%d %d" % (uid, uid), (uid, uid)), ("4711 -1", (4711, uid)), ("-1 4712", (uid, 4712))):
                where = "640 %s local/f" % owner
                if uid == 0 or "47" not in owner:
                    case.equal(r.replace(run, {where: b"x"}, **fields(driver, user)), 0)
                    st = os.lstat(path_of(r, run, "local/f"))
                    case.equal((st.st_uid, st.st_gid, oct(st.st_mode)), (*want, "0o100640"), (driver, owner))
                else:
                    not_replaced(r, run, {where: b"y"}, errno.EPERM, 1, **fields(driver, user))
                    case.equal(os.listdir(path_of(r, run, "local")), ["f"], "nothing is left")
            end(r, run)


def test_a_file_of_16_mib():
    large = os.urandom(MIB) * 16
    with runs.Runs() as r:
        for driver, user, _ in USERS:
            run = running(r, driver=driver, user=user, secrets={"local/large": large})
            case.equal(read(path_of(r, run, "local/large")) == large, True, "the contents")
            case.equal(r.replace(run, {"644 -1 -1 alloc/large": large[::-1]}, **fields(driver, user)), 0)
            case.equal(read(path_of(r, run, "alloc/large")) == large[::-1], True, "the contents")
            end(r, run)


def test_what_does_not_fit_is_told_and_changes_nothing():
    large = b"x" * (MIB + 1)
    with runs.Runs() as r:
        for driver, user, _ in USERS:
            run = r.start("true", driver=driver, user=user, secrets={"first": b"1", "second": large})
            case.equal(failed(r, run), (errno.ENOSPC, 2), driver)
            r.reap(run)
            run = running(r, driver=driver, user=user, secrets={"token": b"old", "other": b"x" * (MIB // 2)})
            not_replaced(r, run, {"new": b"1", "local/x": b"2", "token": large}, errno.ENOSPC, 3, **fields(driver, user))
            case.equal(sorted(os.listdir(r.secrets(run))), ["api.sock", "new", "other", "token"])
            case.equal(read(r.secrets(run) + "/token"), b"old", "the old contents")
            # A directory under the name of a file stays where it is if the file does not fit.
            os.unlink(r.secrets(run) + "/token")
            os.mkdir(r.secrets(run) + "/token")
            not_replaced(r, run, {"token": large}, errno.ENOSPC, 1, **fields(driver, user))
            case.equal(os.path.isdir(r.secrets(run) + "/token"), True, "the directory")
            end(r, run)


def test_readers_see_old_or_new_contents():
    """A file is opened again and again while it is replaced 1,000 times."""
    size, wrong, read_times = 200000, [], [0]
    with runs.Runs() as r:
        run = running(r, driver="EXEC", secrets={"local/f": b"a" * size})
        path, done = path_of(r, run, "local/f"), threading.Event()

        def look():
            while not done.is_set():
                try:
                    data = read(path)
                except OSError as e:
                    wrong.append(str(e))
                    return
                if len(data) != size or data != data[:1] * size:
                    wrong.append("%d bytes of %r" % (len(data), set(data)))
                read_times[0] += 1
        reader = threading.Thread(target=look)
        reader.start()
        try:
            for n in range(1000):
                case.equal(r.replace(run, {"local/f": b"ab"[n % 2:n % 2 + 1] * size}, driver="EXEC_DRIVER_EXEC"), 0)
        finally:
            done.set()
            reader.join()
        case.equal(wrong[:3], [], "what %d reads saw" % read_times[0])
        case.equal(read_times[0] > 0, True, "something was read")
        case.equal(os.listdir(os.path.dirname(path)), ["f"], "files that are left")
        end(r, run)


case.run(globals())
