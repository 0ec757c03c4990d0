# SPDX-License-Identifier: Apache-2.0
"""The fetcher alone: repositories by git, over http, git's own protocol and ssh, and repositories that misbehave."""
import base64
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import threading

from lib import build_dir, case, fetch, helper, web
from lib.helper import mount, umount

ENV = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b",
       "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b", "GIT_CONFIG_COUNT": "2", "GIT_CONFIG_KEY_0": "protocol.file.allow",
       "GIT_CONFIG_VALUE_0": "always", "GIT_CONFIG_KEY_1": "safe.directory", "GIT_CONFIG_VALUE_1": "*"}
PASSWORD = "secret-word"
stop = threading.Event()


def git(*words, cwd=None):
    return subprocess.run(["git", *words], cwd=cwd or work, env=ENV, check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE).stdout.decode().strip()


def commit(name, text):
    os.makedirs(os.path.dirname(work + "/" + name), exist_ok=True)
    with open(work + "/" + name, "w", encoding="utf-8") as file:
        file.write(text)
    git("add", "-A")
    git("commit", "-q", "-m", name)
    return git("rev-parse", "HEAD")


def make_submodule(name, url):
    """Makes the repository NAME.git, whose directory sub is at the url."""
    made = base + "/" + name
    git("clone", "-q", root + "/repo.git", made)
    case.write(made + "/.gitmodules", '[submodule "sub"]\n\tpath = sub\n\turl = %s\n' % url)
    git("add", ".gitmodules", cwd=made)
    git("update-index", "--add", "--cacheinfo", "160000," + commits[2] + ",sub", cwd=made)
    git("commit", "-q", "-m", "sub", cwd=made)
    git("clone", "-q", "--bare", made, root + "/%s.git" % name)


def backend(h):
    """Answers as git's own server does: by CGI."""
    path, _, query = h.path.partition("?")
    body = h.rfile.read(int(h.headers.get("Content-Length") or 0))
    env = dict(ENV, GIT_PROJECT_ROOT=root, GIT_HTTP_EXPORT_ALL="1", PATH_INFO=path, QUERY_STRING=query, REQUEST_METHOD=h.command,
               CONTENT_TYPE=h.headers.get("Content-Type", ""), CONTENT_LENGTH=str(len(body)), GIT_PROTOCOL=h.headers.get("Git-Protocol", ""),
               HTTP_CONTENT_ENCODING=h.headers.get("Content-Encoding", ""))
    out = subprocess.run(["/usr/lib/git-core/git-http-backend"], input=body, stdout=subprocess.PIPE, env=env, check=False).stdout
    head, _, rest = out.partition(b"\r\n\r\n")
    lines = [line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line]
    status = next((int(v.split()[0]) for k, v in lines if k == "Status"), 200)
    h.reply(rest, status, [(k, v) for k, v in lines if k != "Status"])


def private(h):
    if h.headers.get("Authorization") != "Basic " + base64.b64encode(b"me:" + PASSWORD.encode()).decode():
        h.reply(b"", 401, [("WWW-Authenticate", "Basic realm=x")])
    else:
        h.path = h.path.replace("/private", "", 1)
        backend(h)


class Server(web.Server):
    """Serves the repositories below root, for GET and POST."""

    def __init__(self):
        super().__init__({})
        self.http.RequestHandlerClass = Handler


class Handler(web.Handler):
    def do_GET(self):  # pylint: disable=invalid-name
        self.server.requests.append((self.path, dict(self.headers)))
        if self.path.startswith("/private/"):
            private(self)
        elif self.path.startswith("/endless"):
            self.close_connection = True
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/x-git-upload-pack-advertisement\r\n\r\n")
            while not stop.is_set():
                self.wfile.write(b"0010# service=xx" * 4096)
        elif self.path.startswith("/silent"):
            stop.wait()
        elif self.path.startswith("/trickle"):  # fast enough for git, which would wait for ever
            self.close_connection = True
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/x-git-upload-pack-advertisement\r\n\r\n")
            while not stop.wait(0.1):
                self.wfile.write(b"0")
        elif self.path.startswith("/garbage"):
            self.reply(os.urandom(5000), 200, [("Content-Type", "application/x-git-upload-pack-advertisement")])
        elif self.path.startswith("/to_file"):
            self.reply(b"", 302, [("Location", "file:///etc/")])
        else:
            backend(self)

    do_POST = do_GET


