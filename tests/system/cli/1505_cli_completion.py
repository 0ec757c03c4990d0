# SPDX-License-Identifier: Apache-2.0
"""The completion of commands, flags and values: what `drover __complete` prints, and what bash makes of it."""
import subprocess

from lib import case
from lib.completion import A1, B1, SCRIPTS, Shell, complete_lines, environment, objects
from lib.fake_api import NODE, FakeApi, run_command

def lines(api, *words):
    r = run_command(["__complete", *words], env={"DROVER_ADDR": "unix://" + (api.path if api else "/nowhere")})
    case.equal(r.code, 0, words)
    return r.out.splitlines()


def offered(api, *words):
    return [line.split("\t")[0] for line in lines(api, *words)]


def test_commands_and_flags():
    for words, wanted in ((("jo",), ["job"]), (("a",), ["acl", "action", "agent", "agent-info", "alloc", "alloc-status"]),
                          (("job", "s"), ["scale", "start", "status", "stop"]), (("job", "tag", ""), ["apply", "unset"]),
                          (("job", "t"), ["tag"]), (("job", "fly", ""), []), (("job", "stop", "-p"), ["-purge"]),
                          (("job", "stop", "--p"), ["--purge"]), (("agent", "-d"), ["-data-dir", "-dev"]),
                          (("alloc", "logs", "-std"), ["-stdout", "-stderr"]), (("logs", "-std"), ["-stdout", "-stderr"]),
                          (("alloc", "exec", "-ta"), ["-task"]), (("alloc", "exec", A1, "ls", "-ta"), []),
                          (("help", "job", "re"), ["restart", "revert"]), (("help", "ag"), ["agent", "agent-info"]),
                          (("ru",), ["run"]), (("job", "status", "-js"), ["-json"])):
        case.equal(sorted(offered(None, *words)), sorted(wanted), words)
    case.equal(lines(None, "ru"), ["run\tdrover job run"])
    case.equal(lines(None, "lea"), ["leaks\t" + run_command(["help"]).out.split("leaks ")[1].split("\n")[0].strip()])


def test_every_command_can_be_completed():
    """Each word of each command, each of its flags, and without an agent nothing breaks."""
    for line in run_command(["help"]).out.splitlines():
        if not line.startswith("  "):
            continue
        words = line[2:24].split()
        for i, word in enumerate(words):
            case.equal(word in offered(None, *words[:i], ""), True, words)
        flags = [w.split()[0] for w in run_command([*words, "-help"]).out.splitlines() if w.startswith("  -")]
        if words != ["help"]:  # which takes commands instead
            case.equal(sorted(offered(None, *words, "-")), sorted(flags), words)
        for flag in flags:
            run_command(["__complete", *words, flag, ""], env={"DROVER_ADDR": "unix:///nowhere"})
        offered(None, *words, "")


def test_ids_and_names_of_objects():
    with objects() as api:
        for words, wanted in ((("alloc", "status", "a"), [A1[:8]]), (("alloc", "status", A1[:10]), [A1]), (("alloc", "logs", "db."), ["db.group[0]"]),
                              (("job", "stop", ""), ["web", "db"]), (("job", "stop", "w"), ["web"]), (("node", "drain", ""), [NODE[:8]]),
                              (("node", "drain", "he"), ["here"]), (("eval", "status", ""), [A1[:8]]),
                              (("deployment", "promote", ""), ["dddd1111"]), (("service", "info", ""), ["web"]),
                              (("service", "delete", "web", ""), ["_nomad-task-1"]), (("volume", "status", ""), ["data"]),
                              (("plugin", "status", ""), ["csi-local"]), (("namespace", "status", "p"), ["prod"]),
                              (("volume", "snapshot", "create", ""), ["data"]), (("job", "revert", "web", ""), ["1", "0", "gold"]),
                              (("job", "scale", "web", ""), ["front", "back"]), (("alloc", "restart", A1, ""), ["nginx", "logs"]),
                              (("alloc", "fs", A1, ""), ["alloc/", "note"]), (("alloc", "fs", A1, "alloc/"), ["alloc/logs/"]),
                              (("status", "we"), ["web.group[0]", "web"]), (("alloc", "why", "web"), ["web.group[0]", "web"]), (("logs", "a"), [A1[:8]]),
                              (("node", "meta", "apply", "-unset", ""), ["rack"])):
            case.equal(offered(api, *words), wanted, words)
        case.equal(lines(api, "job", "stop", "w"), ["web\trunning"])
        case.equal(lines(api, "alloc", "status", "b"), [B1[:8] + "\tdb.group[0] failed"])


