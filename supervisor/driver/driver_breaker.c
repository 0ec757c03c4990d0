// SPDX-License-Identifier: Apache-2.0
/* driver_breaker.c: stops starts with a driver that does not work on this node. Runs in:
 * supervisor. */
#include "supervisor/driver/driver_breaker.h"

#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/list.h"
#include "common/mem.h"
#include "model/node.h"
#include "supervisor/core/journal.h"
#include "supervisor/core/sup_timer.h"
#include "supervisor/driver/driver.h"
#include "supervisor/node/node_events.h"
#include "supervisor/node/node_state.h"
#include "supervisor/node/node_troubles.h"

#define FAILURES      5        /* in a row, before a probe */
#define AGAIN_USEC    5000000  /* until the next probe of a driver that does not work */
#define AGAIN_MAX     60000000 /* it is doubled up to this */
#define BREAKERS      4        /* one for each of drivers[] */
#define FAILURES_MANY 1000
#define UNTRIED       "the agent is testing whether it works on this machine"
#define TROUBLE       "unhealthy-driver/" /* before the driver's name: in node_troubles.h */

TAILQ_HEAD(driver_waits, driver_wait);

struct driver_breaker {
	struct sup *sup;
	const struct driver_ops *driver;
	unsigned failures; /* starts in a row */
	bool asked;        /* for a probe, whose result has not come */
	char *why;         /* the driver does not work; NULL: it does */
	bool is_need;      /* why is of driver_check_needs() */
	bool is_untried;   /* why is UNTRIED, and nobody was told */
	uint64_t again_usec;
	struct sup_timer again;
	struct driver_waits waits;
};

struct driver_breakers {
	void (*probe)(struct sup *sup);
	struct driver_breaker v[BREAKERS];
};

void
driver_breakers_new(struct sup *sup)
{
	sup->breakers = mem_new(struct driver_breakers);
	for (size_t i = 0; i < BREAKERS && drivers[i]; i++) {
		struct driver_breaker *b = &sup->breakers->v[i];

		*b = (struct driver_breaker){ .sup = sup, .driver = drivers[i] };
		TAILQ_INIT(&b->waits);
	}
}

void
driver_breakers_free(struct sup *sup)
{
	for (size_t i = 0; sup->breakers && i < BREAKERS; i++) {
		sup_timer_cancel(&sup->breakers->v[i].again);
		free(sup->breakers->v[i].why);
	}
	free_p(&sup->breakers);
}

void
driver_breakers_use_probe(struct sup *sup, void (*probe)(struct sup *sup))
{
	sup->breakers->probe = probe;
}

static struct driver_breaker *
find_breaker(struct sup *sup, const char *driver)
{
	for (size_t i = 0; i < BREAKERS; i++) {
		struct driver_breaker *b = &sup->breakers->v[i];

		if (b->driver && str_eq(b->driver->name, driver))
			return b;
	}
	return NULL;
}

static void
ask(struct driver_breaker *b)
{
	if (b->asked || !b->sup->breakers->probe)
		return;
	b->asked = true;
	b->sup->breakers->probe(b->sup);
}

static void open_breaker(struct driver_breaker *b, const char *why, bool is_need);

/* Returns whether the driver cannot work on this machine, and stops it then. */
static bool
stop_for_need(struct driver_breaker *b)
{
	struct err e = { 0 };

	if (driver_check_needs(b->driver, &e) == 0)
		return false;
	open_breaker(b, e.msg, true);
	return true;
}

static void
on_again(void *arg)
{
	struct driver_breaker *b = arg;

	if (!stop_for_need(b))
		ask(b);
}

static void
remember(struct driver_breaker *b)
{
	cleanup_free char *name = mem_printf(TROUBLE "%s", b->driver->name);

	node_trouble_set(b->sup, name, b->why, true);
}

/* A driver that cannot work has no attributes; with -dev, which enables all drivers, it is not
 * detected. One that nobody was told about is only shown. */
static void
show_driver(struct driver_breaker *b)
{
	const char *name = b->driver->name;

	driver_fingerprint(b->sup, b->driver);
	if (b->is_need)
		node_hide_driver(b->sup, name, !b->sup->config->dev);
	node_put_driver_health(b->sup, name, b->why);
}

static void
tell_node(struct driver_breaker *b)
{
	struct node_event ev;

	node_event_init(&ev);
	str_set(&ev.subsystem, "Driver");
	if (b->why)
		str_setf(&ev.message, "Driver %s is unhealthy: %s", b->driver->name, b->why);
	else
		str_setf(&ev.message, "Driver %s is healthy", b->driver->name);
	journal_info(JOURNAL_NODE, NULL, "%s", ev.message);
	show_driver(b);
	remember(b);
	node_event_add(b->sup, &ev);
	node_event_done(&ev);
}

