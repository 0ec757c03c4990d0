# SPDX-License-Identifier: Apache-2.0
"""The command line of drover: help, flags, addresses, exit codes."""
import os
import json
import re
import shutil
import socket
import subprocess

from lib import ROOT, binary, case
from lib.fake_api import FakeApi, alloc, run_command


def commands():
    """Returns every command that the help lists."""
    out = run_command(["help"]).out
    return re.findall(r"^  ([\w-]+(?: \w+)*)  +\S", out, re.M)


def test_help_lists_every_command_and_each_has_help():
    found = commands()
    for wanted in ("action", "agent", "job action", "job run", "job stop", "job status", "alloc status", "alloc exec", "alloc fs", "alloc logs", "alloc stop", "node status",
                   "node drain", "status", "volume create", "volume status", "volume delete", "plugin status", "leaks",
                   "version"):
        case.equal(wanted in found, True, wanted)
    for words in found:
        for flag in ("-h", "-help", "--help"):
            r = run_command(words.split() + [flag])
            case.equal((r.code, r.err), (0, ""), words)
            case.contains(r.out, "Usage: drover " + words)
        case.equal(run_command(["help"] + words.split()).out, r.out)


def test_drover_without_a_verb_prints_help_and_fails():
    for words in ([], ["job"], ["alloc"], ["node", "meta"], ["job", "tag"]):
        r = run_command(words)
        case.equal(r.code, 1)
        case.contains(r.out, "Commands:")
    case.equal(run_command(["--help"]).code, 0)
    case.equal(run_command(["job", "-h"]).code, 0)


def test_a_wrong_command_line_gives_one_error_message_and_exit_code_1():
    for words, part in ((["frobnicate"], "unknown command"), (["job", "fly"], "drover help job"), (["job", "tag", "fly"], '"job tag fly": see drover help job tag'),
                        (["job", "run", "-frob", "x"], "unknown flag -frob"), (["job", "run"], "usage: drover job run"),
                        (["job", "status", "a", "b"], "usage:"), (["alloc", "logs", "-n", "x", "abc"], "-n must be a number"),
                        (["alloc", "logs", "-n"], "-n needs a value"), (["status", "-timeout", "soon"], "-timeout must be a time"),
                        (["job", "stop", "-purge=maybe", "x"], "must be true or false"),
                        (["agent", "-frob"], "unknown flag -frob"), (["agent", "-data-dir"], "-data-dir needs"),
                        (["agent", "-dev", "now"], "takes flags only"), (["agent", "-dev=perhaps"], "must be true or false"),
                        (["status", "-address", "ftp://localhost"], "not of the form unix:///")):
        r = run_command(words)
        case.equal((r.code, r.out), (1, ""), words)
        case.contains(r.err, part)
        case.equal(r.err.count("\n"), 1, r.err)


def test_short_forms_are_other_names_of_commands():
    for short, words in (("run", "job run"), ("logs", "alloc logs"), ("node-drain", "node drain"), ("init", "job init")):
        case.equal(run_command([short, "-help"]).out, run_command(words.split() + ["-help"]).out, short)
        case.contains(run_command(["help"]).out, "%s (%s)" % (short, words))
    case.contains(run_command(["stop"]).err, "usage: drover job stop")


def test_version():
    for words in (["version"], ["-version"], ["--version"]):
        r = run_command(words)
        case.equal(r.code, 0)
        case.equal(bool(re.fullmatch(r"drover \d+\.\d+\.\d+\n", r.out)), True, r.out)
    plain = r.out
    r = run_command(["version", "-json"])
    case.equal((r.code, r.err), (0, ""))
    case.equal("drover %s\n" % json.loads(r.out)["Version"], plain, r.out)


def test_without_an_agent_the_error_says_what_to_do():
    path = case.directory() + "/none"
    r = run_command(["status"], env={"DROVER_ADDR": "unix://" + path})
    case.equal((r.code, r.out), (1, ""))
    case.contains(r.err, "no agent answers at unix://%s" % path)
    case.contains(r.err, "drover agent")
    # The same for a socket file without a listener.
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(path)
        case.contains(run_command(["status"], env={"DROVER_ADDR": "unix://" + path}).err, "no agent answers")


