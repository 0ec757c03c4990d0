// SPDX-License-Identifier: Apache-2.0
/*
 * local_periodic.c: launches of periodic jobs. All have one timer of the wall clock, which also
 * fires when that clock is set. The time up to which a job's launches are done is in state.db, so
 * that launches which were missed while the agent did not run are made up by one. Runs in:
 * supervisor.
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
#include "common/log.h"
#include "common/mem.h"
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
	LIST_HEAD(, local_job) timed;
	int fd; /* timerfd: the next launch, or the next purge of a dead child */
	struct sd_event_source *timer;
};

void
local_periodic_init(struct local *l)
{
	l->periodic = mem_new(struct local_periodic);
	l->periodic->fd = -1;
}

static int64_t
now_s(void)
{
	return clock_real_ns() / 1000000000;
}

static int
write_checked(struct sup *sup, struct dirty *d, struct err *e)
{
	const struct local_job *j = container_of(d, struct local_job, checked_row);
	char key[LOCAL_LAUNCH_KEY_SIZE], value[24];

	local_launch_key(local_job_wanted(j), key);
	(void)snprintf(value, sizeof value, "%" PRId64, j->checked_s);
	return store_meta_put(sup->store, key, value, e);
}

static void
set_checked(struct local *l, struct local_job *j, int64_t until_s)
{
	j->checked_s = until_s;
	j->checked_row.write = write_checked;
	j->checked_row.point = CRASH_ROW_LAUNCH;
	turn_write(l->base.sup, &j->checked_row);
}

int
local_periodic_load(struct local *l, struct err *e)
{
	size_t n;
	cleanup_free struct local_key **jobs = local_jobs_sorted(l, &n);

	for (size_t i = 0; i < n; i++) {
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
		j->checked_s =
		    r < 0 ? job->submit_time / 1000000000 : (int64_t)strtoll(value, NULL, 10);
	}
	return 0;
}

/* Returns 0 or -errno. -ECANCELED: the timer is set, but the clock was set since the last call. */
static int
set_timer(const struct local *l)
{
	int64_t first = local_family_collect_at(l);
	struct itimerspec at = { 0 };
	const struct local_job *j;

	LIST_FOREACH (j, &l->periodic->timed, timed_entry)
		if (j->next_s >= 0 && (first == 0 || j->next_s < first))
			first = j->next_s;
	/* 0 disarms the timer. */
	at.it_value.tv_sec = first;
	if (timerfd_settime(
		l->periodic->fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &at, NULL) < 0)
		return -errno;
	return 0;
}

/* The clock was set, possibly back: computes the next launch of each job that is not due. */
static void
update_launches(struct local *l, int64_t now)
{
	struct local_job *j;

	LIST_FOREACH (j, &l->periodic->timed, timed_entry)
		if (local_launch_is_stale(j->next_s, now))
			j->next_s = job_next_launch(local_job_wanted(j), now);
}

/* If the clock was set since the last call, timerfd reports it here instead of to on_timer(). */
void
local_periodic_arm(struct local *l)
{
	int r = l->periodic->fd < 0 ? 0 : set_timer(l);

	while (r == -ECANCELED) {
		update_launches(l, now_s());
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
	if (timed)
		LIST_INSERT_HEAD(&l->periodic->timed, j, timed_entry);
	else
		LIST_REMOVE(j, timed_entry);
}

void
local_periodic_update(struct local *l, struct local_job *j)
{
	const struct job *job = local_job_wanted(j);

	/* A purged job can be registered again as periodic, and reverted to a version that is not.
	 */
	if (!job->periodic) {
		set_timed(l, j, false);
		return;
	}
	set_timed(l, j, job_has_launches(job));
	set_checked(l, j, now_s());
	j->next_s = j->timed ? job_next_launch(job, j->checked_s) : -1;
	local_periodic_arm(l);
}

void
local_periodic_forget(struct local *l, struct local_job *j)
{
	set_timed(l, j, false);
	turn_forget_write(l->base.sup, &j->checked_row);
}

int
local_periodic_launch(
    struct local *l, struct local_job *j, int64_t time_s, struct local_eval **ret_ev, struct err *e)
{
	const struct job *parent = local_job_wanted(j);
	cleanup_free char *id = mem_printf("%s%s%" PRId64, parent->id, job_periodic_infix, time_s);
	struct local_job *child = local_job_find_any(l, parent->namespace, id);
	cleanup_done(job) struct job job;
	int r;

	job_init(&job);
	/* The clock was set back, or an operator forced a launch in the same second. */
	if (child) {
		*ret_ev = local_eval_new(l, child, "periodic-job");
		local_reconcile_job(l, child, *ret_ev, false);
		return 0;
	}
	r = local_family_check(l, parent, e);
	if (r < 0)
		return r;
	turn_durable(l->base.sup);
	job_make_child(parent, id, &job);
	periodic_config_free(job.periodic);
	job.periodic = NULL;
	local_job_register(l, &job, NULL, "periodic-job", &child, ret_ev);
	return 0;
}

/* Counts the children only if that matters, because there may be thousands. */
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

/* Launches the job, as its child of time_s, if it is due. Its other launches until now are skipped.
 */
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
		log_info("job %s is not launched: the previous launch has not ended", job->id);
		break;
	case LOCAL_LAUNCH_NOW:
		if (local_periodic_launch(l, j, time_s, &ev, &e) < 0)
			log_warn("job %s is not launched: %s", job->id, e.msg);
		break;
	}
	set_checked(l, j, now);
	j->next_s = job_next_launch(job, now);
}

static int
on_timer(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
	struct local *l = userdata;
	uint64_t n;
	bool clock_set = read(fd, &n, sizeof n) < 0 && errno == ECANCELED;

	if (clock_set)
		update_launches(l, now_s());
	local_mark_timer(l);
	return 0;
}

/* Reads the clock after the timer: if the clock is set in between, that is noticed when the timer
 * is set. */
void
local_periodic_run(struct local *l)
{
	int64_t now = now_s();
	struct local_job *j;

	LIST_FOREACH (j, &l->periodic->timed, timed_entry)
		launch_due(l, j, j->next_s, now);
	local_family_collect(l, now);
	local_periodic_arm(l);
}

int
local_periodic_start(struct local *l, struct err *e)
{
	size_t n;
	cleanup_free struct local_key **jobs = local_jobs_sorted(l, &n);
	int64_t now = now_s();
	struct local_job *j;
	int r;

	for (size_t i = 0; i < n; i++) {
		j = local_job_of(jobs[i]);
		if (!j->purge && job_has_launches(local_job_wanted(j)))
			set_timed(l, j, true);
	}
	LIST_FOREACH (j, &l->periodic->timed, timed_entry) {
		j->next_s =
		    job_next_launch(local_job_wanted(j), local_launch_since(j->checked_s, now));
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
	size_t n;
	cleanup_free struct local_key **jobs = local_jobs_sorted(l, &n);

	for (size_t i = 0; i < n; i++)
		local_periodic_forget(l, local_job_of(jobs[i]));
	sd_event_source_disable_unref(p->timer);
	if (p->fd >= 0)
		(void)close(p->fd);
	free(p);
}
