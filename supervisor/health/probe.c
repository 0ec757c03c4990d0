// SPDX-License-Identifier: Apache-2.0
/*
 * probe.c: one probe, in phases: what all others need (the disk, and the process that asks it; then
 * state.db and the audit log), then the processes of drover, then plugins and volumes, then tasks.
 * Runs in: supervisor.
 */
#include "supervisor/health/probe.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/err.h"
#include "common/mem.h"
#include "model/node.h"
#include "supervisor/core/journal.h"
#include "supervisor/driver/driver.h"
#include "supervisor/driver/driver_breaker.h"
#include "supervisor/health/check_memory.h"
#include "supervisor/health/probe_tasks.h"
#include "supervisor/node/node_events.h"
#include "supervisor/node/node_state.h"
#include "supervisor/node/node_troubles.h"

#define TROUBLE "probe/" /* before a component's name: in node_troubles.h */

TAILQ_HEAD(probe_waiters, probe_waiter);
TAILQ_HEAD(checks, check);

struct health {
	struct components components;
	struct probe_waiters waiters;
	struct checks checks;          /* that have not ended */
	unsigned phase;                /* 0: there is no probe */
	bool starting;                 /* the checks of a phase are being added */
	struct sup_timer start;        /* the probe begins */
	struct probe_waiter repeated;  /* the next of the probes at an interval */
	struct sup_timer next;         /* it begins */
	struct probe_waiter suspicion; /* a driver may not work */
	bool is_suspicious;
	uint64_t begun_ms, took_ms, probes;
	struct check_memory memory;
};

typedef void check_fn(struct sup *sup);
static check_fn *const phase_1[] = { check_clock, check_file_helper, NULL };
static check_fn *const phase_2[] = { check_disk, NULL };
static check_fn *const phase_3[] = { check_state, check_audit, NULL };
static check_fn *const phase_4[] = { check_helpers, NULL };
static check_fn *const phase_5[] = { check_plugins, check_volumes, NULL };
static check_fn *const phase_6[] = { check_names, check_drivers, NULL };
static check_fn *const *const phases[] = { NULL, phase_1, phase_2, phase_3, phase_4, phase_5,
	phase_6 };

/* The disk and the clock have subsystems of their own. */
static const char *
subsystem_of(const char *component)
{
	return strcmp(component, "disk") == 0    ? "Disk"
	       : strcmp(component, "clock") == 0 ? "Clock"
						 : "Health";
}

/* Adds an event of the node, if a component has become bad or good. An event is a row, whose commit
 * would stop the work loop while the disk hangs: then there is only the line of the log. */
static void
tell_change(struct sup *sup, const struct component *c)
{
	cleanup_free char *name = mem_printf(TROUBLE "%s", c->name);
	cleanup_done(node_event) struct node_event ev;
	bool is_bad = c->state >= HEALTH_FAILED, disk_hangs = check_disk_hangs(sup);

	node_event_init(&ev);
	if (!component_has_turned(c, node_trouble(sup, name)))
		return;
	str_set(&ev.subsystem, subsystem_of(c->name));
	if (!is_bad)
		str_setf(&ev.message, "%s works again", c->name);
	else
		str_setf(&ev.message, "%s %s: %s", c->name,
		    c->state == HEALTH_HUNG ? "hangs" : "has failed", str(c->sentence));
	journal_info(JOURNAL_NODE, NULL, "probe: %s", ev.message);
	node_trouble_set(sup, name, is_bad ? str(c->sentence) : NULL, !disk_hangs);
	if (!disk_hangs)
		node_event_add(sup, &ev);
}

/* Returns whether the last probe has checked everything, and found it well. */
static bool
all_is_well(const struct components *all)
{
	const struct component *c;

	TAILQ_FOREACH (c, all, link)
		if (c->state != HEALTH_OK && c->state != HEALTH_DEGRADED)
			return false;
	return true;
}

/* Ends the troubles of components that no longer exist, such as a volume that was unmounted. While
 * something is bad, others may be left out of a probe. */
