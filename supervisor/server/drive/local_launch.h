/* SPDX-License-Identifier: Apache-2.0 */
/* local_launch.h: whether a periodic job is launched now: the decision, without its effects. All
 * times are in s since 1970. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_DRIVE_LOCAL_LAUNCH_H
#define DROVER_SUPERVISOR_SERVER_DRIVE_LOCAL_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>

struct local_launch_facts {
	int64_t now_s;
	int64_t next_s;         /* its next time; -1: it has none */
	bool prohibits_overlap; /* of its periodic block */
	int64_t n_active;       /* children that are pending or running */
};

enum local_launch {
	LOCAL_LAUNCH_WAIT, /* it is not due */
	LOCAL_LAUNCH_SKIP, /* it is due, but the child before has not ended */
	LOCAL_LAUNCH_NOW,
};

bool local_launch_is_due(int64_t next_s, int64_t now_s);
enum local_launch local_launch_decide(const struct local_launch_facts *f);
/* The clock was set: is the next time to be computed anew? One that is due is launched first. */
bool local_launch_is_stale(int64_t next_s, int64_t now_s);
/* From when on times that were missed are looked for at the agent's start: the clock may have been
 * set back since looked_s. */
int64_t local_launch_since(int64_t looked_s, int64_t now_s);

#endif
