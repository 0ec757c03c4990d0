// SPDX-License-Identifier: Apache-2.0
/*
 * hook_health.c: decides whether an alloc is healthy, for a deployment or a drain. It is healthy if
 * all its tasks run and all its checks pass for min_healthy_time, before healthy_deadline. Runs in:
 * supervisor.
 */
#include "supervisor/alloc/hook_health.h"

#include <stdio.h>

#include "common/clock.h"
#include "common/duration.h"
#include "common/number.h"
#include "supervisor/alloc/alloc_hooks.h"
#include "supervisor/alloc/alloc_state.h"
#include "supervisor/alloc/hook_checks.h"
#include "supervisor/alloc/task_events.h"
#include "supervisor/core/journal.h"
#include "supervisor/core/sup_timer.h"
#include "supervisor/source/source.h"

/* Defaults for a job without a migrate block. */
#define MIN_HEALTHY_MS 10000
#define DEADLINE_MS    300000

struct alloc_health {
	struct sup_timer timer;
	char *deployment;    /* the deployment that waits; NULL: none */
	int64_t deadline_ms; /* clock_ms(); 0: health is not watched */
	int64_t start;       /* the latest start of its tasks; 0: not all run */
	int64_t since_ms;    /* clock_ms() when `start` last changed */
};

enum verdict { HEALTH_WAIT, HEALTH_GOOD, HEALTH_BAD };

struct terms {
	int64_t min_healthy_ns, deadline_ns;
	bool checks; /* all checks must pass */
};

static struct alloc_health *
state_of(const struct alloc_runner *ar)
{
	return alloc_hook_state(ar, &alloc_hook_health);
}

/* Fills in the health criteria that apply; false if nobody needs this alloc's health. */
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

/* Why an alloc is not healthy. */
struct blame {
	const struct terms *terms; /* NULL: the only criterion is that it does not fail */
	const char *all;           /* the same text for each task; NULL: each has its own */
	const char *checks;        /* the text for failing checks; NULL: none fails */
	bool late;                 /* the deadline has passed */
};

/* A running task is to blame if it started too late, or if checks fail. */
static bool
blame_running(const struct alloc_runner *ar, const struct task_state *s, const struct blame *b,
    char *buf, size_t size)
{
	char min[DURATION_SIZE], deadline[DURATION_SIZE];

	if (!b->late || state_of(ar)->start == 0)
		return false;
	if (b->checks) {
		(void)snprintf(buf, size, "%s", b->checks);
		return true;
	}
	duration_format(b->terms->min_healthy_ns, min);
	duration_format(b->terms->deadline_ns, deadline);
	(void)snprintf(buf, size,
	    "Task not running for min_healthy_time of %s by healthy_deadline of %s", min, deadline);
	return s->started_at == state_of(ar)->start ||
	       number_add(s->started_at, b->terms->min_healthy_ns) > clock_real_ns();
}

/* Writes why this task is to blame; false: it is not. */
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
		else if (b->terms && tr->stage != STAGE_POSTSTOP &&
			 blame_task(ar, tr, s, b, text, sizeof text))
			task_runner_tell(tr, EVENT_ALLOC_UNHEALTHY, text, false);
	}
}

static void
end_watch(struct alloc_runner *ar)
{
	struct alloc_health *h = state_of(ar);

	sup_timer_cancel(&h->timer);
	h->deadline_ms = 0;
	h->start = 0;
	str_set(&h->deployment, NULL);
}

/* b: why it is not healthy; NULL: it is healthy. */
static void
set_health(struct alloc_runner *ar, const struct blame *b)
{
	struct alloc *a = &ar->sa->a;

	if (!a->deployment_status)
		a->deployment_status = deployment_status_new();
	a->deployment_status->healthy = b ? OPT_FALSE : OPT_TRUE;
	a->deployment_status->timestamp = clock_real_ns();
	alloc_changed(ar->sup, ar->sa);
	ar->news = true;
	if (b)
		tell_unhealthy(ar, b);
	else
		journal_info(
		    JOURNAL_ALLOC, ABOUT_ALLOC(ar->sa), "allocation %.8s is healthy", a->id);
	end_watch(ar);
}