static void
tell_removed(struct sup *sup)
{
	const struct components *all = &sup->health->components;
	const char *name;
	json_t *why;
	void *next;

	if (!all_is_well(all))
		return;
	json_object_foreach_safe(node_troubles(sup), next, name, why)
	{
		const char *component = name + strlen(TROUBLE);

		if (strncmp(name, TROUBLE, strlen(TROUBLE)) != 0 || component_find(all, component))
			continue;
		node_event_say(sup, subsystem_of(component), "%s no longer exists", component);
		node_trouble_set(sup, name, NULL, true);
	}
}

static void
end_probe(struct sup *sup)
{
	struct health *h = sup->health;
	struct probe_waiters waiters = TAILQ_HEAD_INITIALIZER(waiters);
	struct probe_waiter *w;
	struct component *c;

	h->phase = 0;
	h->probes++;
	h->took_ms = clock_ms() - h->begun_ms;
	components_sweep(&h->components);
	TAILQ_FOREACH (c, &h->components, link)
		tell_change(sup, c);
	tell_removed(sup);
	TAILQ_CONCAT(&waiters, &h->waiters, link);
	while ((w = TAILQ_FIRST(&waiters))) {
		TAILQ_REMOVE(&waiters, w, link);
		w->done(sup, w);
	}
}

/* Begins phases as long as they have no check that takes time. */
static void
next_phase(struct sup *sup)
{
	struct health *h = sup->health;

	if (h->starting)
		return;
	while (TAILQ_EMPTY(&h->checks)) {
		if (++h->phase == ELEMENTSOF(phases)) {
			end_probe(sup);
			return;
		}
		h->starting = true;
		for (check_fn *const *fn = phases[h->phase]; *fn; fn++)
			(*fn)(sup);
		h->starting = false;
	}
}

static void
begin_probe(void *arg)
{
	struct sup *sup = arg;
	struct health *h = sup->health;

	h->begun_ms = clock_ms();
	components_begin(&h->components);
	next_phase(sup);
}

void
probe_join(struct sup *sup, struct probe_waiter *w)
{
	struct health *h = sup->health;

	TAILQ_INSERT_TAIL(&h->waiters, w, link);
	if (h->phase == 0 && !sup_timer_is_set(&h->start))
		sup_timer_set(sup, &h->start, CLOCK_MONOTONIC, 0, begin_probe, sup);
}

void
probe_leave(struct sup *sup, struct probe_waiter *w)
{
	TAILQ_REMOVE(&sup->health->waiters, w, link);
}

/* --- checks --- */

static void
leave_probe(struct check *c)
{
	TAILQ_REMOVE(&c->sup->health->checks, c, link);
	sup_timer_cancel(&c->deadline);
	free_p(&c->name);
}

static void
on_late(void *arg)
{
	struct check *c = arg;

	check_end(c, HEALTH_HUNG, "%s: not done after %u seconds", c->step, c->step_ms / 1000);
	c->late(c);
}

void
check_begin(struct check *c, struct sup *sup, const char *name, void (*late)(struct check *))
{
	*c = (struct check){
		.sup = sup, .name = mem_strdup(name), .begun_ms = clock_ms(), .late = late
	};
	TAILQ_INSERT_TAIL(&sup->health->checks, c, link);
}

void
check_step(struct check *c, const char *step, unsigned ms)
{
	if (!c->name)
		return;
	c->step = step;
	c->step_ms = ms;
	sup_timer_set(c->sup, &c->deadline, CLOCK_MONOTONIC, (uint64_t)ms * 1000, on_late, c);
}

/* buf: for the sentence. Returns NULL if there is none. */
static const char *
print_sentence(char buf[ERR_MSG_SIZE], const char *fmt, va_list args)
{
	buf[0] = '\0';
	if (fmt)
		(void)vsnprintf(buf, ERR_MSG_SIZE, fmt, args);
	return buf[0] ? buf : NULL;
}

static void
report(struct sup *sup, const char *name, enum health_state state, uint64_t took_ms,
    const char *fmt, va_list args)
{
	char buf[ERR_MSG_SIZE];

	component_report(
	    &sup->health->components, name, state, took_ms, print_sentence(buf, fmt, args));
}

