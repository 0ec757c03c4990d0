# SPDX-License-Identifier: Apache-2.0
"""The page by which a test kills processes at crash points. Importing this skips the test if there is no build with crash points, and makes that build
the one that the test runs."""
import os

from . import build_dir, case

CRASH = os.path.join(build_dir(), "crash")
if not os.path.exists(CRASH + "/drover-supervisor"):
    case.skip("no build with crash points (make CRASH=1 BUILD=%s)" % CRASH)
os.environ["DROVER_BUILD"] = CRASH
from . import crash  # noqa: E402

page = crash.Page()
