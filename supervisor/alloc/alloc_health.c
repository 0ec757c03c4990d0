// SPDX-License-Identifier: Apache-2.0
/*
 * alloc_health.c: is an alloc of a deployment, or one that was moved by a drain, healthy? By its
 * tasks and its checks (semantics.md 4): all run, and all pass, for min_healthy_time before
 * healthy_deadline. Runs in: supervisor.
 */
#include "supervisor/alloc/alloc_health.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-event.h>

#include "common/clock.h"
#include "common/duration.h"
#include "common/log.h"
#include "common/number.h"
#include "model/task_event.h"
#include "supervisor/alloc/alloc_runner.h"
#include "supervisor/service/checks.h"

/* Of a job without a migrate block. */
#define MIN_HEALTHY_MS 10000
#define DEADLINE_MS    300000

enum verdict { HEALTH_WAIT, HEALTH_GOOD, HEALTH_BAD };

struct terms {
	int64_t min_healthy_ns, deadline_ns;
	bool checks; /* count too */
};

/* By what rule? False: nobody asks. */
static bool
find_terms(const struct alloc_runner *ar, struct terms *ret)
{
	const struct sup_alloc *sa = ar->sa;
	const struct update_strategy *u = sa->group->update;
	const struct migrate_strategy *m = sa->group->migrate;

	if (sa->job->job.type != JOB_SERVICE && sa->job->job.type != JOB_SYSTEM)
		return false;
	if (*str(sa->a.deployment_id)) {
		if (!u || str_eq(u->health_check, "manual"))
			return false;
		*ret = (struct terms){ u->min_healthy_time, u->healthy_deadline,
			str_eq(u->health_check, "checks") };
		return true;
	}
	if (sa->job->job.type != JOB_SERVICE || !ar->sup->source->ops->health_of_all)
		return false;
	*ret = (struct terms){ (int64_t)MIN_HEALTHY_MS * NS_PER_MS,
		(int64_t)DEADLINE_MS * NS_PER_MS, true };
	if (m && m->min_healthy_time >= 0)
		*ret = (struct terms){ m->min_healthy_time, m->healthy_deadline,
			str_eq(m->health_check, "checks") };
	return true;
}

/* What there is to say of an alloc that is not healthy. */
struct blame {
	const struct terms *terms; /* NULL: nobody had asked for more than that it does not fail */
	const char *all;           /* the same for each task; NULL: to each its own */
	const char *checks;        /* what they have against it; NULL: nothing */
	bool late;                 /* the deadline has passed */
};

/* A task that runs is to blame for its own start only, and for what checks say of it. */
static bool
blame_running(const struct alloc_runner *ar, const struct task_state *s, const struct blame *b,
    char *buf, size_t size)
{
	char min[DURATION_SIZE], deadline[DURATION_SIZE];

	if (!b->late || ar->health.start == 0)
		return false;
	if (b->checks) {
		(void)snprintf(buf, size, "%s", b->checks);
		return true;
	}
	duration_format(b->terms->min_healthy_ns, min);
	duration_format(b->terms->deadline_ns, deadline);
	(void)snprintf(buf, size,
	    "Task not running for min_healthy_time of %s by healthy_deadline of %s", min, deadline);
	return s->started_at == ar->health.start ||
	       number_add(s->started_at, b->terms->min_healthy_ns) > task_now_ns();
}

/* Has this task its part in it? Then it is told which. */
static bool
blame_task(const struct alloc_runner *ar, const struct task_runner *tr, const struct task_state *s,
    const struct blame *b, char *buf, size_t size)
{
	const struct lifecycle *l = tr->task->lifecycle;
	char deadline[DURATION_SIZE];

	if (s->failed) {
		(void)snprintf(buf, size, "Unhealthy because of failed task");
		return true;
	}
	switch (s->state) {
	case TASK_STATE_RUNNING:
		return blame_running(ar, s, b, buf, size);
	case TASK_STATE_DEAD:
		(void)snprintf(buf, size, "Unhealthy because of dead task");
		return !l || l->hook == HOOK_NONE || l->sidecar;
	default:
		duration_format(b->terms->deadline_ns, deadline);
		(void)snprintf(buf, size, "Task not running by healthy_deadline of %s", deadline);
		return b->late;
	}
}