/* The reason of a probe differs a little each time, so it is told once; a need is told anew. */
static void
open_breaker(struct driver_breaker *b, const char *why, bool is_need)
{
	bool was_open = b->why && !b->is_untried;
	bool is_news = !was_open || ((is_need || b->is_need) && strcmp(b->why, why) != 0);

	b->again_usec = was_open ? 2 * b->again_usec : AGAIN_USEC;
	if (b->again_usec > AGAIN_MAX)
		b->again_usec = AGAIN_MAX;
	str_set(&b->why, why);
	b->is_need = is_need;
	b->is_untried = false;
	sup_timer_set(b->sup, &b->again, CLOCK_MONOTONIC, b->again_usec, on_again, b);
	if (is_news)
		tell_node(b);
}

static void
close_breaker(struct driver_breaker *b)
{
	bool was_told = !b->is_untried;
	struct driver_wait *w;

	b->failures = 0;
	if (!b->why)
		return;
	free_p(&b->why);
	b->is_need = b->is_untried = false;
	sup_timer_cancel(&b->again);
	if (was_told)
		tell_node(b);
	else
		show_driver(b);
	while (!b->why && (w = TAILQ_FIRST(&b->waits))) {
		TAILQ_REMOVE(&b->waits, w, link);
		w->of = NULL;
		w->ready(w);
	}
}

static void
load_breaker(struct driver_breaker *b)
{
	cleanup_free char *name = mem_printf(TROUBLE "%s", b->driver->name);
	const char *why = node_trouble(b->sup, name);

	if (driver_usable(b->sup->config, b->driver, NULL) < 0) {
		if (why) /* it was disabled meanwhile */
			remember(b);
		return;
	}
	b->why = why ? mem_strdup(why) : NULL;
	b->again_usec = AGAIN_USEC; /* 0 would stay 0 */
	if (stop_for_need(b)) {
		show_driver(b);
		return;
	}
	b->is_untried = !why && driver_needs_start(b->sup, b->driver);
	if (b->is_untried)
		b->why = mem_strdup(UNTRIED);
	if (!b->why)
		return;
	sup_timer_set(
	    b->sup, &b->again, CLOCK_MONOTONIC, b->is_untried ? 1 : AGAIN_USEC, on_again, b);
	show_driver(b);
}

void
driver_breakers_load(struct sup *sup)
{
	for (size_t i = 0; i < BREAKERS; i++)
		if (sup->breakers->v[i].driver)
			load_breaker(&sup->breakers->v[i]);
}

void
driver_start_failed(struct sup *sup, const char *driver)
{
	struct driver_breaker *b = find_breaker(sup, driver);

	if (!b)
		return;
	if (b->failures < FAILURES_MANY)
		b->failures++;
	if (b->failures >= FAILURES && !b->why)
		ask(b);
}

void
driver_start_worked(struct sup *sup, const char *driver)
{
	struct driver_breaker *b = find_breaker(sup, driver);

	if (b)
		b->failures = 0;
}

bool
driver_lacks_need(struct sup *sup, const char *driver)
{
	struct driver_breaker *b = find_breaker(sup, driver);

	return b && driver_usable(sup->config, b->driver, NULL) == 0 && stop_for_need(b);
}

bool
driver_is_suspect(struct sup *sup, const char *driver)
{
	const struct driver_breaker *b = find_breaker(sup, driver);

	return b && (b->why || b->failures >= FAILURES);
}

void
driver_probed(struct sup *sup, const char *driver, const char *why)
{
	struct driver_breaker *b = find_breaker(sup, driver);

	if (!b || !b->asked)
		return;
	b->asked = false;
	if (!why)
		close_breaker(b);
	else if (!stop_for_need(b))
		open_breaker(b, why, false);
}

void
driver_not_probed(struct sup *sup, const char *driver)
{
	struct driver_breaker *b = find_breaker(sup, driver);

	if (!b || !b->asked)
		return;
	b->asked = false;
	if (b->is_untried)
		close_breaker(b);
	else if (b->why)
		sup_timer_set(sup, &b->again, CLOCK_MONOTONIC, b->again_usec, on_again, b);
}

bool
driver_admits(struct sup *sup, const char *driver, struct driver_wait *w)
{
	struct driver_breaker *b = find_breaker(sup, driver);

	if (!b || !b->why)
		return true;
	if (!w->of) {
		w->of = b;
		TAILQ_INSERT_TAIL(&b->waits, w, link);
	}
	return false;
}

void
driver_wait_cancel(struct driver_wait *w)
{
	if (!w->of)
		return;
	TAILQ_REMOVE(&w->of->waits, w, link);
	w->of = NULL;
}

const char *
driver_stopped_why(struct sup *sup, const char *driver)
{
	const struct driver_breaker *b = find_breaker(sup, driver);

	return b && !b->is_untried ? b->why : NULL;
}
