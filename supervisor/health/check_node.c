// SPDX-License-Identifier: Apache-2.0
/* check_node.c: checks of the clock, of state.db and of the audit log. Runs in: supervisor. */
#include <inttypes.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/mem.h"
#include "model/node.h"
#include "supervisor/audit/audit_log.h"
#include "supervisor/core/journal.h"
#include "supervisor/core/store.h"
#include "supervisor/health/check_memory.h"
#include "supervisor/node/node_events.h"

#define STATE_MS        5000
#define STATE_POLL_USEC 20000
#define STATE_KEY       "health_check"

/* --- the clock --- */

/* Adds an event of the node: a clock that was set is degraded only, so no other event tells it. */
static void
tell_step(struct sup *sup, int64_t step_ns)
{
	cleanup_done(node_event) struct node_event ev;

	node_event_init(&ev);
	str_set(&ev.subsystem, "Clock");
	str_setf(&ev.message, "The machine's clock was set %s by %lld seconds",
	    step_ns < 0 ? "back" : "forward", (long long)(llabs(step_ns) / NS_PER_S));
	journal_info(JOURNAL_NODE, NULL, "probe: %s", ev.message);
	node_event_add(sup, &ev);
}

void
check_clock(struct sup *sup)
{
	struct clock_step *clock = &check_memory(sup)->clock;
	int64_t last_ns = clock->found_at_ns;
	char sentence[128] = "";
	enum health_state state = clock_step_judge(
	    clock, clock_real_ns(), (int64_t)clock_boot_ns(), sentence, sizeof sentence);

	if (clock->found_at_ns != last_ns)
		tell_step(sup, clock->step_ns);
	check_report(sup, "clock", state, "%s", sentence);
}

/* --- state.db: a row is written, synced and read back --- */

static int
write_row(struct sup *sup, struct dirty *d, struct err *e)
{
	cleanup_free char *text = mem_printf("%" PRId64, check_memory(sup)->row_value);

	return store_meta_put(sup->store, STATE_KEY, text, e);
}

static void
end_state(struct sup *sup, enum health_state state, const char *why)
{
	struct check_memory *m = check_memory(sup);

	sup_timer_cancel(&m->row_poll);
	check_end(&m->row_check, state, why ? "%s" : NULL, why);
}

static void
on_row_written(struct sup *sup, struct dirty *d)
{
	struct check_memory *m = check_memory(sup);
	cleanup_free char *text = NULL;
	struct err e = { 0 };

	if (!m->row_check.name)
		return; /* the check has ended meanwhile */
	if (store_meta_get(sup->store, STATE_KEY, &text, &e) < 0)
		end_state(sup, HEALTH_FAILED, e.msg);
	else if (strtoll(text, NULL, 10) != m->row_value)
		end_state(sup, HEALTH_FAILED, "state.db does not return what was written");
	else
		end_state(sup, HEALTH_OK, NULL);
}

/* No commit: on_row_written() is not called while state.db cannot be written. */
static void
poll_row(void *arg)
{
	struct sup *sup = arg;
	const char *why;

	if (turn_is_stuck(sup, &why))
		end_state(sup, check_is_well(sup, "disk") ? HEALTH_FAILED : HEALTH_UNKNOWN, why);
	else
		sup_timer_set(sup, &check_memory(sup)->row_poll, CLOCK_MONOTONIC, STATE_POLL_USEC,
		    poll_row, sup);
}

static void
on_state_late(struct check *c)
{
	sup_timer_cancel(&check_memory(c->sup)->row_poll);
}

void
check_state(struct sup *sup)
{
	struct check_memory *m = check_memory(sup);

	if (check_disk_hangs(sup)) {
		/* The work loop would wait for the commit. */
		check_report(sup, "state", HEALTH_UNKNOWN, "not checked: that needs disk");
		return;
	}
	check_begin(&m->row_check, sup, "state", on_state_late);
	check_step(&m->row_check, "write a row of state.db", STATE_MS);
	m->row_value = clock_real_ns();
	turn_write(sup, &m->row);
	turn_durable(sup);
	poll_row(sup);
}

/* --- the audit log: only if there is one --- */

void
check_audit(struct sup *sup)
{
	enum health_state bad = check_is_well(sup, "disk") ? HEALTH_FAILED : HEALTH_UNKNOWN;
	struct err e = { 0 };

	if (!sup->audit)
		return;
	if (check_disk_hangs(sup)) /* the work loop would wait for the file */
		check_report(sup, "audit", HEALTH_UNKNOWN, "not checked: that needs disk");
	else if (audit_log_check(sup->audit, &e) < 0)
		check_report(sup, "audit", bad, "%s", e.msg);
	else
		check_report(sup, "audit", HEALTH_OK, "%s", "");
}

void
check_memory_begin(struct sup *sup)
{
	struct check_memory *m = check_memory(sup);

	clock_step_begin(&m->clock, clock_real_ns(), (int64_t)clock_boot_ns());
	m->row = (struct dirty){
		.write = write_row, .written = on_row_written, .point = CRASH_ROW_PROBE_VALUE
	};
}

void
check_memory_end(struct sup *sup)
{
	turn_forget_write(sup, &check_memory(sup)->row);
	check_hung_volumes_forget(sup);
	check_drivers_free(sup);
}
