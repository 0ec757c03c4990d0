#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What programs expect of the place where they run: a working directory, the machine's language, and options of their driver that have an
effect or are refused with a sentence; and which users the agent's options deny."""
from lib import agent, api, case

SHOW = ["-c", "pwd; echo lang=$LANG; ulimit -Sn; exec sleep 1000"]


def made(name, driver, user="", env=None, **config):
    job = api.job(name, "/bin/sh", SHOW, driver=driver, User=user, Env=env or {}, Meta={"where": "bin"})
    job["Job"]["TaskGroups"][0]["Tasks"][0]["Config"].update(config)
    return job


def said(node, name, *args, **config):
    node.register(made(name, *args, **config))
    alloc = node.wait_running(name)[0]
    lines = case.until(lambda: (lambda out: out if len(out) == 3 else None)(node.logs(alloc).decode().splitlines()), case.LEAST_S, "output")
    node.purge(name)
    return lines


def last_sentence(node, job):
    node.register(job)
    alloc = node.wait_allocs(job["Job"]["ID"], [(0, "run", "failed")])[0]
    return "\n".join(e["DisplayMessage"] for e in node.ask("/v1/allocation/" + alloc["ID"])["TaskStates"]["t"]["Events"])


def test_a_task_has_its_work_dir_and_the_language_of_the_machine():
    with api.Node(env={"LANG": "xx_YY.UTF-8"}) as node:
        case.equal(said(node, "plain", "exec")[:2], ["/", "lang=xx_YY.UTF-8"])
        for driver in ("exec", "raw_exec"):
            there = said(node, "there", driver, env={"LANG": "C"}, work_dir="/usr/${NOMAD_META_where}")
            case.equal(there[:2], ["/usr/bin", "lang=C"])
            node.refused(400, 'config.work_dir must be an absolute path, not "there"', "POST", "/v1/jobs", made("wrong", driver, work_dir="there"))
            case.contains(last_sentence(node, made("none", driver, work_dir="/none")), "enter the working directory: No such file")
            node.purge("none")


def test_options_without_an_effect_are_refused_with_the_reason():
    with api.Node() as node:
        for key, value in (("oom_score_adj", 5), ("cgroup_v2_override", "x"), ("cgroup_v1_override", {"pids": "x"}), ("denied_envvars", ["A*"])):
            for driver in ("exec", "raw_exec"):
                node.refused(400, "config.%s is not supported: " % key, "POST", "/v1/jobs", made("refused", driver, **{key: value}))


def test_the_agents_options_deny_users():
    with api.Node(agent.config_args('client { options { "user.denylist" = "games,root"\n "user.checked_drivers" = "exec,raw_exec" } }')) as node:
        for user, driver, name in (("games", "exec", "games"), ("games", "raw_exec", "games"), ("5", "exec", "games"), ("", "raw_exec", "root")):
            case.contains(last_sentence(node, made("denied", driver, user)), 'running as user "%s" is disallowed: user.denylist names it' % name)
            node.purge("denied")
        said(node, "allowed", "raw_exec", "daemon")
    with api.Node() as node:
        said(node, "root", "raw_exec")
        case.contains(last_sentence(node, made("denied", "exec", "root")), 'running as user "root" is disallowed')


case.run(globals())