static void
tell_unhealthy(struct alloc_runner *ar, const struct blame *b)
{
	const struct alloc *a = &ar->sa->a;

	if (!*str(a->deployment_id) || alloc_server_terminal(a))
		return;
	for (unsigned i = 0; i < ar->n_tasks; i++) {
		struct task_runner *tr = &ar->tasks[i];
		const struct task_state *s = task_runner_state(tr);
		char text[480];

		if (b->all)
			task_runner_tell(tr, EVENT_ALLOC_UNHEALTHY, b->all, false);
		else if (b->terms && s && tr->stage != STAGE_POSTSTOP &&
			 blame_task(ar, tr, s, b, text, sizeof text))
			task_runner_tell(tr, EVENT_ALLOC_UNHEALTHY, text, false);
	}
}

/* b: NULL where it is healthy. */
static void
set_health(struct alloc_runner *ar, const struct blame *b)
{
	struct alloc *a = &ar->sa->a;

	if (!a->deployment_status)
		a->deployment_status = deployment_status_new();
	if (!a->deployment_status)
		return;
	a->deployment_status->healthy = b ? OPT_FALSE : OPT_TRUE;
	a->deployment_status->timestamp = task_now_ns();
	alloc_changed(ar->sup, ar->sa);
	ar->news = true;
	if (b)
		tell_unhealthy(ar, b);
	else
		log_info("allocation %.8s is healthy", a->id);
	alloc_health_done(ar);
}

/* The latest start of the tasks that have to run; 0: not all do. */
static enum verdict
look_at_tasks(const struct sup_alloc *sa, int64_t *ret_start)
{
	int64_t latest = 0;

	*ret_start = 0;
	for (size_t i = 0; i < sa->group->tasks.n; i++) {
		const struct task_state *s =
		    map_get(task_state, &sa->a.task_states, str(sa->group->tasks.v[i].name));
		enum task_stage stage = task_stage(&sa->group->tasks.v[i]);

		if (stage == STAGE_POSTSTOP ||
		    ((stage == STAGE_PRESTART || stage == STAGE_POSTSTART) && s &&
			s->state == TASK_STATE_DEAD && !s->failed))
			continue;
		if (!s || s->state == TASK_STATE_PENDING)
			return HEALTH_WAIT;
		if (s->failed || s->finished_at != 0 || s->state == TASK_STATE_DEAD)
			return HEALTH_BAD;
		if (s->started_at > latest)
			latest = s->started_at;
	}
	*ret_start = latest;
	return HEALTH_GOOD;
}

static int
on_health_time(struct sd_event_source *s, uint64_t usec, void *userdata)
{
	struct alloc_runner *ar = userdata;

	ar->health.timer = sd_event_source_disable_unref(ar->health.timer);
	alloc_health_look(ar);
	if (ar->news)
		turn_defer(ar->sup, &ar->step);
	return 0;
}

static void
look_again(struct alloc_runner *ar, uint64_t ms)
{
	ar->health.timer = sd_event_source_disable_unref(ar->health.timer);
	if (sd_event_add_time_relative(ar->sup->event, &ar->health.timer, CLOCK_MONOTONIC,
		(ms + 1) * 1000, 0, on_health_time, ar) < 0)
		log_error("no memory to watch the health of an allocation");
}

/* What the checks have against it. False: nothing. */
static bool
tell_checks(const struct alloc_runner *ar, char *buf, size_t size)
{
	const struct check_result *bad = NULL;
	unsigned n = 0, passing = 0;

	for (const struct check *c = checks_next(ar, NULL); c; c = checks_next(ar, c)) {
		const struct check_result *res = check_result(c);
		bool passes = res->status == CHECK_SUCCESS ||
			      (res->status == CHECK_FAILURE && res->mode == CHECK_READINESS);

		n++;
		passing += passes;
		if (!passes && !bad)
			bad = res;
	}
	if (bad)
		(void)snprintf(buf, size,
		    "Only %u out of %u checks registered and passing: check \"%.80s\" of service "
		    "%.63s: %.200s",
		    passing, n, str(bad->check), str(bad->service), str(bad->output));
	return bad != NULL;
}

