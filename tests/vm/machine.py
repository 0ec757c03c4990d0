# SPDX-License-Identifier: Apache-2.0
"""The guest: Debian 12 with its own kernel, cgroup v2 and systemd (image.sh), emulated by qemu.

    with machine.Machine(build, payload) as m:
        m.wait(600)
"""
import os
import subprocess
import sys
import tarfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
OUT_SIZE = 64 << 20


class Machine:
    """payload: {name in the guest's /root/in: path or contents as bytes}; the guest runs "vm-main". keep: writes to the disk are kept in
    .disk, from which the next Machine(disk=…) boots."""

    def __init__(self, build, payload=None, keep=False, disk=None, memory=1024, show=True):
        self.dir = os.path.join(build, "vm")
        subprocess.run([os.path.join(HERE, "image.sh"), self.dir], check=True)
        self.show, self.log, self.lock = show, "", threading.Lock()
        self.payload, self.out = self.dir + "/in.tar", self.dir + "/out.tar"
        self.disk = disk or self.dir + "/root.img"
        if keep and not disk:
            self.disk = self.dir + "/kept.img"
            subprocess.run(["cp", "--sparse=always", self.dir + "/root.img", self.disk], check=True)
        if payload is not None:
            self._pack(payload)
        with open(self.out, "wb") as f:
            f.truncate(OUT_SIZE)
        self.process = subprocess.Popen(self._argv(keep, memory), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT)
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _pack(self, payload):
        with tarfile.open(self.payload, "w") as tar:
            for name, source in payload.items():
                if isinstance(source, bytes):
                    path = self.dir + "/payload"
                    with open(path, "wb") as f:
                        f.write(source)
                    os.chmod(path, 0o755)
                    tar.add(path, name)
                else:
                    tar.add(source, name)

    def _argv(self, keep, memory):
        argv = ["qemu-system-x86_64", "-M", "q35,accel=tcg", "-cpu", "max", "-smp", "2", "-m", str(memory), "-nographic",
                "-no-reboot", "-nodefaults", "-serial", "stdio", "-kernel", self.dir + "/kernel",
                "-initrd", self.dir + "/initrd.gz",
                "-append", "console=ttyS0 panic=-1 loglevel=3 systemd.mask=serial-getty@ttyS0.service systemd.show_status=0"]
        for i, (path, options) in enumerate(((self.disk, "" if keep else ",snapshot=on"), (self.payload, ",readonly=on"),
                                             (self.out, ""))):
            argv += ["-drive", "id=d%d,file=%s,format=raw,if=none,cache=unsafe%s" % (i, path, options),
                     "-device", "virtio-blk-pci,drive=d%d" % i]
        return argv

    def _read(self):
        for line in self.process.stdout:
            text = line.decode(errors="replace").replace("\r", "")
            with self.lock:
                self.log += text
            if self.show:
                sys.stdout.write("vm| " + text)
                sys.stdout.flush()

    def said(self, text):
        with self.lock:
            return text in self.log

    def wait(self, seconds):
        """Waits until the guest has powered off."""
        self.process.wait(seconds)
        self.reader.join()

    def kill(self):
        """Kills the guest, as a power cut."""
        self.process.kill()
        self.process.wait()
        self.reader.join()

    def results(self, directory):
        """Unpacks the files that the guest wrote to out/."""
        with tarfile.open(self.out, "r:", ignore_zeros=False) as tar:
            tar.extractall(directory)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.kill()