def without_git(tree):
    return {name: what for name, what in tree.items() if name != ".git" and not name.startswith(".git/")} if isinstance(tree, dict) else tree


def get(source, **more):
    return without_git(f.get(source, **more))


def test_a_repository_over_http():
    tree = f.get("git::" + server.url + "/repo.git")
    case.equal(without_git(tree), {"a.txt": b"3", "d": None, "d/in.txt": b"inside", "d/l": ("link", "../a.txt")})
    case.equal(".git" in tree, True, "its directory .git")


def test_branches_tags_commits_and_depth():
    url = "git::" + server.url + "/repo.git"
    for ref, text in (("main", b"3"), ("v1", b"1"), ("other", b"other"), (commits[1], b"2"), (commits[1][:10], b"2"), ("refs/tags/v1", b"1")):
        case.equal(get(url + "?ref=" + ref)["a.txt"], text, ref)
        case.equal(get(url, options={"ref": ref})["a.txt"], text, ref)
    for ref, text in (("main", b"3"), ("v1", b"1"), ("other", b"other")):
        tree = f.get(url + "?depth=1&ref=" + ref)
        case.equal((tree["a.txt"], ".git/shallow" in tree), (text, True), ref)
    case.equal(get(url + "?depth=1")["a.txt"], b"3")
    case.contains(get(url + "?ref=none"), "git failed with code")
    case.contains(get(url + "?depth=1&ref=" + commits[1]), "git failed with code")


def test_a_subdirectory():
    url = "git::" + server.url + "/repo.git"
    server.requests.clear()
    case.equal(f.get(url + "//d?ref=main"), {"in.txt": b"inside", "l": ("link", "../a.txt")})
    case.equal(f.get(url + "//none"), 'the artifact has no subdirectory "none"')
    case.contains(f.get(url + "//../../etc"), 'contains ".."')
    case.contains(f.get(url + "//d/l"), "is not a directory")


def test_a_repository_behind_a_password_that_nobody_sees():
    url = server.url.replace("//", "//me:%s@" % PASSWORD)
    tree = f.get("git::" + url + "/private/repo.git", keep=True)
    case.equal(without_git(tree)["a.txt"], b"3")
    case.equal([name for name, what in tree.items() if isinstance(what, bytes) and PASSWORD.encode() in what], [], "files with the password")
    answer = f.get("git::" + url.replace(PASSWORD, "wrong-word") + "/private/repo.git")
    case.contains(answer, "git failed with code 128")
    case.equal("wrong-word" in answer or PASSWORD in f.helper.log(), False, answer)
    # No process shows it to other users while git runs.
    f.send("git::" + url + "/silent/repo.git")
    seen = case.until(lambda: [line for line in arguments() if b"remote-http" in line], 10, "git")
    case.equal([line for line in arguments() if PASSWORD.encode() in line], [], "arguments of %s" % seen)
    for pid in os.listdir("/proc"):
        if pid.isdigit() and b"git" in line_of(pid):
            case.equal(os.stat("/proc/%s/environ" % pid).st_mode & 0o077, 0)
    # Nor does a core: the limit is 1, because a program that gets cores gets those that are limited to 0, too.
    limits = [core_limit(pid) for pid in processes_of_git()]
    case.equal((len(limits) > 1, set(map(tuple, limits))), (True, {("1", "1")}), "limits of core dumps")
    f.helper.kill()
    f.helper.wait()
    no_git()


