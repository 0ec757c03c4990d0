// SPDX-License-Identifier: Apache-2.0
/*
 * local_periodic.c: jobs of which one is made at each of their times. One timer, of the clock that
 * people set: it is told when they do. What a job's times were looked at until is in state.db, so
 * that what should have begun while there was no agent begins once. Runs in: supervisor.
 */
#include "supervisor/server/drive/local_periodic.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/fd.h"
#include "common/list.h"
#include "common/log.h"
#include "supervisor/core/store.h"
#include "supervisor/server/drive/local_launch.h"
#include "supervisor/server/drive/local_register.h"
#include "supervisor/server/job/local_evals.h"
#include "supervisor/server/job/local_family.h"
#include "supervisor/server/job/local_marks.h"
#include "supervisor/server/place/local_reconcile.h"
#include "supervisor/server/job/job_children.h"
#include "model/job_stub.h"

struct local_periodic {
	struct local_job *first; /* jobs whose times make children */
	int fd;                  /* of the timer: the next launch, or the next child to forget */
	struct sd_event_source *timer;
};

int
local_periodic_init(struct local *l)
{
	l->periodic = calloc(1, sizeof *l->periodic);
	if (!l->periodic)
		return -ENOMEM;
	l->periodic->fd = -1;
	return 0;
}

static int64_t
now_s(void)
{
	return clock_real_ns() / 1000000000;
}

/* --- its row --- */

static int
write_looked(struct sup *sup, struct dirty *d, struct err *e)
{
	const struct local_job *j = container_of(d, struct local_job, looked_row);
	char key[LOCAL_LAUNCH_KEY_SIZE], value[24];

	local_launch_key(local_job_wanted(j), key);
	(void)snprintf(value, sizeof value, "%" PRId64, j->looked_s);
	return store_meta_put(sup->store, key, value, e);
}

static void
note_looked(struct local *l, struct local_job *j, int64_t until_s)
{
	j->looked_s = until_s;
	j->looked_row.write = write_looked;
	j->looked_row.point = CRASH_ROW_LAUNCH;
	turn_write(l->base.sup, &j->looked_row);
}

int
local_periodic_load(struct local *l, struct err *e)
{
	size_t n;
	cleanup_free struct local_key **jobs = local_jobs_sorted(l, &n);

	for (size_t i = 0; jobs && i < n; i++) {
		struct local_job *j = local_job_of(jobs[i]);
		const struct job *job = local_job_wanted(j);
		char key[LOCAL_LAUNCH_KEY_SIZE];
		cleanup_free char *value = NULL;
		int r;

		if (!job->periodic)
			continue;
		local_launch_key(job, key);
		r = store_meta_get(l->base.sup->store, key, &value, e);
		if (r < 0 && r != -ENOENT)
			return r;
		j->looked_s =
		    r < 0 ? job->submit_time / 1000000000 : (int64_t)strtoll(value, NULL, 10);
	}
	return 0;
}

/* --- the timer --- */

/* -ECANCELED: it is set, but the clock was too, since this was asked last. */
static int
set_timer(const struct local *l)
{
	int64_t first = local_family_collect_at(l);
	struct itimerspec at = { 0 };

	for (const struct local_job *j = l->periodic->first; j; j = j->next_timed)
		if (j->next_s >= 0 && (first == 0 || j->next_s < first))
			first = j->next_s;
	/* Zero is no time, but none. */
	at.it_value.tv_sec = first;
	if (timerfd_settime(
		l->periodic->fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &at, NULL) < 0)
		return -errno;
	return 0;
}

/* The clock was set, perhaps back: computes the next time of each job that is not due. */
static void
time_again(struct local *l, int64_t now)
{
	for (struct local_job *j = l->periodic->first; j; j = j->next_timed)
		if (local_launch_is_stale(j->next_s, now))
			j->next_s = job_next_launch(local_job_wanted(j), now);
}

/* Who arms the timer right after the clock was set hears of it here, and on_timer() not at all. */
void
local_periodic_arm(struct local *l)
{
	int r = l->periodic->fd < 0 ? 0 : set_timer(l);

	while (r == -ECANCELED) {
		time_again(l, now_s());
		r = set_timer(l);
	}
	if (r < 0)
		log_error("periodic jobs: set their timer: %s", strerror(-r));
}

static void
set_timed(struct local *l, struct local_job *j, bool timed)
{
	if (j->timed == timed)
		return;
	j->timed = timed;
	if (timed) {
		j->next_timed = l->periodic->first;
		if (l->periodic->first)
			l->periodic->first->prev_timed = j;
		l->periodic->first = j;
		return;
	}
	*(j->prev_timed ? &j->prev_timed->next_timed : &l->periodic->first) = j->next_timed;
	if (j->next_timed)
		j->next_timed->prev_timed = j->prev_timed;
	j->prev_timed = j->next_timed = NULL;
}

void
local_periodic_follow(struct local *l, struct local_job *j)
{
	const struct job *job = local_job_wanted(j);

	/* A purged job that was registered again as periodic, and then reverted. */
	if (!job->periodic) {
		set_timed(l, j, false);
		return;
	}
	set_timed(l, j, job_has_launches(job));
	note_looked(l, j, now_s());
	j->next_s = j->timed ? job_next_launch(job, j->looked_s) : -1;
	local_periodic_arm(l);
}