def test_values_of_flags():
    with objects() as api:
        for words, wanted in ((("alloc", "logs", A1, "-task", ""), ["nginx", "logs"]), (("alloc", "logs", A1, "-task=n"), ["-task=nginx"]),
                              (("job", "restart", "web", "-task", "a"), ["app"]), (("job", "restart", "web", "-group", ""), ["front", "back"]),
                              (("job", "restart", "web", "-group", "back", "-task", ""), ["app"]), (("job", "restart", "-on-error", ""), ["ask", "fail"]),
                              (("job", "restart", "-batch-wait=a"), ["-batch-wait=ask"]), (("job", "promote", "web", "-group", "f"), ["front"]),
                              (("deployment", "promote", "dddd1111", "-group", ""), ["front"]), (("action", "-job", ""), ["web", "db"]),
                              (("action", "-job", "web", ""), ["reload"]), (("monitor", "-log-level", "d"), ["debug"]),
                              (("alloc", "signal", "-s", "SIGH"), ["SIGHUP"]), (("eval", "list", "-status", "b"), ["blocked"]),
                              (("job", "status", "-namespace", ""), ["default", "prod"]), (("job", "stop", "-yes="), ["-yes=true", "-yes=false"]),
                              (("job", "history", "web", "-p", "-diff-tag", ""), ["gold"]), (("job", "tag", "unset", "web", "-name", ""), ["gold"]),
                              (("job", "dispatch", "web", "-meta", ""), ["size=", "color="]), (("event", "stream", "-topic", "J"), ["Job"]),
                              (("job", "run", "-var-file", ""), [":files"]), (("job", "run", ""), [":files"]), (("agent", "-config", ""), [":files"]),
                              (("namespace", "apply", "p"), ["prod", ":files"]), (("job", "run", "-var", ""), [])):
            case.equal(offered(api, *words), wanted, words)


def test_the_agent_that_the_line_names_is_asked():
    with objects() as api:
        case.equal(offered(None, "job", "stop", "-address", "unix://" + api.path, "w"), ["web"])
        lines(api, "job", "stop", "-namespace", "prod", "")
        case.equal(api.asked("GET", "/v1/jobs")[-1].query["namespace"], "prod")


def test_names_that_a_terminal_or_a_shell_would_obey():
    with FakeApi() as api:
        api.json("GET", "/v1/jobs", [{"ID": "a\x1b[31m"}, {"ID": "a\nb"}, {"ID": "$(touch x)", "Status": "x\x1b[0m\ty"}])
        case.equal(lines(api, "job", "stop", ""), ["$(touch x)\tx?[0m y"])
        case.equal(bash(api, "job", "stop", ""), ["\\$\\(touch\\ x\\)"])


BASH = """. "$1"; shift; COMP_WORDS=(drover "$@"); COMP_CWORD=$#; _drover 2>/dev/null; printf '%s\\n' "${COMPREPLY[@]}"
"""


def bash(api, *words):
    r = subprocess.run(["bash", "-c", BASH, "-", SCRIPTS + "drover.bash", *words], env=environment(api), stdout=subprocess.PIPE, check=True)
    return r.stdout.decode().splitlines()


def test_words_that_bash_splits():
    """It splits at "=" and ":", and replaces only the last part."""
    with objects() as api:
        case.equal(bash(api, "alloc", "logs", A1, "-task", "=", "n"), ["nginx"])
        case.equal(bash(api, "alloc", "logs", A1, "-task", "="), ["nginx", "logs"])
        case.equal(bash(api, "job", "stop", "w"), ["web"])
        api.json("GET", "/v1/jobs", [{"ID": "a:b"}])
        case.equal(bash(api, "job", "stop", "a", ":"), ["b"])


def test_bash():
    with objects() as api, Shell(api, "bash", "--norc", "--noprofile", "-i") as shell:
        shell.type("bind 'set enable-bracketed-paste off'; bind 'set bell-style none'; print-it() { echo \"<$1>\"; }; "
                   ". %sdrover.bash; echo READY$((1))\r" % SCRIPTS)
        shell.wait("READY1")
        complete_lines(shell)


case.run(globals())
