# SPDX-License-Identifier: Apache-2.0
"""The output of drover on terminals: tables and texts fit 60, 80 and 200 columns without breaking words, colours, local times,
progress of long requests."""
import re
import time

from lib import case, screen
from lib.fake_api import NODE, FakeApi, alloc, event

A1 = "aaaa1111-0000-4000-8000-000000000001"
LONG = "web-server-of-the-second-floor"
WHY = "Failed due to unhealthy allocations - not rolling back to stable job version 3 as current job has same specification"


def fill(api):
    failed = alloc(A1, LONG, "failed", failed=True, task="main", events=[event("Terminated", "Exit Code: 3", 200)],
                   CreateTime=time.time_ns() - 235 * 10**9)
    api.json("GET", "/v1/allocations", [failed, alloc("bbbb" + A1[4:], "db")])
    api.json("GET", "/v1/allocation/" + A1, dict(failed, Job={"Version": 1}))
    api.json("GET", "/v1/jobs", [{"ID": LONG, "Type": "service", "Priority": 50, "Status": "running", "SubmitTime": 10**18}])
    api.json("GET", "/v1/deployments", [{"ID": A1, "JobID": LONG, "JobVersion": 0, "Status": "failed", "StatusDescription": WHY}])
    api.json("GET", "/v1/agent/self", {"config": {"Version": {"Version": "1"}}, "stats": {"client": {"node_id": NODE}}})
    api.json("GET", "/v1/agent/health", {"client": {"ok": True}})
    api.json("GET", "/v1/agent/problems", [])
    api.json("GET", "/v1/agent/leaks", [])
    api.json("GET", "/v1/node/" + NODE, {"ID": NODE, "Name": "here", "Status": "ready", "SchedulingEligibility": "eligible"})
    api.json("GET", "/v1/volumes", [])
    api.json("GET", "/v1/plugins", [])


def run(api, *words, width=80, **env):
    return screen.Screen(words, width, {"DROVER_ADDR": "unix://" + api.path, **env})


PAGES = (["status"], ["status", "-verbose"], ["alloc", "status"], ["alloc", "status", "-verbose", A1], ["deployment", "list"], ["job", "status"],
         ["help"], ["alloc", "exec", "-help"], ["nonsense"], ["node", "drain"], ["job", "status", "-timeout", "soon"], ["eval", "list"])


def test_pages_fit_without_breaking_words():
    with FakeApi() as api:
        fill(api)
        for words in PAGES:
            whole = screen.words(run(api, *words, width=1000, TZ="UTC").text)
            for width in (60, 80, 200):
                shown = run(api, *words, width=width, TZ="UTC")
                screen.check_fits(shown, width, words)
                broken = [w for w in screen.words(shown.text) if w not in whole and not re.fullmatch(r"=|\d+[ms]?\d*s?|\d+:\S+", w)]
                case.equal(broken, [], "words of %s at %d columns\n%s" % (words, width, shown.text))


def test_columns_are_left_out_before_a_table_becomes_a_list():
    with FakeApi() as api:
        fill(api)
        heads = {width: run(api, "alloc", "status", width=width).text.split("\n")[0].split() for width in (200, 80, 72, 44)}
        case.equal(heads[200], ["ID", "Name", "Version", "Desired", "Status", "Created", "Modified"])
        case.equal(heads[80], heads[200][:3] + heads[200][4:6])
        case.equal(heads[72], ["ID", "Name", "Status", "Created"])
        case.equal(heads[44], ["ID", "=", "bbbb1111"])
        case.contains(run(api, "alloc", "status", width=44).text, "\nName                 = %s.group[0]\n" % LONG)
        text = run(api, "deployment", "list", width=80).text
        case.equal("unhealthy" in text.split() and "specification" in text.split(), True, text)


def test_COLUMNS_is_the_width_of_a_terminal_but_not_of_a_pipe():
    with FakeApi() as api:
        fill(api)
        case.equal(max(map(len, run(api, "status", COLUMNS="60").text.splitlines())) <= 60, True)
        piped = api.drover("status", env={"COLUMNS": "60", "TERM": "xterm"}).out
        case.contains(piped, WHY + "\n")


def test_colours_are_for_terminals_unless_NO_COLOR_is_set():
    with FakeApi() as api:
        fill(api)
        raw = run(api, "alloc", "status", width=200).raw
        case.equal(("\x1b[31mfailed\x1b[0m" in raw, "\x1b[32mrunning\x1b[0m" in raw, "\x1b[1mStatus\x1b[0m" in raw), (True,) * 3, raw)
        case.contains(run(api, "status").raw, "\x1b[31mProblem:\x1b[0m ")
        case.contains(run(api, "status").raw, "= \x1b[32mready\x1b[0m, eligible")
        case.contains(run(api, "nonsense").raw, "\x1b[31mdrover:\x1b[0m unknown")
        for env in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            for words in (["status"], ["alloc", "status"], ["nonsense"]):
                case.equal("\x1b" in run(api, *words, **env).raw, False, words)
        case.equal("\x1b" in api.drover("status", env={"TERM": "xterm"}).out, False)


def test_exact_times_are_local_with_their_zone_on_a_terminal_and_utc_in_a_pipe():
    with FakeApi() as api:
        fill(api)
        made = alloc(A1, CreateTime=1767225600 * 10**9)  # 2026-01-01T00:00:00Z
        api.json("GET", "/v1/allocation/" + A1, dict(made, Job={"Version": 1}))
        case.contains(run(api, "alloc", "status", "-verbose", A1, TZ="UTC-1").text, "= 2026-01-01 01:00:00.000 +0100\n")
        case.contains(api.drover("alloc", "status", "-verbose", A1, env={"TZ": "UTC-1"}).out, "= 2026-01-01T00:00:00.000Z\n")


def test_a_long_request_shows_progress_on_a_terminal_only():
    with FakeApi() as api:
        fill(api)

        def slow(request):
            time.sleep(2.5)
            return []
        api.json("GET", "/v1/jobs", slow)
        raw = run(api, "job", "status").raw
        case.equal(bool(re.search(r"Waiting for the agent's answer, for \d\d s at most", raw)), True, raw)
        case.equal(raw[raw.rindex(" most") + 5:], "\r\x1b[KNo jobs\n", "the line is removed")
        case.equal(api.drover("job", "status").err, "")


case.run(globals())
