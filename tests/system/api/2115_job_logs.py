#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 20
"""drover job logs: all tasks of a job in the order of time, while files rotate and the agent restarts; and frames with times."""
import base64
import json
import os
import subprocess
import time

from lib import agent, api, case
from lib.fake_api import run_command


def drover(*words, code=0):
    r = run_command(words, env={"DROVER_ADDR": "unix://" + node.socket_path})
    case.equal(r.code, code, "drover %s: %s%s" % (" ".join(words), r.out, r.err))
    return r.out + r.err


def texts(out):
    return [line.split(": ", 1)[1] for line in out.splitlines()]


def two_tasks(name, first, second, **logs):
    made = api.job(name, "/bin/sh", ["-c", first])
    tasks = made["Job"]["TaskGroups"][0]["Tasks"]
    tasks.append({**tasks[0], "Name": "u", "Config": {"command": "/bin/sh", "args": ["-c", second]}})
    if logs:
        for task in tasks:
            task["LogConfig"] = logs
    return made


def say(path, text):
    with open(path, "a", encoding="ascii") as f:
        f.write(text + "\n")


def speaker(name):
    """Returns a script that prints what is written to a file, and the file."""
    path = case.write("%s/%s" % (top, name), "")
    return "exec tail -n +1 -f %s" % path, path


def test_lines_of_all_tasks_are_in_the_order_of_time():
    (a, to_a), (b, to_b) = speaker("a"), speaker("b")
    node.register(two_tasks("chat", a, b))
    alloc = node.wait_running("chat")[0]
    said = []
    for i in range(6):
        said.append("line %d" % i)
        name, fifo = (("t", to_a), ("u", to_b))[i % 3 != 0]
        say(fifo, said[-1])
        node.wait_said(alloc, said[-1].encode(), name)
        time.sleep(0.002)  # so that the next line is of another millisecond
    out = drover("job", "logs", "chat")
    case.equal(texts(out), said)
    case.equal([line.split()[1:3] for line in out.splitlines()],
               [[alloc["ID"][:8], "t:" if i % 3 == 0 else "u:"] for i in range(6)], "allocation and task of each line")
    case.equal(texts(drover("job", "logs", alloc["ID"][:8])), said, "by allocation")
    case.equal(texts(drover("job", "logs", "chat", "t")), [said[0], said[3]], "of one task")
    case.equal(texts(drover("job", "logs", "-n", "2", "chat")), said[-2:])
    case.equal(texts(drover("job", "logs", "-grep", "[25]$", "chat")), [said[2], said[5]])
    case.equal(drover("job", "logs", "-plain", "-n", "1", "chat"), said[-1] + "\n")
    case.equal(texts(drover("job", "logs", "-since", "1h", "chat")), said)
    case.equal(drover("job", "logs", "-until", "1h", "chat"), "")
    case.equal(drover("job", "logs", "-since", "2100-01-01T00:00:00", "chat"), "")
    # The short form takes either, too.
    case.equal(drover("logs", "chat"), out)
    case.equal(texts(drover("logs", "chat", "t")), [said[0], said[3]], "of one task")
    case.equal(texts(drover("logs", "-task", "t", "-n", "1", "chat")), [said[3]], "of one task")
    case.equal(texts(drover("logs", "-grep", "[25]$", alloc["ID"][:8])), [said[2], said[5]], "of an allocation")
    case.equal(texts(drover("logs", "-since", "1h", alloc["ID"][:8], "t", "u")), said, "of two tasks of an allocation")
    case.equal(drover("logs", alloc["ID"][:8], "t"), "%s\n%s\n" % (said[0], said[3]), "a task's log as it is")
    case.contains(drover("logs", "-stderr", "chat", code=1), "are for one task of an allocation")
    case.contains(drover("logs", "nothing", code=1), "nothing")
    for words, part in ((("-since", "soon", "chat"), '"soon" is no time'), (("-grep", "[", "chat"), "no extended regular expression"),
                        (("nothing",), "nothing")):
        case.contains(drover("job", "logs", *words, code=1), part)


def test_frames_end_where_the_time_changes():
    script, fifo = speaker("c")
    node.register(api.job("frames", "/bin/sh", ["-c", script]))
    alloc = node.wait_running("frames")[0]
    began = time.time_ns()
    for text in ("one", "two"):
        say(fifo, text)
        node.wait_said(alloc, text.encode())
        time.sleep(0.002)
    body, decoder, frames = node.logs(alloc, plain="false", times="true").decode(), json.JSONDecoder(), []
    while body:
        frame, end = decoder.raw_decode(body)
        frames.append(frame)
        body = body[end:]
    case.equal([base64.b64decode(f["Data"]) for f in frames], [b"one\n", b"two\n"])
    times = [f["Time"] for f in frames]
    assert began - 10**6 <= times[0] < times[1] <= time.time_ns(), (began, times)
    case.equal(node.logs(alloc, origin="file", file="0", offset=frames[0]["Offset"]), b"two\n")


def test_following_loses_and_doubles_nothing_at_rotation_and_restart():
    n = 60000  # 6 MB: six files, of which three are kept
    script = "i=0; while [ $i -lt %d ]; do printf '%%099d\\n' $i; i=$((i+1)); [ $((i %% 20000)) = 0 ] && sleep 0.5; done; exec sleep 1000" % n
    node.register(api.job("many", "/bin/sh", ["-c", script], LogConfig={"MaxFiles": 20, "MaxFileSizeMB": 1}))
    alloc = node.wait_running("many")[0]
    with open(top + "/out", "wb") as out:
        p = subprocess.Popen([agent.binary("drover"), "job", "logs", "-f", "-plain", "many"], stdout=out, stderr=out,
                             env={**os.environ, "DROVER_ADDR": "unix://" + node.socket_path})
    try:
        case.until(lambda: os.path.getsize(top + "/out") > 500000, 30, "the first lines")
        node.kill("supervisor")
        case.until(lambda: os.path.getsize(top + "/out") >= 100 * n, 60, "the last line")
        with open(top + "/out", encoding="ascii") as f:
            found = f.read().splitlines()
        wrong = next((i for i, line in enumerate(found) if line != "%099d" % i), len(found))
        case.equal((wrong, len(found), [line.lstrip("0") for line in found[wrong:wrong + 2]]), (n, n, []), "the first wrong line")
    finally:
        p.terminate()
        p.wait()
    logs = "%s/logs/%s" % (node.data, alloc["ID"])
    of_logs = sorted(f for f in os.listdir(logs) if not f.startswith("."))
    case.equal(sorted(f[1:-len(".times")] for f in os.listdir(logs) if f.startswith(".")), of_logs, "a file of times for each log file")


with api.Node() as node:
    top = case.directory()
    case.run(globals())