void
check_end(struct check *c, enum health_state state, const char *fmt, ...)
{
	struct sup *sup = c->sup;
	va_list args;

	if (!c->name)
		return;
	va_start(args, fmt);
	report(sup, c->name, state, clock_ms() - c->begun_ms, fmt, args);
	va_end(args);
	leave_probe(c);
	next_phase(sup);
}

void
check_cancel(struct check *c)
{
	if (c->name)
		leave_probe(c);
}

void
check_report(struct sup *sup, const char *name, enum health_state state, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	report(sup, name, state, 0, fmt, args);
	va_end(args);
}

void
check_keep(struct sup *sup, const char *name, enum health_state state, const char *fmt, ...)
{
	char buf[ERR_MSG_SIZE];
	va_list args;

	va_start(args, fmt);
	component_keep(&sup->health->components, name, state, print_sentence(buf, fmt, args));
	va_end(args);
}

bool
check_is_well(struct sup *sup, const char *name)
{
	const struct component *c = component_find(&sup->health->components, name);

	return !c || !c->seen || c->state == HEALTH_OK || c->state == HEALTH_DEGRADED;
}

/* --- at an interval --- */

static void
begin_repeated(void *arg)
{
	struct sup *sup = arg;

	probe_join(sup, &sup->health->repeated);
}

static void
set_next(struct sup *sup)
{
	if (sup->config->health_interval_ms > 0)
		sup_timer_set(sup, &sup->health->next, CLOCK_MONOTONIC,
		    sup->config->health_interval_ms * 1000, begin_repeated, sup);
}

static void
on_repeated(struct sup *sup, struct probe_waiter *w)
{
	set_next(sup);
}

/* --- for driver_breaker.h --- */

static void
on_suspicion(struct sup *sup)
{
	struct health *h = sup->health;

	if (!h->is_suspicious)
		probe_join(sup, &h->suspicion);
	h->is_suspicious = true;
}

static void
on_drivers_probed(struct sup *sup, struct probe_waiter *w)
{
	sup->health->is_suspicious = false;
	for (size_t i = 0; drivers[i]; i++) {
		cleanup_free char *name = mem_printf("driver/%s", drivers[i]->name);
		const struct component *c = component_find(&sup->health->components, name);

		if (!c || c->state == HEALTH_UNKNOWN)
			driver_not_probed(sup, drivers[i]->name);
		else
			driver_probed(sup, drivers[i]->name,
			    c->state <= HEALTH_DEGRADED ? NULL : str(c->sentence));
	}
}

/* --- the whole --- */

struct check_memory *
check_memory(struct sup *sup)
{
	return &sup->health->memory;
}

const struct components *
health_components(const struct sup *sup)
{
	return &sup->health->components;
}

uint64_t
health_probes(const struct sup *sup, uint64_t *ret_took_ms)
{
	*ret_took_ms = sup->health->took_ms;
	return sup->health->probes;
}

int
health_new(struct sup *sup, struct err *e)
{
	struct health *h = mem_new(struct health);

	*h = (struct health){ 0 };
	TAILQ_INIT(&h->components);
	TAILQ_INIT(&h->waiters);
	TAILQ_INIT(&h->checks);
	h->repeated.done = on_repeated;
	h->suspicion.done = on_drivers_probed;
	sup->health = h;
	check_memory_begin(sup);
	set_next(sup);
	driver_breakers_use_probe(sup, on_suspicion);
	return probe_tasks_load(sup, e);
}

void
health_free(struct sup *sup)
{
	struct health *h = sup->health;
	struct check *c;

	if (!h)
		return;
	sup_timer_cancel(&h->start);
	sup_timer_cancel(&h->next);
	h->starting = true; /* nothing follows */
	while ((c = TAILQ_FIRST(&h->checks))) {
		check_cancel(c);
		c->late(c);
	}
	check_memory_end(sup);
	probe_tasks_free(sup);
	components_free(&h->components);
	free_p(&sup->health);
}
