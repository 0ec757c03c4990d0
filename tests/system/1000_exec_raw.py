# SPDX-License-Identifier: Apache-2.0
"""exec-helper and executor alone: raw_exec."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import case, exe, runs  # noqa: E402


def test_a_task_runs_and_its_exit_code_is_recorded():
    with runs.Runs() as r:
        run = r.start("sh", ["-c", "echo out; echo err >&2; exit 7"])
        record = r.ended(run)
        case.equal((record["state"], record["exit_code"], record["exit_signal"]), (exe.EXE_ENDED, 7, 0))
        case.equal((r.log(run), r.log(run, "stderr")), ("out\n", "err\n"))
        case.equal(r.list(), [run.name])
        case.equal(r.reap(run), False, "killed")
        case.equal(r.list(), [])


case.run(globals())
