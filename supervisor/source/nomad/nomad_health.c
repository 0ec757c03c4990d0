// SPDX-License-Identifier: Apache-2.0
/*
 * nomad_health.c: is an alloc of a deployment, or one that was moved by a drain, healthy? By its
 * tasks and its checks (semantics.md 4): all run, and all pass, for min_healthy_time before
 * healthy_deadline. Runs in: supervisor.
 */
#include <stdio.h>
#include <string.h>
#include <systemd/sd-event.h>

#include "common/duration.h"
#include "common/log.h"
#include "model/task_event.h"
#include "supervisor/alloc/alloc_runner.h"
#include "supervisor/service/checks.h"
#include "supervisor/source/nomad/nomad.h"

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
find_terms(const struct sup_alloc *sa, struct terms *ret)
{
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
	if (sa->job->job.type != JOB_SERVICE)
		return false;
	*ret = (struct terms){ (int64_t)MIN_HEALTHY_MS * NS_PER_MS,
		(int64_t)DEADLINE_MS * NS_PER_MS, true };
	if (m && m->min_healthy_time >= 0)
		*ret = (struct terms){ m->min_healthy_time, m->healthy_deadline,
			str_eq(m->health_check, "checks") };
	return true;
}

static void
tell_unhealthy(struct nomad_alloc *na, const char *why)
{
	struct sup_alloc *sa = na->sa;

	if (!*str(sa->a.deployment_id) || alloc_server_terminal(&sa->a))
		return;
	for (unsigned i = 0; sa->runner && i < sa->runner->n_tasks; i++) {
		struct task_event ev;

		if (task_event_make(&ev, EVENT_ALLOC_UNHEALTHY, nomad_now_ns(), why) == 0)
			task_runner_event(&sa->runner->tasks[i], &ev);
	}
}

static void
set_health(struct nomad *n, struct nomad_alloc *na, bool healthy, const char *why)
{
	struct alloc *a = &na->sa->a;

	nomad_health_free(na);
	if (!a->deployment_status)
		a->deployment_status = deployment_status_new();
	if (!a->deployment_status)
		return;
	a->deployment_status->healthy = healthy ? OPT_TRUE : OPT_FALSE;
	a->deployment_status->timestamp = nomad_now_ns();
	alloc_changed(n->base.sup, na->sa);
	if (healthy)
		log_info("allocation %.8s is healthy", a->id);
	else
		tell_unhealthy(na, why);
	nomad_update_look(n, na);
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
	struct nomad_alloc *na = userdata;

	na->health = sd_event_source_disable_unref(na->health);
	nomad_health_look(na->n, na);
	return 0;
}

static void
look_again(struct nomad *n, struct nomad_alloc *na, uint64_t ms)
{
	na->health = sd_event_source_disable_unref(na->health);
	if (sd_event_add_time_relative(n->base.sup->event, &na->health, CLOCK_MONOTONIC,
		(ms + 1) * 1000, 0, on_health_time, na) < 0)
		log_error("no memory to watch the health of an allocation");
}

/* What the checks have against it. False: nothing. */
static bool
tell_checks(const struct sup_alloc *sa, char *buf, size_t size)
{
	const struct check_result *bad = NULL;
	unsigned n = 0, passing = 0;

	for (const struct check *c = checks_next(sa->runner, NULL); c;
	     c = checks_next(sa->runner, c)) {
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

/* The deadline has passed: the tasks or the checks say why. */
static void
give_up(struct nomad *n, struct nomad_alloc *na, const struct terms *terms)
{
	char text[480], min[DURATION_SIZE], deadline[DURATION_SIZE];

	duration_format(terms->deadline_ns, deadline);
	duration_format(terms->min_healthy_ns, min);
	if (na->health_start && terms->checks && na->sa->runner &&
	    tell_checks(na->sa, text, sizeof text))
		;
	else if (na->health_start)
		(void)snprintf(text, sizeof text,
		    "Task not running for min_healthy_time of %s by healthy_deadline of %s", min,
		    deadline);
	else
		(void)snprintf(
		    text, sizeof text, "Task not running by healthy_deadline of %s", deadline);
	set_health(n, na, false, text);
}

/* Healthy at this time by its tasks: when by its checks too? They count from the last start on. */
static int64_t
wait_for_checks(const struct sup_alloc *sa, const struct terms *terms, int64_t healthy)
{
	int64_t since = sa->runner ? checks_pass_since_ms(sa->runner) : 0;

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
wait_for_health(struct nomad *n, struct nomad_alloc *na, const struct terms *terms, int64_t start)
{
	int64_t now = (int64_t)clock_ms(), healthy = INT64_MAX;

	if (na->health_deadline_ms == 0)
		na->health_deadline_ms = now + terms->deadline_ns / NS_PER_MS;
	if (start != na->health_start) {
		na->health_start = start;
		na->health_since_ms = now;
	}
	if (start)
		healthy = na->health_since_ms + terms->min_healthy_ns / NS_PER_MS;
	if (start && terms->checks)
		healthy = wait_for_checks(na->sa, terms, healthy);
	if (healthy <= now && healthy <= na->health_deadline_ms)
		set_health(n, na, true, NULL);
	else if (na->health_deadline_ms <= now)
		give_up(n, na, terms);
	else
		look_again(n, na,
		    (uint64_t)((healthy < na->health_deadline_ms ? healthy
								 : na->health_deadline_ms) -
			       now));
}

void
nomad_health_look(struct nomad *n, struct nomad_alloc *na)
{
	struct sup_alloc *sa = na->sa;
	enum verdict verdict;
	struct terms terms;
	int64_t start;

	if (is_decided(&sa->a) || alloc_server_terminal(&sa->a) || !find_terms(sa, &terms)) {
		nomad_health_free(na);
		return;
	}
	verdict = look_at_tasks(sa, &start);
	if (verdict == HEALTH_BAD || sa->a.client_status == CLIENT_FAILED)
		set_health(n, na, false,
		    sa->a.client_status == CLIENT_FAILED ? "Unhealthy because of failed task"
							 : "Unhealthy because of dead task");
	else
		wait_for_health(n, na, &terms, start);
}

void
nomad_health_free(struct nomad_alloc *na)
{
	na->health = sd_event_source_disable_unref(na->health);
	na->health_deadline_ms = 0;
	na->health_start = 0;
}
