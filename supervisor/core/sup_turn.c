// SPDX-License-Identifier: Apache-2.0
/* sup_turn.c: the work loop and its one commit per turn. Runs in: supervisor. */
#include "supervisor/core/sup_turn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-event.h>

#include "common/log.h"
#include "supervisor/core/store.h"

#define EVENTS_PER_TURN 256
#define RETRY_USEC      1000000

struct deferred_queue {
	struct deferred *first, **end;
};

struct turn {
	struct dirty *writes, **writes_end;
	struct deferred_queue decisions, sends;
	bool durable;
	bool stuck;
	char why[ERR_MSG_SIZE];
	sd_event_source *retry;
};

static int
on_retry(sd_event_source *source, uint64_t usec, void *userdata)
{
	/* The timer only wakes the loop; the end of the turn retries the commit. */
	return 0;
}

int
turn_new(struct sup *sup, struct err *e)
{
	struct turn *t = calloc(1, sizeof *t);
	int r;

	if (!t)
		return err_set(e, -ENOMEM, "start the work loop");
	t->writes_end = &t->writes;
	t->decisions.end = &t->decisions.first;
	t->sends.end = &t->sends.first;
	r = sd_event_add_time(sup->event, &t->retry, CLOCK_MONOTONIC, 0, 0, on_retry, sup);
	if (r < 0) {
		free(t);
		return err_set(e, r, "start the work loop");
	}
	(void)sd_event_source_set_enabled(t->retry, SD_EVENT_OFF);
	sup->turn = t;
	return 0;
}

void
turn_free(struct sup *sup)
{
	if (!sup->turn)
		return;
	sd_event_source_unref(sup->turn->retry);
	free(sup->turn);
	sup->turn = NULL;
}

void
turn_write(struct sup *sup, struct dirty *d)
{
	struct turn *t = sup->turn;

	if (d->queued)
		return;
	d->queued = true;
	d->next = NULL;
	*t->writes_end = d;
	t->writes_end = &d->next;
}

void
turn_durable(struct sup *sup)
{
	sup->turn->durable = true;
}

static void
queue_deferred(struct deferred_queue *q, struct deferred *d)
{
	if (d->queued)
		return;
	d->queued = true;
	d->next = NULL;
	*q->end = d;
	q->end = &d->next;
}

static struct deferred *
pop_deferred(struct deferred_queue *q)
{
	struct deferred *d = q->first;

	q->first = d->next;
	if (!q->first)
		q->end = &q->first;
	d->queued = false;
	return d;
}

/* Returns false if d is not in this queue. */
static bool
remove_deferred(struct deferred_queue *q, struct deferred *d)
{
	struct deferred **at = &q->first;

	while (*at && *at != d)
		at = &(*at)->next;
	if (!*at)
		return false;
	*at = d->next;
	if (q->end == &d->next)
		q->end = at;
	d->queued = false;
	return true;
}

void
turn_before_commit(struct sup *sup, struct deferred *d)
{
	queue_deferred(&sup->turn->decisions, d);
}

void
turn_defer(struct sup *sup, struct deferred *d)
{
	queue_deferred(&sup->turn->sends, d);
}

void
turn_forget_write(struct sup *sup, struct dirty *d)
{
	struct turn *t = sup->turn;
	struct dirty **at = &t->writes;

	if (!d->queued)
		return;
	while (*at && *at != d)
		at = &(*at)->next;
	if (*at)
		*at = d->next;
	if (t->writes_end == &d->next)
		t->writes_end = at;
	d->queued = false;
}

void
turn_forget_deferred(struct sup *sup, struct deferred *d)
{
	struct turn *t = sup->turn;

	if (d->queued && !remove_deferred(&t->decisions, d))
		(void)remove_deferred(&t->sends, d);
}

bool
turn_is_stuck(struct sup *sup, const char **ret)
{
	if (ret)
		*ret = sup->turn->why;
	return sup->turn->stuck;
}

/* Writes all dirty rows and commits. The list is kept until the commit has succeeded. */
static int
write_and_commit(struct sup *sup, struct err *e)
{
	struct turn *t = sup->turn;
	int r;

	for (struct dirty *d = t->writes; d; d = d->next) {
		r = d->write(sup, d, e);
		if (r < 0)
			goto undo;
		CRASH_AT(d->point);
	}
	CRASH_POINT(SUP_BEFORE_COMMIT);
	r = store_commit(sup->store, t->durable, e);
	if (r >= 0) {
		CRASH_POINT(SUP_AFTER_COMMIT);
		for (struct dirty *d = CRASH_BUILD ? t->writes : NULL; d; d = d->next)
			CRASH_AT(d->point + 1);
		return 0;
	}
undo:
	store_rollback(sup->store);
	return r;
}

static void
finish_writes(struct sup *sup)
{
	struct turn *t = sup->turn;
	struct dirty *list = t->writes;

	t->writes = NULL;
	t->writes_end = &t->writes;
	while (list) {
		struct dirty *d = list;

		list = d->next;
		d->queued = false;
		if (d->written)
			d->written(sup, d);
	}
}

static void
run_decisions(struct sup *sup)
{
	struct turn *t = sup->turn;

	while (t->decisions.first) {
		struct deferred *d = pop_deferred(&t->decisions);

		d->run(sup, d);
	}
}

static void
run_deferred(struct sup *sup)
{
	struct turn *t = sup->turn;

	/* Takes one entry at a time: a function may queue more, which runs in this turn as long as
	 * nothing is dirty or undecided. */
	while (t->sends.first && !t->writes && !t->decisions.first) {
		struct deferred *d = pop_deferred(&t->sends);

		d->run(sup, d);
		if (t->sends.first)
			CRASH_POINT(SUP_BETWEEN_SENDS);
	}
}

static bool
has_work(const struct turn *t)
{
	return t->decisions.first || t->writes || t->sends.first;
}

static void
get_stuck(struct sup *sup, const struct err *e)
{
	struct turn *t = sup->turn;
	uint64_t now;

	if (!t->stuck)
		log_error("%s; nothing is lost, it is tried again each second", e->msg);
	t->stuck = true;
	(void)strcpy(t->why, e->msg);
	(void)sd_event_now(sup->event, CLOCK_MONOTONIC, &now);
	(void)sd_event_source_set_time(t->retry, now + RETRY_USEC);
	(void)sd_event_source_set_enabled(t->retry, SD_EVENT_ONESHOT);
}

/* Repeats until nothing is dirty or queued: rows that became dirty while sending are committed in
 * another round. */
static void
end_turn(struct sup *sup)
{
	struct turn *t = sup->turn;
	struct err e = { 0 };

	while (has_work(t)) {
		run_decisions(sup);
		if (t->writes) {
			if (write_and_commit(sup, &e) < 0) {
				get_stuck(sup, &e);
				return;
			}
			if (t->stuck)
				log_info("state.db can be written again");
			t->stuck = t->durable = false;
			finish_writes(sup);
		}
		run_deferred(sup);
		CRASH_POINT(SUP_AFTER_SEND);
	}
}

int
turn_loop(struct sup *sup)
{
	int r;

	while (!sup->exiting || has_work(sup->turn)) {
		end_turn(sup);
		if (sup->exiting && !sup->turn->stuck)
			break;
		r = sd_event_run(sup->event, UINT64_MAX);
		for (int n = 0; r > 0 && n < EVENTS_PER_TURN; n++)
			r = sd_event_run(sup->event, 0);
		if (r < 0) {
			log_error("work loop: %s", strerror(-r));
			return 1;
		}
	}
	return 0;
}