/* Sets the latest start of the tasks that have to run; 0: not all of them run. */
static enum verdict
check_tasks(const struct sup_alloc *sa, int64_t *ret_start)
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

static void check_health(struct alloc_runner *ar);

static void
on_health_time(void *arg)
{
	struct alloc_runner *ar = arg;

	check_health(ar);
	if (ar->news)
		alloc_step_soon(ar);
}

static void
check_later(struct alloc_runner *ar, uint64_t ms)
{
	sup_timer_set(
	    ar->sup, &state_of(ar)->timer, CLOCK_MONOTONIC, (ms + 1) * 1000, on_health_time, ar);
}

/* Describes the first failing check. False: none fails. */
static bool
tell_checks(const struct alloc_runner *ar, char *buf, size_t size)
{
	const struct check_result *bad = NULL;
	unsigned n = 0, passing = 0;

	for (const struct check *c = checks_next(alloc_checks(ar), NULL); c;
	     c = checks_next(alloc_checks(ar), c)) {
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
pass_deadline(struct alloc_runner *ar, const struct terms *terms)
{
	struct blame b = { .terms = terms, .late = true };
	char checks[480];

	if (terms->checks && tell_checks(ar, checks, sizeof checks))
		b.checks = checks;
	set_health(ar, &b);
}

/* Returns the later of `healthy` and the time at which its checks have passed for long enough;
 * INT64_MAX: not all checks pass. */
static int64_t
wait_for_checks(const struct alloc_runner *ar, const struct terms *terms, int64_t healthy)
{
	int64_t since = checks_pass_since_ms(alloc_checks(ar));

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
	struct alloc_health *h = state_of(ar);

	if (h->deadline_ms == 0)
		h->deadline_ms = now + terms->deadline_ns / NS_PER_MS;
	if (start != h->start) {
		h->start = start;
		h->since_ms = now;
	}
	/* The tasks of a restored alloc run before its hooks are done. Its checks start with the
	 * last hook. */
	if (start && ar->phase == ALLOC_RUNNING) {
		healthy = h->since_ms + terms->min_healthy_ns / NS_PER_MS;
		if (terms->checks)
			healthy = wait_for_checks(ar, terms, healthy);
	}
	if (healthy <= now && healthy <= h->deadline_ms)
		set_health(ar, NULL);
	else if (h->deadline_ms <= now)
		pass_deadline(ar, terms);
	else
		check_later(
		    ar, (uint64_t)((healthy < h->deadline_ms ? healthy : h->deadline_ms) - now));
}

/* A new deployment starts a new watch. */
static void
follow_deployment(struct alloc_runner *ar)
{
	const char *deployment = ar->sa->a.deployment_id;

	if (str_eq(state_of(ar)->deployment, deployment))
		return;
	end_watch(ar);
	str_set(&state_of(ar)->deployment, deployment);
}

static void
check_health(struct alloc_runner *ar)
{
	const struct alloc *a = &ar->sa->a;
	bool failed = a->client_status == CLIENT_FAILED || a->client_status == CLIENT_LOST, asked;
	struct blame b = { 0 };
	enum verdict verdict;
	struct terms terms;
	int64_t start;

	asked = find_terms(ar, &terms);
	/* A failed alloc of a deployment is unhealthy even if operators set the health. */
	if (is_decided(a) || alloc_server_terminal(a) ||
	    (!asked && !(failed && *str(a->deployment_id)))) {
		end_watch(ar);
		return;
	}
	follow_deployment(ar);
	b.terms = asked ? &terms : NULL;
	verdict = check_tasks(ar->sa, &start);
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
	alloc_step_soon(ar);
}

ALLOC_HOOK(health, "alloc_health_watcher", sizeof(struct alloc_health), .shutdown = end_watch,
    .changed = check_health);