def test_the_address_comes_from_the_flag_or_variable_and_may_exceed_sun_path():
    deep = case.directory() + "/" + "/".join(["d" * 50] * 4)
    os.makedirs(deep)
    with FakeApi(deep + "/drover.sock") as api:
        api.json("GET", "/v1/jobs", [])
        address = "unix://" + api.path
        case.equal(len(api.path) > 200, True)
        for words, env in ((["-address", address], {}), (["--address=" + address], {"DROVER_ADDR": "unix:///nowhere"}),
                           ([], {"DROVER_ADDR": address}), ([], {"NOMAD_ADDR": address}),
                           ([], {"DROVER_ADDR": address, "NOMAD_ADDR": "http://localhost:4646"})):
            r = run_command(["job", "status"] + words, env=env)
            case.equal((r.code, r.out, r.err), (0, "No jobs\n", ""), words)


def test_every_request_has_the_token():
    id_ = "aaaa1111-0000-4000-8000-000000000001"
    with FakeApi() as api:
        api.json("GET", "/v1/allocations", [alloc(id_)])
        api.json("GET", "/v1/allocation/" + id_, alloc(id_))
        for words in (["job", "status"], ["monitor"], ["alloc", "exec", id_, "true"]):
            for env, token in (({"DROVER_TOKEN": "sesame", "NOMAD_TOKEN": "other"}, "sesame"), ({"NOMAD_TOKEN": "other"}, "other"),
                               ({"DROVER_TOKEN": "", "NOMAD_TOKEN": ""}, None)):
                api.requests.clear()
                api.drover(*words, env=env)
                asked = [(r.path, r.headers.get("x-nomad-token")) for r in api.requests]
                case.equal([a for a in asked if a[1] != token], [], words)
                case.equal(asked[-1][0].split("/")[-1], {"job": "jobs", "monitor": "monitor", "alloc": "exec"}[words[0]])
            r = api.drover(*words, env={"DROVER_TOKEN": "two\nlines"})
            case.contains(r.err, "the token contains a character that is not printable ASCII, or a space")
        api.drover("job", "status", "-token", "flag", env={"DROVER_TOKEN": "sesame"})
        case.equal(api.requests[-1].headers["x-nomad-token"], "flag")


def test_general_flags_of_nomad_work_or_are_refused():
    with FakeApi() as api:
        api.json("GET", "/v1/jobs", [])
        case.equal(api.drover("job", "status", "-no-color").code, 0)
        api.requests.clear()
        for flag in ("ca-path", "force-color", "region", "tls-skip-verify"):
            r = api.drover("job", "status", "-" + flag)
            case.equal((r.code, r.out, r.err.count("\n")), (1, "", 1), r.err)
            case.contains(r.err, "drover: -%s is not supported: " % flag)
        case.equal(api.requests, [])


def test_drover_agent_executes_the_launcher_with_all_arguments():
    """The launcher is beside the command, or in libexec of an installation."""
    for place in ("bin", "libexec/drover"):
        directory = case.directory()
        os.makedirs(directory + "/bin")
        os.makedirs(directory + "/" + place, exist_ok=True)
        shutil.copy(binary("drover"), directory + "/bin/drover")
        r = subprocess.run([directory + "/bin/drover", "agent"], stderr=subprocess.PIPE, check=False)
        case.equal(r.returncode, 1)
        case.contains(r.stderr.decode(), "there is no drover-launcher in " + directory)
        launcher = "%s/%s/drover-launcher" % (directory, place)
        with open(launcher, "w", encoding="ascii") as f:
            f.write("#!/bin/sh\nfor w; do echo \"[$w]\"; done\nexit 7\n")
        os.chmod(launcher, 0o755)
        r = subprocess.run([directory + "/bin/drover", "agent", "-config", "a b", "-config=/c", "-dev", "-data-dir", "/d"],
                           stdout=subprocess.PIPE, check=False)
        case.equal((r.returncode, r.stdout.decode()), (7, "[-config]\n[a b]\n[-config=/c]\n[-dev]\n[-data-dir]\n[/d]\n"))


def test_the_manual_names_every_command_and_flag():
    with open(ROOT + "/docs/drover.1", encoding="utf-8") as f:
        manual = f.read().replace("\\-", "-")
    for words in commands():
        case.contains(manual, words.replace(" ", " "), "command in the manual")
        for flag in re.findall(r"^  -([\w-]+)", run_command(words.split() + ["-h"]).out, re.M):
            case.equal(bool(re.search(r"(Fl |-)%s\b" % re.escape(flag), manual)), True, "flag -%s of %s" % (flag, words))


case.run(globals())
