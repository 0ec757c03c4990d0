// SPDX-License-Identifier: Apache-2.0
/* sup_turn.c: the work loop and its one commit per turn. Runs in: supervisor. */
#include "supervisor/core/sup_turn.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-event.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "supervisor/core/reserve.h"
#include "supervisor/core/store.h"
#include "supervisor/core/sup_timer.h"

#define EVENTS_PER_TURN 256
#define RETRY_USEC      1000000
#define TRIAL           "trial" /* the row of turn_try_commit() */

STAILQ_HEAD(dirty_list, dirty);
STAILQ_HEAD(deferred_queue, deferred);

struct turn {
	struct dirty_list lists[2]; /* one for the rows of this turn, one for those whose commit is
				       being reported */
	struct dirty_list *writes;  /* that of this turn */
	struct deferred_queue decisions, sends;
	bool durable;
	bool stuck;
	char why[ERR_MSG_SIZE];
	uint64_t stuck_since_ms;
	bool uses_reserve;
	void (*on_failure)(struct sup *sup); /* NULL: nobody watches */
	struct sup_timer retry;
	struct turn_counts counts;
};

void
turn_new(struct sup *sup)
{
	struct turn *t = mem_new(struct turn);

	t->writes = &t->lists[0];
	STAILQ_INIT(&t->lists[0]);
	STAILQ_INIT(&t->lists[1]);
	STAILQ_INIT(&t->decisions);
	STAILQ_INIT(&t->sends);
	sup->turn = t;
}

void
turn_free(struct sup *sup)
{
	if (!sup->turn)
		return;
	sup_timer_cancel(&sup->turn->retry);
	free_p(&sup->turn);
}

void
turn_write(struct sup *sup, struct dirty *d)
{
	if (d->list)
		return;
	d->list = sup->turn->writes;
	STAILQ_INSERT_TAIL(d->list, d, link);
}

void
turn_durable(struct sup *sup)
{
	sup->turn->durable = true;
}

static void
queue_deferred(struct deferred_queue *q, struct deferred *d)
{
	if (d->queue)
		return;
	d->queue = q;
	STAILQ_INSERT_TAIL(q, d, link);
}

static struct deferred *
pop_deferred(struct deferred_queue *q)
{
	struct deferred *d = STAILQ_FIRST(q);

	STAILQ_REMOVE_HEAD(q, link);
	d->queue = NULL;
	return d;
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
	if (!d->list)
		return;
	STAILQ_REMOVE(d->list, d, dirty, link);
	d->list = NULL;
}

void
turn_forget_deferred(struct sup *sup, struct deferred *d)
{
	if (!d->queue)
		return;
	STAILQ_REMOVE(d->queue, d, deferred, link);
	d->queue = NULL;
}

bool
turn_is_stuck(struct sup *sup, const char **ret)
{
	if (ret)
		*ret = sup->turn->why;
	return sup->turn->stuck;
}

uint64_t
turn_stuck_ms(struct sup *sup)
{
	return sup->turn->stuck ? clock_ms() - sup->turn->stuck_since_ms : 0;
}

void
turn_watch_failure(struct sup *sup, void (*fn)(struct sup *sup))
{
	sup->turn->on_failure = fn;
}

const struct turn_counts *
turn_counts(const struct sup *sup)
{
	return &sup->turn->counts;
}

/* Writes all dirty rows and commits. The list is kept until the commit has succeeded. */
static int
write_and_commit(struct sup *sup, struct err *e)
{
	const uint64_t begun_ns = clock_boot_ns();
	struct turn *t = sup->turn;
	struct dirty *d;
	int r;

	STAILQ_FOREACH (d, t->writes, link) {
		r = d->write(sup, d, e);
		if (r < 0)
			goto undo;
		CRASH_AT(d->point);
	}
	CRASH_POINT(SUP_BEFORE_COMMIT);
	r = store_commit(sup->store, t->durable, e);
	if (r >= 0) {
		CRASH_POINT(SUP_AFTER_COMMIT);
		if (CRASH_BUILD)
			STAILQ_FOREACH (d, t->writes, link)
				CRASH_AT(d->point + 1);
		histogram_add(&t->counts.commits, (clock_boot_ns() - begun_ns) / 1000);
		return 0;
	}
undo:
	t->counts.failed_commits++;
	store_rollback(sup->store);
	return r;
}