void
local_periodic_forget(struct local *l, struct local_job *j)
{
	set_timed(l, j, false);
	turn_forget_write(l->base.sup, &j->looked_row);
}

/* --- launches --- */

static int
make_child(const struct job *parent, const char *id, struct job *ret)
{
	int r = job_make_child(parent, id, ret);

	if (r < 0)
		return r;
	periodic_config_free(ret->periodic);
	ret->periodic = NULL;
	return 0;
}

int
local_periodic_launch(
    struct local *l, struct local_job *j, int64_t time_s, struct local_eval **ret_ev, struct err *e)
{
	const struct job *parent = local_job_wanted(j);
	cleanup_free char *id = NULL;
	cleanup_done(job) struct job job;
	struct local_job *child;
	int r;

	job_init(&job);
	if (asprintf(&id, "%s%s%" PRId64, parent->id, job_periodic_infix, time_s) < 0)
		return err_set(e, -ENOMEM, "launch job %s", parent->id);
	child = local_job_find_any(l, parent->namespace, id);
	if (child) { /* the clock shows this second again, or somebody forced it in the same one */
		*ret_ev = local_eval_new(l, child, "periodic-job");
		if (!*ret_ev)
			return err_set(e, -ENOMEM, "launch job %s", parent->id);
		local_reconcile_job(l, child, *ret_ev, false);
		return 0;
	}
	r = local_family_check(l, parent, e);
	if (r < 0)
		return r;
	turn_durable(l->base.sup);
	r = make_child(parent, id, &job);
	if (r == 0)
		r = local_job_register(l, &job, "periodic-job", &child, ret_ev);
	return r < 0 ? err_set(e, r, "launch job %s", parent->id) : 0;
}

/* Children are counted only where that matters: there may be thousands. */
static struct local_launch_facts
get_launch_facts(struct local *l, const struct local_job *j, int64_t now)
{
	const struct job *job = local_job_wanted(j);
	struct local_launch_facts f = {
		.now_s = now,
		.next_s = j->next_s,
		.prohibits_overlap = job->periodic->prohibit_overlap == OPT_TRUE,
	};
	struct job_children n;

	if (f.prohibits_overlap && local_launch_is_due(f.next_s, now)) {
		local_family_count(l, job, &n);
		f.n_active = n.pending + n.running;
	}
	return f;
}

/* Launches the job under this time if it is due; then all its times until now are done with. */
static void
launch_due(struct local *l, struct local_job *j, int64_t time_s, int64_t now)
{
	const struct job *job = local_job_wanted(j);
	struct local_launch_facts f = get_launch_facts(l, j, now);
	struct local_eval *ev;
	struct err e = { 0 };

	switch (local_launch_decide(&f)) {
	case LOCAL_LAUNCH_WAIT:
		return;
	case LOCAL_LAUNCH_SKIP:
		log_info("job %s is not launched: the one before has not ended", job->id);
		break;
	case LOCAL_LAUNCH_NOW:
		if (local_periodic_launch(l, j, time_s, &ev, &e) < 0)
			log_warn("job %s is not launched: %s", job->id, e.msg);
		break;
	}
	note_looked(l, j, now);
	j->next_s = job_next_launch(job, now);
}

static int
on_timer(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
	struct local *l = userdata;
	uint64_t n;
	bool clock_set = read(fd, &n, sizeof n) < 0 && errno == ECANCELED;

	if (clock_set)
		time_again(l, now_s());
	local_mark_timer(l);
	return 0;
}

/* The clock is read after the timer was, so that setting it in between is noticed when the timer is
 * armed. */
void
local_periodic_run(struct local *l)
{
	int64_t now = now_s();

	for (struct local_job *j = l->periodic->first, *next; j; j = next) {
		next = j->next_timed;
		launch_due(l, j, j->next_s, now);
	}
	local_family_collect(l, now);
	local_periodic_arm(l);
}

int
local_periodic_start(struct local *l, struct err *e)
{
	size_t n;
	cleanup_free struct local_key **jobs = local_jobs_sorted(l, &n);
	int64_t now = now_s();
	int r;

	for (size_t i = 0; jobs && i < n; i++) {
		struct local_job *j = local_job_of(jobs[i]);

		if (!j->purge && job_has_launches(local_job_wanted(j)))
			set_timed(l, j, true);
	}
	for (struct local_job *j = l->periodic->first; j; j = j->next_timed) {
		j->next_s =
		    job_next_launch(local_job_wanted(j), local_launch_since(j->looked_s, now));
		launch_due(l, j, now, now);
	}
	l->periodic->fd = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	if (l->periodic->fd < 0)
		return err_set(e, -errno, "make the timer of periodic jobs");
	r = sd_event_add_io(
	    l->base.sup->event, &l->periodic->timer, l->periodic->fd, EPOLLIN, on_timer, l);
	if (r < 0)
		return err_set(e, r, "start the timer of periodic jobs");
	local_periodic_arm(l);
	return 0;
}

void
local_periodic_free(struct local *l)
{
	struct local_periodic *p = l->periodic;
	cleanup_free struct local_key **jobs = NULL;
	size_t n;

	if (!p)
		return;
	jobs = local_jobs_sorted(l, &n);
	for (size_t i = 0; jobs && i < n; i++)
		local_periodic_forget(l, local_job_of(jobs[i]));
	sd_event_source_disable_unref(p->timer);
	if (p->fd >= 0)
		(void)close(p->fd);
	free(p);
	l->periodic = NULL;
}
