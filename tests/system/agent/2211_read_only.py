#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A file system that became read-only, as after an I/O error: changes are refused with the reason, and tasks keep running."""
import os
import signal
import subprocess

from lib import agent, api, case, crash, helper

MNT_DETACH = 2
READ_ONLY = "Read-only file system"


class Disk:
    """An ext4 file system on a loop device, mounted at .path."""

    def __enter__(self):
        self.path, image = case.directory() + "/disk", case.directory() + "/image"
        os.mkdir(self.path)
        with open(image, "wb") as f:
            f.truncate(64 << 20)
        subprocess.run(["/usr/sbin/mkfs.ext4", "-q", "-O", "^has_journal", image], check=True)
        made = subprocess.run(["/usr/sbin/losetup", "--find", "--show", image], stdout=subprocess.PIPE, check=False)
        if made.returncode != 0:
            case.skip("no loop devices here")
        self.device = made.stdout.decode().strip()
        helper.mount(self.device, self.path, "ext4", 0, "errors=remount-ro")
        return self

    def fail(self):
        """Causes an error, after which the kernel makes it read-only. Returns whether it did: some 6.1 kernels leave it writable."""
        with open("/sys/fs/ext4/%s/trigger_fs_error" % os.path.basename(self.device), "w", encoding="ascii") as f:
            f.write("test")
        try:
            os.mkdir(self.path + "/x")
        except OSError:
            return True
        return False

    def __exit__(self, *_):
        helper.umount(self.path, MNT_DETACH)
        subprocess.run(["/usr/sbin/losetup", "--detach", self.device], check=True)


def running():
    return [bool(agent.arguments(pid)) for pid in tasks]


def test_changes_are_refused_and_reads_answer():
    case.equal(disk.fail(), True, "whether the file system is read-only")

    def refused():
        answer = node.request("POST", "/v1/jobs", api.job("late"))
        case.equal(answer.status in (200, 507), True, "%d %s" % (answer.status, answer.text))
        return answer.status == 507 and answer
    case.contains(case.until(refused, 20, "a change to be refused").text, READ_ONLY)
    case.contains(node.request("DELETE", "/v1/job/early").text, READ_ONLY)
    case.equal([a["ClientStatus"] for a in node.allocs("early")], ["running"], "running allocations")
    answer = case.until(lambda: (a := node.request("GET", "/v1/agent/health")).status == 500 and a, 10, "bad health")
    case.contains(answer.json["client"]["message"], READ_ONLY)
    case.equal(running(), [True], "the task")


def test_a_supervisor_started_on_it_reports_the_reason_and_changes_nothing():
    before = len(node.log().splitlines())
    node.kill("supervisor")
    case.until(lambda: any(READ_ONLY in line for line in node.log().splitlines()[before:]), 20, "the reason in the log")
    case.equal(node.process.poll(), None, "whether the launcher has ended")
    case.equal(running(), [True], "the task")


def test_the_agent_can_be_stopped_with_a_second_signal():
    """It cannot drain, because that needs a write to the database. The second signal says what happens to the tasks."""
    node.process.send_signal(signal.SIGTERM)
    node.wait_log("draining")
    case.equal(node.stop(), 0, "exit code")
    case.contains(node.log(), "not waiting any longer for the end of the remaining tasks")
    case.until(lambda: not any(running()), 10, "the task's end")


with Disk() as first:
    if not first.fail():
        case.skip("this kernel leaves a file system writable after an error")
with Disk() as disk, api.Node(data=disk.path + "/data") as node:
    node.register(api.job("early"))
    node.wait_running("early")
    tasks = [r["task_pid"] for r in crash.records(node).values()]
    case.run(globals())
