#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What programs expect of the place where they run: a working directory, the machine's language, and options of their driver that have an
effect or are refused with a sentence; and which users the agent's options deny."""
from lib import agent, api, case
from lib.websocket import Exec

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
        for key, value in (("cgroup_v2_override", "x"), ("cgroup_v1_override", [{"pids": "x"}])):
            for driver in ("exec", "raw_exec"):
                node.refused(400, "config.%s is not supported: drover keeps each task's limits in a cgroup" % key, "POST", "/v1/jobs",
                             made("refused", driver, **{key: value}))
        for key, value in (("oom_score_adj", 5), ("denied_envvars", ["A*"])):
            node.refused(400, "config.%s is not supported: only raw_exec has it" % key, "POST", "/v1/jobs", made("refused", "exec", **{key: value}))


def test_a_task_may_ask_to_be_killed_first():
    look = ["-c", "cat /proc/self/oom_score_adj; exec sleep 1000"]

    def job(score, user=""):
        of = made("score", "raw_exec", user, oom_score_adj=score, args=look)
        of["Job"]["TaskGroups"][0]["Tasks"][0]["Meta"]["score"] = "300"
        return of
    with api.Node() as node:
        for score, wanted, user in ((500, "500", ""), (0, "0", ""), (1000, "1000", "nobody"), ("7", "7", ""), ("${NOMAD_META_score}", "300", ""),
                                    ("${NOMAD_META_score * 2}", "600", "nobody"), (None, "0", "")):
            node.register(job(score, user))
            alloc = node.wait_running("score")[0]
            case.until(lambda: node.logs(alloc).decode() == wanted + "\n", case.LEAST_S, "oom_score_adj %s" % wanted)
            with Exec(node, alloc["ID"], ["cat", "/proc/self/oom_score_adj"]) as s:
                case.equal(s.end()[0].decode(), wanted + "\n", "oom_score_adj of a session")
            node.purge("score")
        for score in (-1, 1001, 1.5, "x", "5x", "", [5], True):
            node.refused(400, "config.oom_score_adj must be a whole number from 0 to 1000", "POST", "/v1/jobs", job(score))
        case.contains(last_sentence(node, job("${NOMAD_META_score - 301}")), "config.oom_score_adj must be a whole number from 0 to 1000")


def test_a_task_may_deny_variables():
    env = {"AWS_KEY": "k", "AWS_REGION": "r", "KEPT": "AWS", "A": "${AWS_KEY}"}

    def names(alloc):
        return {line.partition("=")[0] for line in node.logs(alloc).decode().splitlines()}
    with api.Node(env={"LANG": "C.UTF-8"}) as node:
        for denied, gone in ((None, set()), ([], set()), (["AWS_*"], {"AWS_KEY", "AWS_REGION"}), (["*_REGION", "LANG", "A", "nobody"], {"AWS_REGION", "LANG", "A"}),
                             (["NOMAD_*", "${upper(\"kept\")}"], {"NOMAD_", "KEPT"}), ("${[\"KEPT\"]}", {"KEPT"})):
            node.register(made("deny", "raw_exec", env=env, denied_envvars=denied, command="/bin/sh", args=["-c", "env; echo end; exec sleep 1000"]))
            alloc = node.wait_running("deny")[0]
            case.until(lambda: "end" in names(alloc), case.LEAST_S, "the task's variables")
            for name in (*env, "LANG", "NOMAD_JOB_ID", "PATH", "HOME"):
                case.equal(name in names(alloc), not any(name == g or (g == "NOMAD_" and name.startswith(g)) for g in gone), "%s: %s" % (denied, name))
            with Exec(node, alloc["ID"], ["env"]) as s:
                out = s.end()[0].decode()
            case.equal("AWS_REGION=" in out, "AWS_REGION" not in gone, "a variable of a session")
            node.purge("deny")
        for wrong in ("AWS_*", [["a"]], {"a": "b"}):
            node.refused(400, "config.denied_envvars", "POST", "/v1/jobs", made("deny", "raw_exec", denied_envvars=wrong))


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
