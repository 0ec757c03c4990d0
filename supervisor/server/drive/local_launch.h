/* SPDX-License-Identifier: Apache-2.0 */
/* local_launch.h: whether a periodic job is launched now: the decision, without its effects. Times
 * are in s since 1970. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_DRIVE_LOCAL_LAUNCH_H
#define DROVER_SUPERVISOR_SERVER_DRIVE_LOCAL_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>

struct local_launch_facts {
	int64_t now_s;
	int64_t next_s;         /* the next launch; -1: none */
	bool prohibits_overlap; /* of its periodic block */
	int64_t n_active;       /* children that are pending or running */
};

enum local_launch {
	LOCAL_LAUNCH_WAIT, /* the launch is not due */
	LOCAL_LAUNCH_SKIP, /* it is due, but the previous child has not ended */
	LOCAL_LAUNCH_NOW,
};

bool local_launch_is_due(int64_t next_s, int64_t now_s);
enum local_launch local_launch_decide(const struct local_launch_facts *f);
/* After the clock was set: returns true if next_s must be computed again. A due launch is made
 * first. */
bool local_launch_is_stale(int64_t next_s, int64_t now_s);
/* Returns the time from which missed launches are searched at the agent's start: checked_s, unless
 * the clock was set back since. */
int64_t local_launch_since(int64_t checked_s, int64_t now_s);

#endif
