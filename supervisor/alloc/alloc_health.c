// SPDX-License-Identifier: Apache-2.0
/*
 * alloc_health.c: the health of an alloc of a deployment, or of one that a drain has moved. It is
 * healthy when all its tasks run, and all its checks pass, for min_healthy_time before
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
#include "supervisor/alloc/hook_checks.h"

/* For a job without a migrate block. */
#define MIN_HEALTHY_MS 10000
#define DEADLINE_MS    300000

struct alloc_health {
	struct sd_event_source *timer;
	char *deployment;    /* the one that waits; NULL: none */
	int64_t deadline_ms; /* CLOCK_MONOTONIC; 0: nothing is watched */
	int64_t start;       /* the latest start of its tasks; 0: not all run */
	int64_t since_ms;    /* when that was seen */
};

enum verdict { HEALTH_WAIT, HEALTH_GOOD, HEALTH_BAD };

struct terms {
	int64_t min_healthy_ns, deadline_ns;
	bool checks; /* must pass too */
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

/* A running task is to blame for a late start of its own, and for failing checks. */
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

/* True: this task is to blame, and buf says for what. */
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

static void
end_watch(struct alloc_runner *ar)
{
	struct alloc_health *h = state_of(ar);

	h->timer = sd_event_source_disable_unref(h->timer);
	h->deadline_ms = 0;
	h->start = 0;
	(void)str_set(&h->deployment, NULL);
}

/* b: NULL if it is healthy. */
static void
set_health(struct alloc_runner *ar, const struct blame *b)
{
	struct alloc *a = &ar->sa->a;

	if (!a->deployment_status)
		a->deployment_status = deployment_status_new();
	if (!a->deployment_status)
		return;
	a->deployment_status->healthy = b ? OPT_FALSE : OPT_TRUE;
	a->deployment_status->timestamp = clock_real_ns();
	alloc_changed(ar->sup, ar->sa);
	ar->news = true;
	if (b)
		tell_unhealthy(ar, b);
	else
		log_info("allocation %.8s is healthy", a->id);
	end_watch(ar);
}

/* The latest start of the tasks that have to run; 0: not all do. */
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

static int
on_health_time(struct sd_event_source *s, uint64_t usec, void *userdata)
{
	struct alloc_runner *ar = userdata;

	state_of(ar)->timer = sd_event_source_disable_unref(state_of(ar)->timer);
	alloc_health_check(ar);
	if (ar->news)
		turn_defer(ar->sup, &ar->step);
	return 0;
}

static void
check_later(struct alloc_runner *ar, uint64_t ms)
{
	state_of(ar)->timer = sd_event_source_disable_unref(state_of(ar)->timer);
	if (sd_event_add_time_relative(ar->sup->event, &state_of(ar)->timer, CLOCK_MONOTONIC,
		(ms + 1) * 1000, 0, on_health_time, ar) < 0)
		log_error("no memory to watch the health of an allocation");
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

/* The time from which its checks count it as healthy too; INT64_MAX: not all of them pass. */
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
	/* The tasks of a restored alloc run before its hooks are done, and checks are the last
	 * hook. */
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

/* A new deployment starts its own watch. */
static void
follow_deployment(struct alloc_runner *ar)
{
	const char *deployment = ar->sa->a.deployment_id;

	if (str_eq(state_of(ar)->deployment, deployment))
		return;
	end_watch(ar);
	if (str_set(&state_of(ar)->deployment, deployment) < 0)
		log_error("no memory to watch the health of an allocation");
}

void
alloc_health_check(struct alloc_runner *ar)
{
	const struct alloc *a = &ar->sa->a;
	bool failed = a->client_status == CLIENT_FAILED || a->client_status == CLIENT_LOST, asked;
	struct blame b = { 0 };
	enum verdict verdict;
	struct terms terms;
	int64_t start;

	asked = find_terms(ar, &terms);
	/* A failed alloc of a deployment is unhealthy also where health is set by operators. */
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
	turn_defer(ar->sup, &ar->step);
}

/* The runner calls alloc_health_check() with each change of a task. */
const struct alloc_hook alloc_hook_health = {
	.name = "alloc_health_watcher",
	.state_size = sizeof(struct alloc_health),
	.shutdown = end_watch,
};