static void
finish_writes(struct sup *sup)
{
	struct turn *t = sup->turn;
	struct dirty_list *written = t->writes;
	struct dirty *d;

	t->writes = &t->lists[written == &t->lists[0]];
	while ((d = STAILQ_FIRST(written))) {
		STAILQ_REMOVE_HEAD(written, link);
		d->list = NULL;
		if (d->written)
			d->written(sup, d);
	}
}

static void
run_decisions(struct sup *sup)
{
	struct turn *t = sup->turn;

	while (!STAILQ_EMPTY(&t->decisions)) {
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
	while (!STAILQ_EMPTY(&t->sends) && STAILQ_EMPTY(t->writes) && STAILQ_EMPTY(&t->decisions)) {
		struct deferred *d = pop_deferred(&t->sends);

		d->run(sup, d);
		if (!STAILQ_EMPTY(&t->sends))
			CRASH_POINT(SUP_BETWEEN_SENDS);
	}
}

static bool
has_work(const struct turn *t)
{
	return !STAILQ_EMPTY(&t->decisions) || !STAILQ_EMPTY(t->writes) || !STAILQ_EMPTY(&t->sends);
}

static void
on_retry(void *arg)
{
	/* The timer only wakes the loop; the end of the turn retries the commit. */
}

void
turn_use_reserve(struct sup *sup, bool use)
{
	sup->turn->uses_reserve = use;
}

/* Returns whether the commit may succeed now. */
static bool
free_space(struct sup *sup, const struct err *e)
{
	return e->code == -ENOSPC && sup->turn->uses_reserve && reserve_release(sup->reserve);
}

int
turn_try_commit(struct sup *sup, struct err *e)
{
	cleanup_free char *text = mem_printf("%lld", (long long)clock_real_ns());
	bool uses_reserve = sup->turn->uses_reserve;
	int r;

	sup->turn->uses_reserve = true;
	do {
		r = store_meta_put(sup->store, TRIAL, text, e);
		if (r >= 0)
			r = store_commit(sup->store, true, e);
		if (r < 0)
			store_rollback(sup->store);
	} while (r < 0 && free_space(sup, e));
	sup->turn->uses_reserve = uses_reserve;
	return r;
}

static void
note_failed_commit(struct sup *sup, const struct err *e)
{
	struct turn *t = sup->turn;
	bool is_first = !t->stuck;

	if (e->code == -ENOSPC)
		(void)snprintf(t->why, sizeof t->why, "%.240s: free space on the disk of %.200s",
		    e->msg, sup->args.data_dir);
	else
		(void)strcpy(t->why, e->msg);
	if (is_first) {
		log_error("%s; nothing is lost, it is tried again each second", t->why);
		t->stuck_since_ms = clock_ms();
	}
	t->stuck = true;
	sup_timer_set(sup, &t->retry, CLOCK_MONOTONIC, RETRY_USEC, on_retry, NULL);
	if (is_first && t->on_failure)
		t->on_failure(sup);
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
		if (!STAILQ_EMPTY(t->writes)) {
			if (write_and_commit(sup, &e) < 0) {
				if (free_space(sup, &e))
					continue;
				note_failed_commit(sup, &e);
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

/* Waits for an event and handles it. *ret_begun_ns becomes the time when the wait ended. */
static int
wait_and_run(struct sd_event *event, uint64_t *ret_begun_ns)
{
	int r = sd_event_prepare(event);

	if (r == 0)
		r = sd_event_wait(event, UINT64_MAX);
	*ret_begun_ns = clock_boot_ns();
	return r > 0 ? sd_event_dispatch(event) : r;
}

int
turn_loop(struct sup *sup)
{
	uint64_t begun_ns = clock_boot_ns();
	int r;

	while (!sup->exiting || has_work(sup->turn)) {
		end_turn(sup);
		histogram_add(&sup->turn->counts.turns, (clock_boot_ns() - begun_ns) / 1000);
		if (sup->exiting && !sup->turn->stuck)
			break;
		r = wait_and_run(sup->event, &begun_ns);
		for (int n = 0; r > 0 && n < EVENTS_PER_TURN; n++)
			r = sd_event_run(sup->event, 0);
		if (r < 0) {
			log_error("work loop: %s", strerror(-r));
			return 1;
		}
	}
	return 0;
}
