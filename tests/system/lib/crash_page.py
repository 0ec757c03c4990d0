# SPDX-License-Identifier: Apache-2.0
"""The page by which a test kills processes at crash points. Importing this calls crash.use_build()."""
from . import crash

crash.use_build()
page = crash.Page()
