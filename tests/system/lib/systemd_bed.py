# SPDX-License-Identifier: Apache-2.0
"""A systemd for the test, with drover installed (systemd_bed.sh)."""
import os
import subprocess
import time

from . import ROOT, build_dir, case
from .agent import children

TARGET = """[Unit]
Description=what the test bed boots
Requires=basic.target
After=basic.target
AllowIsolate=yes
"""


class Bed:
    """.run(words…) runs a command inside; unified=True hides the v1 hierarchies from it. With DROVER_BED=machine it is this machine itself, a
    guest on which drover has been installed."""

    is_machine = os.environ.get("DROVER_BED") == "machine"

    def __init__(self, files=(), unified=False):
        if self.is_machine:
            self._write("/", dict(files))
            self.run("systemctl", "daemon-reload")
            return
        self.dir = case.directory()
        self.name = "bed-" + os.urandom(4).hex()
        self._install(dict(files))
        env = {"PATH": os.environ["PATH"]}
        if unified:
            env["BED_UNIFIED"] = "1"
        self.console = open(self.dir + "/console.log", "wb")
        script = os.path.join(ROOT, "tests", "system", "lib", "systemd_bed.sh")
        self.process = subprocess.Popen(["/bin/bash", script, self.dir, self.name], stdin=subprocess.DEVNULL,
                                        stdout=self.console, stderr=self.console, env=env, start_new_session=True)
        try:
            self._wait_booted()
        except BaseException:
            self.close()
            raise

    def _install(self, files):
        top = self.dir + "/files"
        env = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS"))}
        subprocess.run(["make", "-s", "-C", ROOT, "BUILD=" + build_dir(), "DESTDIR=" + top, "install"], check=True, env=env,
                       stdout=subprocess.DEVNULL)
        files["etc/systemd/system/bed.target"] = TARGET
        self._write(top, files)

    def _write(self, top, files):
        for path, text in files.items():
            path = os.path.join(top, path)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)

    def _wait_booted(self):
        def init():
            if self.process.poll() is not None:
                raise AssertionError("the bed ended:\n" + self.log())
            try:
                return next((pid for pid in children(self.process.pid)
                             if os.readlink("/proc/%d/exe" % pid).endswith("/systemd")), None)
            except OSError:
                return None  # a command of the script, which has ended already

        self.init = case.until(init, 20, "systemd in the bed")
        case.until(lambda: self.run("systemctl", "is-active", "-q", "bed.target", check=False).returncode == 0, 30,
                   "the bed to boot")

    def log(self):
        with open(self.dir + "/console.log", encoding="utf-8", errors="replace") as f:
            return f.read()

    def run(self, *words, check=True, input=None):
        """Returns a CompletedProcess with stdout and stderr together as text."""
        argv = ["env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "SYSTEMD_PAGER=", "SYSTEMD_COLORS=0"] + list(words)
        if not self.is_machine:
            argv = ["nsenter", "-t", str(self.init), "-m", "-u", "-i", "-n", "-p", "-C", "-r", "-w"] + argv
        r = subprocess.run(argv, stdin=None if input else subprocess.DEVNULL, input=input, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, timeout=3 * case.LEAST_S, text=True, check=False)
        if check and r.returncode:
            raise AssertionError("%s: exit code %d\n%s" % (" ".join(words), r.returncode, r.stdout))
        return r

    def show(self, unit, name, check=True):
        """Returns one property of a unit."""
        return self.run("systemctl", "show", "-p", name, "--value", unit, check=check).stdout.strip()

    def journal(self, unit):
        return self.run("journalctl", "--no-pager", "-o", "short-monotonic", "-u", unit).stdout

    def power_off(self):
        """Powers off as a machine does: units stop in their order."""
        self.run("systemctl", "poweroff", "--no-block", check=False)
        try:
            self.process.wait(3 * case.LEAST_S)
        except subprocess.TimeoutExpired as e:
            raise AssertionError("the bed does not power off:\n" + self.log()) from e

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.console.close()
        for top in ["/sys/fs/cgroup"] + ["/sys/fs/cgroup/" + d for d in os.listdir("/sys/fs/cgroup")]:
            path = top + "/" + self.name
            for at, _, _ in os.walk(path, topdown=False):
                for _ in range(2000):
                    try:
                        os.rmdir(at)
                        break
                    except OSError:
                        time.sleep(0.01)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is not None and not self.is_machine:
            print("--- console ---\n%s---" % self.log()[-8000:], flush=True)
        if kind is not None:
            r = self.run("journalctl", "--no-pager", "-n", "100", check=False)
            print("--- journal ---\n%s---" % r.stdout, flush=True)
        if not self.is_machine:
            self.close()
