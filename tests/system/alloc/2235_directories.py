#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Directories and secrets of tasks in a whole agent: their size, their owners, and their removal."""

from lib import api, case, crash

SECRETS = {"CPU": 20, "MemoryMB": 20, "SecretsMB": 3}


def said(alloc, name="t"):
    return node.logs(alloc, name).decode().split()


def mounts():
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        return [line.split()[4] for line in f if "/secrets " in line and node.data in line]


def test_secrets_have_the_size_that_the_job_requests():
    """Their size is added to the memory limit of the task, as with servers."""
    for driver in ("exec", "raw_exec"):
        script = 'stat -f -c "%T %b %S %c" $NOMAD_SECRETS_DIR; echo limit $NOMAD_MEMORY_LIMIT; exec sleep 1000'
        node.register(api.job("size", "/bin/sh", ["-c", script], driver=driver, Resources=SECRETS))
        alloc = node.wait_running("size")[0]
        node.wait_said(alloc, b"limit ")
        kind, blocks, size, files, _, limit = said(alloc)
        case.equal((kind, int(blocks) * int(size), files, limit), ("tmpfs", 3 << 20, "3072", "23"), driver)
        node.purge("size")


def test_secrets_of_raw_exec_are_one_mount_while_the_task_runs():
    """The mount is not reported as a leak, none is left at the end, and a restart of the task mounts no second one."""
    node.register(api.job("mounted", User="daemon"))
    alloc = node.wait_running("mounted")[0]
    path = "%s/alloc/%s/t/secrets" % (node.data, alloc["ID"])
    case.equal(mounts(), [path])
    case.equal(node.ask("/v1/agent/leaks"), [])
    node.do("POST", "/v1/client/allocation/%s/restart" % alloc["ID"], {})
    case.until(lambda: node.ask("/v1/allocation/" + alloc["ID"])["TaskStates"]["t"]["Restarts"] == 1, case.LEAST_S, "the restart")
    node.wait_running("mounted")
    case.equal(mounts(), [path])
    node.purge("mounted")
    node.do("PUT", "/v1/system/gc")
    crash.wait_nothing_left(node)
    case.equal((mounts(), node.ask("/v1/agent/leaks")), ([], []))


def test_a_raw_exec_task_of_another_user_can_use_its_directories():
    script = 'set -e; id -un; for d in "$NOMAD_ALLOC_DIR/data" "$NOMAD_ALLOC_DIR/tmp" "$NOMAD_TASK_DIR" "$NOMAD_SECRETS_DIR"; do ' \
             'cd "$d"; echo x > "$0"; cat "$0"; done; cd ../tmp; echo y > z; echo done'
    group = {"Tasks": [api.task(name, "/bin/sh", ["-c", script + "; exec sleep 1000", name], User=name) for name in ("daemon", "games")]}
    node.register(api.job("others", group=group))
    alloc = node.wait_running("others")[0]
    for name in ("daemon", "games"):
        node.wait_said(alloc, b"done", name)
        case.equal(said(alloc, name), [name, "x", "x", "x", "x", "done"])
    node.purge("others")


def test_a_sticky_disk_is_given_to_a_successor_with_another_user():
    """The successor's user gets the directory `local`; the files in it keep their owners."""
    for driver, users in (("raw_exec", ("daemon", "games")), ("exec", ("daemon", "games"))):
        for user in users:
            script = "cd $NOMAD_TASK_DIR && echo %s > %s && ls && stat -c %%U . * && echo done; exec sleep 1000" % (user, user)
            node.register(api.job("sticky", "/bin/sh", ["-c", script], driver=driver, User=user,
                                  group={"EphemeralDisk": {"Sticky": True, "SizeMB": 100}}))
            alloc = case.until(lambda u=user: [a for a in node.wait_running("sticky") if u in str(node.ask("/v1/allocation/" + a["ID"])["Job"])],
                               case.LEAST_S, "the allocation of user " + user)[0]
            node.wait_said(alloc, b"done")
        case.equal(said(alloc), ["daemon", "games", "games", "daemon", "games", "done"], driver)
        node.purge("sticky")


with api.Node() as node:
    case.run(globals())
