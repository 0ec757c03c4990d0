// SPDX-License-Identifier: Apache-2.0
/* local_age.c: forgets what has been over for so long that nobody asks any more, as servers do:
 * allocs that have a successor and evaluations of which no alloc is left. Jobs: local_family.c.
 * Runs in: supervisor. */
#include "supervisor/server/drive/local_age.h"

#include <systemd/sd-event.h>

#include "common/clock.h"
#include "common/duration.h"
#include "supervisor/server/job/local_allocs.h"
#include "supervisor/server/job/local_evals.h"

static int
on_time(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct local *l = userdata;
	const struct agent_config *config = l->base.sup->config;
	int64_t before_ns = clock_real_ns() - (int64_t)(config->eval_gc_ms * NS_PER_MS);

	local_allocs_forget(l, before_ns);
	local_evals_forget(l, before_ns);
	(void)sd_event_source_set_time_relative(source, config->gc_interval_ms * 1000);
	(void)sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
	return 0;
}

int
local_age_start(struct local *l, struct err *e)
{
	int r = sd_event_add_time_relative(l->base.sup->event, &l->age, CLOCK_MONOTONIC,
	    l->base.sup->config->gc_interval_ms * 1000, 0, on_time, l);

	return r < 0 ? err_set(e, r, "start to forget what is over") : 0;
}

void
local_age_free(struct local *l)
{
	l->age = sd_event_source_disable_unref(l->age);
}
