#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""exec-helper and executor alone: a task's own directories and its secrets: their owners, modes and limits."""
import errno
import os
import subprocess
import uuid

from lib import case, exe, helper, runs

SECONDS = 60
USERS = (("EXEC", "", 65534), ("RAW_EXEC", "daemon", 1), ("RAW_EXEC", "", 0))
FLOOD = r"""
import os
where = os.environ["WHERE"]
def count(one):
    for n in range(5000):
        try:
            one(n)
        except OSError as e:
            return n, e.errno
    return 5000, 0
print(*count(lambda n: open("%s/%d" % (where, n), "x").close()))
os.unlink(where + "/0")
with open(where + "/0", "wb", 0) as f:
    print(*count(lambda n: f.write(b"x" * 4096)))
"""


def top(r, alloc, path=""):
    return "%s/alloc/%s/%s" % (r.places.data, uuid.UUID(bytes=alloc), path)


def where(driver):
    return "/secrets" if driver == "EXEC" else "secrets"


def running(r, command, args=(), **fields):
    run = r.start(command, args, **fields)
    r.wait_state(run, exe.EXE_RUNNING, seconds=SECONDS)
    return run


def end(r, run):
    with r.connect(run) as c:
        c.send(exe.EXE_STOP, signal=9, timeout_ms=0)
        c.wait_exited()
    r.reap(run)