def test_a_submodule_elsewhere_does_not_get_the_password():
    seen = []

    def record(h):
        seen.append(h.headers.get("Authorization"))
        h.reply(b"", 401, [("WWW-Authenticate", "Basic realm=x")])
    with again(), web.Server({}) as elsewhere:
        elsewhere.http.RequestHandlerClass = type("Elsewhere", (web.Handler,), {"do_GET": record})
        make_submodule("far", elsewhere.url + "/sub.git")
        source = "git::%s/private/%%s.git" % server.url.replace("//", "//me:%s@" % PASSWORD)
        case.contains(get(source % "far"), "git failed with code")
        case.equal(set(seen), {None}, "what the other server got")
        # One beside it does.
        make_submodule("near", server.url + "/private/repo.git")
        tree = get(source % "near")
        case.equal(tree.get("sub/a.txt") if isinstance(tree, dict) else tree, b"3")


def line_of(pid):
    try:
        with open("/proc/%s/cmdline" % pid, "rb") as file:
            return file.read()
    except OSError:
        return b""


def arguments():
    return [line_of(pid) for pid in os.listdir("/proc") if pid.isdigit()]


def processes_of_git():
    """Returns the pids of git and of the programs that it has started."""
    return [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and line_of(pid).startswith((b"git", b"/usr/lib/git-core", b"/usr/bin/ssh"))]


def core_limit(pid):
    with open("/proc/%d/limits" % pid, encoding="ascii") as file:
        return next(line.split()[4:6] for line in file if line.startswith("Max core file size"))


def no_git():
    case.until(lambda: not processes_of_git(), 20, "git to end")


def parent(pid):
    with open("/proc/%d/stat" % pid, encoding="ascii", errors="replace") as file:
        return int(file.read().rsplit(")", 1)[1].split()[1])


def test_git_ends_with_its_worker_and_with_the_fetcher():
    with again():
        for victim in ("worker", "guard", "git", "fetcher"):
            staging = f.send("git::" + server.url + "/trickle/x.git")
            case.until(lambda: [line for line in arguments() if b"remote-http" in line], 10, "git")
            top = next(pid for pid in processes_of_git() if line_of(pid).startswith(b"git\0clone"))
            pid = {"git": top, "guard": parent(top), "worker": parent(parent(top)), "fetcher": f.helper.pid}[victim]
            case.equal(parent(parent(parent(top))), f.helper.pid)
            os.kill(pid, signal.SIGKILL)
            no_git()
            if victim != "fetcher":
                case.contains(f.wait(), "died" if victim == "worker" else "git failed with code 137", victim)
                shutil.rmtree(f.path(staging))
        f.restart()
        case.equal(get("git::" + server.url + "/repo.git")["a.txt"], b"3")


def test_another_agent_with_the_same_users_ends_nothing():
    with again():
        f.send("git::" + server.url + "/trickle/x.git")
        case.until(lambda: [line for line in arguments() if b"remote-http" in line], 10, "git")
        before = processes_of_git()
        with fetch.Fetcher(uids=f.places.uid) as other:
            case.equal(without_git(other.get("git::" + server.url + "/repo.git"))["a.txt"], b"3")
        case.equal(set(before) <= set(processes_of_git()), True, "git of the first agent still runs")
        f.helper.kill()
        f.helper.wait()
        no_git()


def again():
    global f  # pylint: disable=global-statement
    f = fetch.Fetcher()
    return f


def test_the_protocol_of_git():
    with again():
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        daemon = subprocess.Popen(["/usr/lib/git-core/git-daemon", "--listen=127.0.0.1", "--port=%d" % port, "--base-path=" + root, "--export-all", "--reuseaddr"],
                                  env=ENV, stderr=subprocess.DEVNULL)
        try:
            url = "git::git://127.0.0.1:%d/repo.git" % port
            case.until(lambda: isinstance(get(url), dict), 20, "git daemon")
            case.equal(get(url + "?ref=v1")["a.txt"], b"1")
        finally:
            daemon.kill()
            daemon.wait()