static void
give_up(struct alloc_runner *ar, const struct terms *terms)
{
	struct blame b = { .terms = terms, .late = true };
	char checks[480];

	if (terms->checks && tell_checks(ar, checks, sizeof checks))
		b.checks = checks;
	set_health(ar, &b);
}

/* Healthy at this time by its tasks: when by its checks too? They count from the last start on. */
static int64_t
wait_for_checks(const struct alloc_runner *ar, const struct terms *terms, int64_t healthy)
{
	int64_t since = checks_pass_since_ms(ar);

	if (since < 0)
		return INT64_MAX;
	if (since > 0 && since + terms->min_healthy_ns / NS_PER_MS > healthy)
		healthy = since + terms->min_healthy_ns / NS_PER_MS;
	return healthy;
}

static bool
is_decided(const struct alloc *a)
{
	return a->deployment_status && a->deployment_status->healthy != OPT_UNSET;
}

static void
wait_for_health(struct alloc_runner *ar, const struct terms *terms, int64_t start)
{
	int64_t now = (int64_t)clock_ms(), healthy = INT64_MAX;
	struct alloc_health *h = &ar->health;

	if (h->deadline_ms == 0)
		h->deadline_ms = now + terms->deadline_ns / NS_PER_MS;
	if (start != h->start) {
		h->start = start;
		h->since_ms = now;
	}
	/* The tasks of a restored one run before its hooks are done, and its checks come last. */
	if (start && ar->phase == ALLOC_RUNNING) {
		healthy = h->since_ms + terms->min_healthy_ns / NS_PER_MS;
		if (terms->checks)
			healthy = wait_for_checks(ar, terms, healthy);
	}
	if (healthy <= now && healthy <= h->deadline_ms)
		set_health(ar, NULL);
	else if (h->deadline_ms <= now)
		give_up(ar, terms);
	else
		look_again(
		    ar, (uint64_t)((healthy < h->deadline_ms ? healthy : h->deadline_ms) - now));
}

/* What was seen for another deployment counts for nothing. */
static void
follow_deployment(struct alloc_runner *ar)
{
	const char *deployment = ar->sa->a.deployment_id;

	if (str_eq(ar->health.deployment, deployment))
		return;
	alloc_health_done(ar);
	if (str_set(&ar->health.deployment, deployment) < 0)
		log_error("no memory to watch the health of an allocation");
}

void
alloc_health_look(struct alloc_runner *ar)
{
	const struct alloc *a = &ar->sa->a;
	bool failed = a->client_status == CLIENT_FAILED || a->client_status == CLIENT_LOST, asked;
	struct blame b = { 0 };
	enum verdict verdict;
	struct terms terms;
	int64_t start;

	asked = find_terms(ar, &terms);
	/* Whoever says what is healthy need not say it of what has failed. */
	if (is_decided(a) || alloc_server_terminal(a) ||
	    (!asked && !(failed && *str(a->deployment_id)))) {
		alloc_health_done(ar);
		return;
	}
	follow_deployment(ar);
	b.terms = asked ? &terms : NULL;
	verdict = look_at_tasks(ar->sa, &start);
	if (verdict == HEALTH_BAD || failed)
		set_health(ar, &b);
	else
		wait_for_health(ar, &terms, start);
}

void
alloc_health_set(struct alloc_runner *ar, bool healthy)
{
	const struct blame b = { .all = "Unhealthy because an operator said so" };

	set_health(ar, healthy ? NULL : &b);
	turn_defer(ar->sup, &ar->step);
}

void
alloc_health_done(struct alloc_runner *ar)
{
	ar->health.timer = sd_event_source_disable_unref(ar->health.timer);
	ar->health.deadline_ms = 0;
	ar->health.start = 0;
	(void)str_set(&ar->health.deployment, NULL);
}

/* It needs nothing before the tasks, and is looked at with each change of them. */
const struct alloc_hook alloc_hook_health = {
	.name = "alloc_health_watcher",
	.shutdown = alloc_health_done,
};
