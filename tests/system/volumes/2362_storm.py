# SPDX-License-Identifier: Apache-2.0
# timeout: 900
# takes: 60
"""A few of the random sequences of `make csi-storm`: volumes are published and unpublished while their plugin misbehaves and processes
are killed. Every failed sequence has a seed, with which it is repeated. STORM_SEED is the first seed, STORM_COUNT how many there are, and
STORM_LANES how many run at the same time."""
import os
import random

from lib import case, storm

COUNT, LANES = int(os.environ.get("STORM_COUNT") or 40), int(os.environ.get("STORM_LANES") or 10)
SEED = int(os.environ.get("STORM_SEED") or random.randrange(1, 10**6))


def test_random_sequences():
    print("    %d sequences from seed %d in %d lanes" % (COUNT, SEED, LANES), flush=True)
    with storm.Storm(SEED, COUNT, LANES) as s:
        case.equal(s.run(), [], "seeds of failed sequences")
        s.end()


case.run(globals())