def test_arguments_that_look_like_options():
    """CVE-2024-3817, CVE-2022-30324 and their kin."""
    url = "git::" + server.url + "/repo.git"
    with again():
        for ref in ("--upload-pack=touch /tmp/x", "-c", "a b", "a\x7fb", "a..b", "a:b", "x" * 300):
            case.contains(get(url, options={"ref": ref}), "control" if "\x7f" in ref else "ref is not the name of a branch, tag or commit", ref)
        for source in ("git::--upload-pack=x", "git::-x", "git::ext::sh -c x", "git::file:///etc", "git::/etc", "git::ssh://-oProxyCommand=x/y",
                       "git::fd::17/foo", "git::ext::x"):
            answer = get(source)
            case.equal(isinstance(answer, str), True, "%s: %r" % (source, answer))
        for name in ("depth", "ref"):
            case.equal(isinstance(get(url, options={name: "-1"}), (str, dict)), True)
        case.contains(get(url, options={"checksum": "md5:" + "0" * 32}), "a repository has no checksum")
        case.contains(get(url, mode="file"), "a repository is a directory")
        case.contains(get(url, options={"sshkey": "%%%"}), "sshkey is not a key in base64")


def test_repositories_that_misbehave():
    with again():
        case.contains(get("git::" + server.url + "/none.git"), "git failed with code 128: fatal: ")
        case.contains(get("git::" + server.url + "/garbage/x.git"), "git failed with code 128")
        case.contains(get("git::" + server.url + "/to_file/x.git"), "git failed with code 128")
        case.contains(get("git::" + server.url + "/silent/x.git", git_ms=1500), "git did not end in time")
        answer = get("git::" + server.url + "/endless/x.git", git_ms=3000)
        case.equal(isinstance(answer, str), True, str(answer)[:200])
        case.contains(get("git::" + server.url + "/repo.git", max_unpacked=3000), "allowed")
        big = os.urandom(1 << 20)
        with open(work + "/big", "wb") as file:
            file.write(big)
        git("add", "-A")
        git("commit", "-q", "-m", "big")
        git("push", "-q", root + "/big.git", "HEAD:refs/heads/main")
        answer = get("git::" + server.url + "/big.git", max_unpacked=1 << 19)
        case.equal(isinstance(answer, str), True, "a file of 1 MiB")
        case.equal(get("git::" + server.url + "/big.git")["big"], big)


def test_a_slow_repository_is_given_up_while_others_wait():
    with again():
        f.send("git::" + server.url + "/trickle/x.git")
        case.until(lambda: [line for line in arguments() if b"remote-http" in line], 10, "git")
        f.ipc.send("FET_OTHERS_WAIT_EV", {"slow_ms": 1})
        case.contains(f.wait(), "while other artifacts wait")
        no_git()


def test_hooks_and_filters_of_a_repository_do_not_run():
    marker = f.places.base + "/ran"
    with again():
        case.equal(isinstance(get("git::" + server.url + "/evil.git"), (str, dict)), True)
        case.equal(os.path.exists(marker), False)


def test_a_submodule():
    with again():
        tree = get("git::" + server.url + "/super.git")
        case.equal(tree.get("sub/a.txt") if isinstance(tree, dict) else tree, b"3")
        # One that names a file of the machine is refused.
        case.contains(get("git::" + server.url + "/local.git"), "git failed with code")


def keys():
    """Makes a key for the host and one for the user."""
    for name in ("host", "user"):
        for path in (base + "/" + name, base + "/%s.pub" % name):
            if os.path.exists(path):
                os.remove(path)
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "%s/%s" % (base, name)], check=True)


@contextlib.contextmanager
def prepared(uid):
    """For ssh, its own user must be in /etc/passwd; sshd needs its user and a directory. In the mount namespace of this test."""
    with open("/etc/passwd", encoding="utf-8") as file:
        passwd = "".join(line for line in file if not line.startswith(("sshd:", "git:")))
    case.write(base + "/passwd", passwd + "fetcher:x:%d:%d::/nonexistent:/bin/false\nsshd:x:64999:65534::/run/sshd:/bin/false\ngit:x:0:0::/:/bin/sh\n" % (uid, uid))
    mounted = []
    try:
        for source, target, kind, flags in ((base + "/passwd", "/etc/passwd", "", 4096), ("none", "/etc/ssh", "tmpfs", 0), ("none", "/run", "tmpfs", 0)):
            mount(source, target, kind, flags)
            mounted.append(target)
        os.mkdir("/run/sshd")
        yield
    finally:
        for target in reversed(mounted):
            umount(target, 2)


