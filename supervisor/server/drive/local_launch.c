// SPDX-License-Identifier: Apache-2.0
/* local_launch.c: whether a periodic job is launched now, as a function of facts. Runs in:
 * supervisor. */
#include "supervisor/server/drive/local_launch.h"

bool
local_launch_is_due(int64_t next_s, int64_t now_s)
{
	return next_s >= 0 && next_s <= now_s;
}

enum local_launch
local_launch_decide(const struct local_launch_facts *f)
{
	if (!local_launch_is_due(f->next_s, f->now_s))
		return LOCAL_LAUNCH_WAIT;
	return f->prohibits_overlap && f->n_active > 0 ? LOCAL_LAUNCH_SKIP : LOCAL_LAUNCH_NOW;
}

bool
local_launch_is_stale(int64_t next_s, int64_t now_s)
{
	return next_s > now_s;
}

int64_t
local_launch_since(int64_t checked_s, int64_t now_s)
{
	return checked_s < now_s ? checked_s : now_s;
}
