# SPDX-License-Identifier: Apache-2.0
"""exec-helper and executor alone: the exec driver."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import case, exe, runs  # noqa: E402


def test_a_task_runs_as_nobody_in_its_own_namespaces():
    with runs.Runs() as r:
        out = r.output("sh", ["-c", "id -u; echo $$; pwd; ls /; ls /proc | grep -c '^[0-9]'; mount"], driver="EXEC")
        print(out)


case.run(globals())