def as_local_user(script):
    """Runs a script as a local user without groups. Returns its exit code and output."""
    done = subprocess.run(["setpriv", "--reuid=4711", "--regid=4711", "--clear-groups", "sh", "-c", script],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return done.returncode, done.stdout.decode()


# --- secrets ---

def test_secrets_are_a_small_tmpfs_that_belongs_to_the_tasks_user():
    with runs.Runs() as r:
        for driver, user, uid in USERS:
            for mb in (0, 3):
                script = "cd %s; stat -c '%%u %%a' .; stat -f -c '%%T %%b %%S %%c' .; grep -h \" $PWD \" /proc/self/mountinfo" % where(driver)
                owner, fs, mount = r.output("sh", ["-c", script], driver=driver, user=user, secrets_mb=mb).strip().split("\n")
                case.equal(owner, "%d 700" % uid, driver)
                kind, blocks, size, inodes = fs.split()
                case.equal((kind, int(blocks) * int(size), int(inodes)), ("tmpfs", (mb or 1) << 20, (mb or 1) * 1024), driver)
                case.equal(set("nosuid nodev noexec".split()) - set(mount.split()[5].split(",")), set(), mount)


def test_a_task_can_fill_its_own_secrets_but_not_those_of_others():
    """The number of files is limited as well as the bytes. Another task can start meanwhile, with its own secrets."""
    with runs.Runs() as r:
        for driver, user, _ in USERS:
            run = running(r, "sh", ["-c", "python3 -c \"$FLOOD\"; exec sleep 1000"], driver=driver, user=user,
                          env={"FLOOD": FLOOD, "WHERE": where(driver)})
            case.until(lambda run=run: r.log(run).count("\n") == 2, SECONDS, "the flood to end")
            (files, why), (blocks, why_not) = [map(int, line.split()) for line in r.log(run).splitlines()]
            case.equal((why, why_not), (errno.ENOSPC, errno.ENOSPC), driver)
            case.equal(files <= 1024 and blocks <= 256, True, "%d files, %d blocks" % (files, blocks))
            for other, other_user, _ in USERS:
                case.equal(r.output("cat", [where(other) + "/token"], driver=other, user=other_user, secrets={"token": b"sesame"}),
                           "sesame")
            end(r, run)


def charged(r, run):
    """Returns the KiB of shared memory that are charged to the run's cgroup."""
    dirs = r.places.cgroup_dirs()
    path = "%s/runs/%s" % (dirs["memory"], run.name) if "memory" in dirs else r.places.run_cgroup(run.name)
    with open(path + "/memory.stat", encoding="ascii") as f:
        return int(dict(line.split() for line in f)["shmem"]) // 1024


def test_memory_of_its_secrets_is_charged_to_the_task():
    with runs.Runs() as r:
        for driver, user, _ in USERS:
            run = running(r, "sh", ["-c", "dd if=/dev/zero of=%s/x bs=1024 count=900 2>/dev/null; echo written; exec sleep 1000" % where(driver)],
                          driver=driver, user=user, memory_bytes=64 << 20)
            case.until(lambda run=run: "written" in r.log(run), SECONDS, "the file")
            case.until(lambda run=run: 900 <= charged(r, run) <= 1100, SECONDS, "the memory that the task of %s wrote to be charged to it" % driver)
            end(r, run)


def test_a_restarted_task_has_its_secrets():
    """With raw_exec: the mount stays as long as the alloc. The link that older versions made in its place is replaced."""
    with runs.Runs() as r:
        for user, uid in (("daemon", 1), ("", 0)):
            alloc = r.make_alloc()
            path = top(r, alloc, "web/secrets")
            os.rmdir(path)
            os.symlink("../../../gone/web", path)
            r.output("sh", ["-c", "cp secrets/token secrets/own; chmod 0 secrets"], alloc=alloc, user=user, secrets={"token": b"one"})
            case.equal(r.output("sh", ["-c", "cat secrets/own secrets/token"], alloc=alloc, user=user, secrets={"token": b"two"}), "onetwo")
            case.equal((os.path.islink(path), os.path.ismount(path), os.stat(path).st_uid), (False, True, uid))
            with open("/proc/self/mountinfo", encoding="ascii") as f:
                case.equal(sum(path in line for line in f), 1, "mounts")


def test_files_are_written_for_a_task_that_an_older_version_started():
    """With raw_exec, an older version had the secrets at the target of a link, and the alloc's directory was open to all. With exec, they
    were mounted at /secrets, as now."""
    with runs.Runs() as r:
        for user, uid in (("daemon", 1), ("", 0)):
            run = running(r, "sleep", ["1000"], user=user)
            path, old = top(r, run.alloc_id, "web/secrets"), "%s/secrets/%s/web" % (r.places.data, run.alloc)
            helper.umount(path, 2)  # MNT_DETACH: the task has a socket in it
            os.rmdir(path)
            os.makedirs(old)
            os.chown(old, uid, uid)
            os.symlink(os.path.relpath(old, os.path.dirname(path)), path)
            os.chown(top(r, run.alloc_id), 0, 0)
            os.chmod(top(r, run.alloc_id), 0o711)
            case.equal(r.replace(run, {"token": b"new"}, user=user), 0)
            with open(old + "/token", "rb") as f:
                case.equal((f.read(), os.fstat(f.fileno()).st_uid), (b"new", uid))
            end(r, run)


# --- the task's own directory ---

def test_a_task_can_write_its_own_directory_and_nobody_else_can_enter_it():
    """The root of an exec task, the working directory of a raw_exec task. It is below the alloc's directory, so the alloc's limit of disk
    counts it, and a restarted task finds its files."""
    with runs.Runs() as r:
        os.chmod(r.places.base, 0o711)
        for driver, user, uid in USERS:
            alloc = r.make_alloc(more=("second",))
            for content in ("one", "one two"):
                out = r.output("sh", ["-ec", "umask 0; [ ! -e dump ] || was=$(cat dump); echo ${was:+$was }%s > dump; mkdir -p var/lib/x; cat dump"
                                      % content.split()[-1]], driver=driver, user=user, alloc=alloc)
                case.equal(out.splitlines()[-1], content, driver)
            st, dump = os.stat(top(r, alloc, "web")), os.stat(top(r, alloc, "web/dump"))
            case.equal((st.st_uid, oct(st.st_mode & 0o7777), dump.st_uid), (uid, oct(0o711 if uid == 0 else 0o700), uid), driver)
            if uid == 0:
                continue
            code, out = as_local_user("cat %s" % top(r, alloc, "web/dump"))
            case.contains(out, "Permission denied")
            # Another user of the same alloc can enter the alloc's directory, but not that of the task.
            case.contains(r.output("sh", ["-c", "cat %s 2>&1; touch %s 2>&1; true" % ((top(r, alloc, "web/dump"),) * 2)], user="games",
                                   alloc=alloc, task="second"), "Permission denied\ntouch: ")


def test_an_exec_task_that_changed_its_root_starts_again_with_the_hosts_directories():
    """Its root is writable on the host by nobody, but through a raw_exec task of its user and alloc. Nothing there is followed."""
    with runs.Runs() as r:
        alloc, victim = r.make_alloc(more=("second",)), case.directory()
        r.output("true", driver="EXEC", user="daemon", alloc=alloc)
        r.output("sh", ["-ec", "cd %s; rm -rf alloc usr bin etc dev proc; for n in alloc usr bin etc proc; do ln -s %s $n; done; echo > dev"
                        % (top(r, alloc, "web"), victim)], user="daemon", alloc=alloc, task="second")
        case.equal(r.output("sh", ["-ec", "cat /proc/self/comm; echo x > /dev/null; touch /alloc/data/x; ls -d /usr/bin /etc/passwd"],
                            driver="EXEC", user="daemon", alloc=alloc), "cat\n/etc/passwd\n/usr/bin\n")
        case.equal(os.listdir(victim), [])


def test_a_directory_of_another_user_in_the_tasks_own_is_not_given_to_the_task():
    with runs.Runs() as r:
        alloc = r.make_alloc()
        r.output("true", user="daemon", alloc=alloc)
        local = top(r, alloc, "web/local")
        os.chown(local, 5, 5)
        record = r.ended(r.start("true", user="daemon", alloc=alloc))
        case.equal((record["step"], record["error"], os.stat(local).st_uid), (exe.EXE_STEP_DIRS, errno.EPERM, 5))
        os.rmdir(local)
        r.output("touch", ["local/x"], user="daemon", alloc=alloc)
        case.equal(os.stat(local).st_uid, 1)


def test_a_start_that_failed_half_way_is_completed_by_the_next():
    with runs.Runs() as r:
        alloc = r.make_alloc()
        private = top(r, alloc, "web/private")
        owner = os.stat(private).st_uid
        os.rmdir(private)
        with open(private, "w", encoding="ascii"):
            pass
        record = r.ended(r.start("true", user="daemon", alloc=alloc))
        case.equal((record["step"], record["error"]), (exe.EXE_STEP_DIRS, errno.ENOTDIR))
        os.unlink(private)
        os.mkdir(private, 0o700)
        os.chown(private, owner, -1)
        r.output("touch", ["local/x", "x"], user="daemon", alloc=alloc)
        case.equal([os.stat(top(r, alloc, "web" + name)).st_uid for name in ("", "/local", "/private")], [1, 1, 1])


# --- local, private, tmp, alloc/data ---

def test_directories_are_given_to_the_tasks_user():
    """Also those that an older version made for nobody with mode 0777."""
    with runs.Runs() as r:
        for old in (False, True):
            for driver, user, uid in USERS:
                alloc = r.make_alloc()
                for name in ("local", "private", "tmp") if old else ():
                    os.chown(top(r, alloc, "web/" + name), 65534, 65534)
                    os.chmod(top(r, alloc, "web/" + name), 0o777)
                here = "/" if driver == "EXEC" else ""
                r.output("sh", ["-c", "touch %slocal/x %stmp/x" % (here, here)], driver=driver, user=user, alloc=alloc)
                for name, mode in (("local", 0o700), ("private", 0o700), ("tmp", 0o1777)):
                    st = os.stat(top(r, alloc, "web/" + name))
                    case.equal((st.st_uid, oct(st.st_mode & 0o7777)), (uid, oct(mode)), name)


def test_a_local_user_can_neither_write_nor_read_a_tasks_directories():
    """A command is searched in <task>/local before PATH, so a file that another user could put there would run as the task's user."""
    with runs.Runs() as r:
        os.chmod(r.places.base, 0o711)
        for driver, user, _ in USERS:
            alloc = r.make_alloc()
            run = running(r, "sleep", ["1000"], driver=driver, user=user, alloc=alloc)
            for path in ("web/local", "web/private", "web/tmp", "web", "alloc", "alloc/data", "alloc/tmp", ""):
                at = top(r, alloc, path)
                code, out = as_local_user("echo 'echo planted' > %s/hello || ls %s || cat %s/*" % (at, at, at))
                case.equal(code != 0 and "Permission denied" in out, True, "%s: %s" % (path, out))
            end(r, run)
            record = r.ended(r.start("hello", driver=driver, user=user, alloc=alloc))
            case.equal((record["step"], record["error"]), (exe.EXE_STEP_COMMAND, errno.ENOENT), driver)


def test_tasks_of_one_alloc_with_different_users_share_its_data():
    with runs.Runs() as r:
        alloc = r.make_alloc(more=("second",))
        for driver, user, task in (("RAW_EXEC", "daemon", "web"), ("RAW_EXEC", "games", "second"), ("EXEC", "", "web"), ("RAW_EXEC", "", "second")):
            # By the absolute path that the environment of a raw_exec task contains.
            at = "/alloc" if driver == "EXEC" else top(r, alloc, "alloc")
            r.output("sh", ["-ec", "cd %s/data; umask 0; echo %s >> said; cat said; mkdir ../tmp/%s.$$" % (at, task, task)],
                     driver=driver, user=user, alloc=alloc, task=task)
        with open(top(r, alloc, "alloc/data/said"), encoding="ascii") as f:
            case.equal(f.read().split(), ["web", "second", "web", "second"])


def test_a_task_cannot_access_the_directories_of_another_alloc():
    with runs.Runs() as r:
        other = r.make_alloc()
        alloc = r.make_alloc()
        out = r.output("sh", ["-c", "ls %s 2>&1; cd %s && id -G; ls / >/dev/null" % (top(r, other, "alloc"), top(r, alloc, "web/local"))],
                       user="daemon", alloc=alloc)
        case.contains(out, "Permission denied")
        case.equal(str(runs.group_of(alloc)) in out and str(runs.group_of(other)) not in out, True, out)
        with r.session(running(r, "sleep", ["1000"], user="daemon", alloc=alloc), "sh", ["-c", "cd %s && pwd" % top(r, alloc, "web")],
                       user="daemon") as s:
            case.equal(s.read(1).decode().strip(), top(r, alloc, "web"), "a session")


def test_an_alloc_of_an_earlier_version_keeps_its_group():
    with runs.Runs() as r:
        alloc = b"\xff" + r.make_alloc()[1:]  # both groups differ
        other = r.make_alloc()
        os.rename(top(r, other), top(r, alloc))
        os.rename("%s/logs/%s" % (r.places.data, uuid.UUID(bytes=other)), "%s/logs/%s" % (r.places.data, uuid.UUID(bytes=alloc)))
        case.equal(runs.group_of(alloc) != runs.old_group_of(alloc), True, "the groups")
        os.chown(top(r, alloc), 0, runs.old_group_of(alloc))
        out = r.output("sh", ["-c", "ls %s && id -G" % top(r, alloc, "web/local")], user="daemon", alloc=alloc)
        case.contains(out, str(runs.old_group_of(alloc)), "groups of a task")


def test_only_root_can_enter_an_alloc_whose_group_cannot_be_set():
    """As in a user namespace that does not map the group: the directory stays root's, and the start reports it."""
    with runs.Runs() as r:
        alloc = r.make_alloc()
        os.chown(top(r, alloc), 0, 0)
        record = r.ended(r.start("true", user="daemon", alloc=alloc))
        case.equal((record["step"], record["error"], record["detail"]), (exe.EXE_STEP_DIRS, errno.EACCES, 1))
        for driver in ("EXEC", "RAW_EXEC"):
            r.output("true", driver=driver, alloc=alloc)
        # A directory made by an older version is open to all.
        os.chmod(top(r, alloc), 0o711)
        r.output("ls", [top(r, alloc, "web/local")], user="daemon", alloc=alloc)


case.run(globals())