def know(port, key, *words):
    """Makes the host's key known to the machine, with the words of ssh-keygen."""
    with open("%s/%s.pub" % (base, key), encoding="ascii") as file:
        case.write("/etc/ssh/ssh_known_hosts", "%s %s" % ("127.0.0.1" if port == 22 else "[127.0.0.1]:%d" % port, file.read()))
    if words:
        subprocess.run(["ssh-keygen", *words, "-f", "/etc/ssh/ssh_known_hosts"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.chmod("/etc/ssh/ssh_known_hosts", 0o644)


def encoded(key):
    with open("%s/%s" % (base, key), "rb") as file:
        return base64.b64encode(file.read()).decode()


@contextlib.contextmanager
def secure_shell(port=0):
    """An sshd that admits the key "user". The context is its port."""
    program = next((p for p in ("/usr/sbin/sshd", build_dir() + "/sshd/usr/sbin/sshd") if os.path.exists(p)), None)
    if not program:
        case.skip("there is no sshd: make check-deps unpacks one")
    keys()
    if not port:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
    shutil.copy(base + "/user.pub", base + "/authorized")
    case.write(base + "/sshd", "HostKey %s/host\nAuthorizedKeysFile %s/authorized\nStrictModes no\nUsePAM no\nPidFile none\n" % (base, base))
    with again(), prepared(f.places.uid["fetcher"]):
        sshd = subprocess.Popen([program, "-D", "-e", "-f", base + "/sshd", "-p", str(port), "-o", "ListenAddress=127.0.0.1"], stderr=subprocess.DEVNULL)
        try:
            f.restart()  # its rules name the /etc/ssh of its start
            case.until(lambda: not socket.socket().connect_ex(("127.0.0.1", port)), 20, "sshd")
            yield port
        finally:
            sshd.kill()
            sshd.wait()


def test_ssh_with_a_key():
    with secure_shell() as port:
        url = "git::ssh://root@127.0.0.1:%d%s/repo.git" % (port, root)
        know(port, "host")
        staging = f.send(url + "?ref=v1", options={"sshkey": encoded("user")})
        case.equal(isinstance(f.wait(), dict), True)
        case.equal(sorted(os.listdir(f.path(staging))), ["done", "out"], "the key is removed")
        case.equal(without_git(fetch.tree_of(f.path(staging) + "/out"))["a.txt"], b"1")
        shutil.rmtree(f.path(staging))
        # In the source, where "+" is not escaped.
        case.equal(get(url + "?sshkey=" + encoded("user"))["a.txt"], b"3")
        tree = f.get(url + "?depth=1&ref=other", options={"sshkey": encoded("user")})
        case.equal((tree["a.txt"], ".git/shallow" in tree), (b"other", True))
        case.equal([name for name, what in tree.items() if isinstance(what, bytes) and b"PRIVATE KEY" in what], [], "files with the key")


def test_ssh_without_the_key_or_with_another():
    with secure_shell() as port:
        url = "git::ssh://root@127.0.0.1:%d%s/repo.git" % (port, root)
        know(port, "host")
        denied = "git failed with code 128: root@127.0.0.1: Permission denied"
        case.contains(get(url), denied)
        for key, words in (("other", ("-N", "")), ("locked", ("-N", "a phrase"))):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", *words, "-f", base + "/" + key], check=True)
            staging = f.send(url, options={"sshkey": encoded(key)})
            case.contains(f.wait(), denied, key)
            case.equal(os.path.exists(f.path(staging) + "/key"), False, "the key is removed")
        answer = get(url, options={"sshkey": base64.b64encode(b"no key at all").decode()})
        case.contains(answer, "git failed with code 128")
        case.equal("no key at all" in answer + f.helper.log(), False, answer)
        case.contains(get(url.replace("repo.git", "none.git"), options={"sshkey": encoded("user")}), "git failed with code 128")


def test_ssh_knows_the_hosts_of_the_machine_only():
    with secure_shell() as port:
        url = "git::ssh://root@127.0.0.1:%d%s/repo.git" % (port, root)
        options = {"sshkey": encoded("user")}
        unknown = "ssh does not know the host: add its key to /etc/ssh/ssh_known_hosts"
        case.equal(get(url, options=options), unknown, "without the file")
        know(port + 1, "host")
        case.equal(get(url, options=options), unknown, "of another port")
        know(port, "user")
        case.contains(get(url, options=options), "the host's key is not that of /etc/ssh/ssh_known_hosts", "another key")
        know(port, "host", "-H")
        case.equal(get(url, options=options)["a.txt"], b"3", "hashed names")


def test_the_short_form_of_ssh():
    with secure_shell(22) as port:
        know(port, "host")
        case.equal(get("git@127.0.0.1:%s/repo.git" % root, options={"sshkey": encoded("user")})["a.txt"], b"3")
        case.equal(get("git@127.0.0.1:%s/repo.git//d?ref=main" % root, options={"sshkey": encoded("user")}), {"in.txt": b"inside", "l": ("link", "../a.txt")})


def test_the_key_of_ssh_while_it_is_used():
    """Only its own user can read it, and the argument of no process has it."""
    with secure_shell() as port:
        os.makedirs(root + "/slow")
        shell = case.write(base + "/shell", "#!/bin/sh\nexec sleep 1000\n")
        os.chmod(shell, 0o755)
        with open(base + "/sshd", "a", encoding="ascii") as file:
            file.write("ForceCommand %s\n" % shell)
        know(port, "host")
        staging = f.send("git::ssh://root@127.0.0.1:%d%s/repo.git" % (port, root), options={"sshkey": encoded("user")})
        key = f.path(staging) + "/key"
        case.until(lambda: [line for line in arguments() if b"/usr/bin/ssh" in line], 20, "ssh")
        case.equal((os.stat(key).st_mode & 0o7777, os.stat(key).st_uid), (0o600, f.places.uid["fetcher"]))
        case.equal([line for line in arguments() if encoded("user").encode()[:40] in line or b"PRIVATE" in line], [], "arguments")
        f.ipc.send("FET_ARTIFACT_CANCEL_EV", {"staging": staging})
        case.equal(isinstance(f.wait(), str), True)
        no_git()


base = case.directory()
root, work = base + "/root", base + "/work"
os.makedirs(root)
git("init", "-q", "-b", "main", work, cwd=base)
commits = [commit("a.txt", "1")]
git("tag", "v1")
commits.append(commit("a.txt", "2"))
git("checkout", "-q", "-b", "other")
commit("a.txt", "other")
git("checkout", "-q", "main")
commit("d/in.txt", "inside")
os.symlink("../a.txt", work + "/d/l")
commits.append(commit("a.txt", "3"))
git("clone", "-q", "--bare", work, root + "/repo.git")
git("init", "-q", "--bare", "-b", "main", root + "/big.git", cwd=base)
os.chmod(base, 0o755)
with Server() as server:
    try:
        make_submodule("super", server.url + "/repo.git")
        make_submodule("local", "file:///etc")
        git("clone", "-q", root + "/repo.git", base + "/evil")
        os.makedirs(base + "/evil/hooks")
        case.write(base + "/evil/.gitattributes", "* filter=x\n")
        case.write(base + "/evil/hooks/post-checkout", "#!/bin/sh\ntouch %s/ran\n" % base)
        os.chmod(base + "/evil/hooks/post-checkout", 0o755)
        git("add", "-A", cwd=base + "/evil")
        git("commit", "-q", "-m", "evil", cwd=base + "/evil")
        git("clone", "-q", "--bare", base + "/evil", root + "/evil.git")
        with fetch.Fetcher() as f:
            case.run(globals())
    finally:
        stop.set()
