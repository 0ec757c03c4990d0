// SPDX-License-Identifier: Apache-2.0
/*
 * checks.c: the checks of an alloc's services. Each has one timer of the work loop, for its next
 * try or for the end of the one that is under way, and costs nothing between. Runs in: supervisor.
 */
#include "supervisor/service/checks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-event.h>
#include <time.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/log.h"
#include "common/number.h"
#include "model/engine/table.h"
#include "supervisor/service/check_probe.h"
#include "supervisor/service/check_spec.h"
#include "supervisor/service/service_text.h"

#define ACCURACY_USEC 20000 /* timers that near are one */

struct check {
	struct check *next;
	struct checks *all; /* of its alloc */
	struct check_result result;
	struct check_spec spec;
	char *broken; /* what is wrong with its address: every try says so; NULL: nothing */
	int64_t interval_ns, timeout_ns;
	struct check_probe *probe; /* NULL: it waits */
	struct sd_event_source *timer;
	uint64_t began_usec;   /* of the last try */
	int64_t pass_since_ms; /* 0: the last try failed, or none was made since the last start */
	int64_t restart_limit; /* 0: it restarts nothing */
	int64_t restart_grace_ms, watch_from_ms;
	int64_t failures; /* in a row, since then */
	struct check *next_queued;
	bool queued;
	bool over_tls; /* the spec's, or a redirection led there once */
};

/* Those whose time has come while too many were under way, of all allocs; those over TLS have one
 * of their own. */
static struct queue {
	struct check *first, **end;
} plain_queue = { .end = &plain_queue.first }, tls_queue = { .end = &tls_queue.first };

static void on_outcome(void *arg, const struct check_outcome *outcome);

#define S check_results
static const struct field check_results_fields[] = {
	F_MAP(by_id, "", check_result),
};
MODEL_TYPE(check_results, check_results_fields, .name = "results", .bare = true);
#undef S

const struct check *
checks_next(const struct checks *cs, const struct check *c)
{
	return c ? c->next : cs->first;
}

const struct check_result *
check_result(const struct check *c)
{
	return &c->result;
}

/* --- the queues --- */

static struct queue *
queue_of(const struct check *c)
{
	return c->over_tls ? &tls_queue : &plain_queue;
}

static void
queue_put(struct check *c)
{
	struct queue *q = queue_of(c);

	c->queued = true;
	c->next_queued = NULL;
	*q->end = c;
	q->end = &c->next_queued;
}

static void
queue_take(struct check *c)
{
	struct queue *q = queue_of(c);
	struct check **at = &q->first;

	if (!c->queued)
		return;
	while (*at != c)
		at = &(*at)->next_queued;
	*at = c->next_queued;
	if (!*at)
		q->end = at;
	c->queued = false;
}

/* One may begin: the first one's timer goes off. */
static void
queue_wake(const struct queue *q)
{
	if (!q->first)
		return;
	(void)sd_event_source_set_time(q->first->timer, 0);
	(void)sd_event_source_set_enabled(q->first->timer, SD_EVENT_ONESHOT);
}

/* A question has ended, among those over TLS too if a redirection had led it there. */
static void
queues_wake(void)
{
	queue_wake(&plain_queue);
	queue_wake(&tls_queue);
}

/* Nobody overtakes who waits already. */
static bool
has_to_wait(struct check *c)
{
	struct queue *q = queue_of(c);
	bool full = !check_probe_has_room(c->over_tls);

	if (!c->queued && !full && !q->first)
		return false;
	if (!c->queued)
		queue_put(c);
	if (!full && c == q->first) {
		queue_take(c);
		queue_wake(q);
		return false;
	}
	if (!full)
		queue_wake(q);
	return true;
}

/* --- timers --- */

static int
on_time(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct check *c = userdata;
	const struct check_outcome broken = { .output = c->broken };
	int64_t limit_ns =
	    number_add(c->timeout_ns, c->over_tls ? CHECK_TLS_GRACE_MS * NS_PER_MS : 0);

	if (c->probe) {
		check_probe_expire(c->probe);
		return 0;
	}
	(void)sd_event_now(c->all->sup->event, CLOCK_MONOTONIC, &c->began_usec);
	if (has_to_wait(c))
		return 0;
	if (c->broken) {
		on_outcome(c, &broken);
		return 0;
	}
	(void)sd_event_source_set_time(source, c->began_usec + (uint64_t)limit_ns / 1000);
	(void)sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
	check_probe_start(
	    c->all->sup, &c->spec, c->over_tls, c->timeout_ns, on_outcome, c, &c->probe);
	return 0;
}

static void
wait_for_next(struct check *c)
{
	uint64_t now, next = c->began_usec + (uint64_t)c->interval_ns / 1000;

	(void)sd_event_now(c->all->sup->event, CLOCK_MONOTONIC, &now);
	(void)sd_event_source_set_time(c->timer, next > now ? next : now);
	(void)sd_event_source_set_enabled(c->timer, SD_EVENT_ONESHOT);
}

/* The first try is half an interval away; after a restart of the agent, where all begin at once,
 * anywhere in one. */
static int
begin_timer(struct check *c)
{
	uint64_t usec = (uint64_t)c->interval_ns / 2000;

	if (c->all->restored)
		usec = (uint64_t)((double)c->interval_ns / 1000 * ((double)random() / RAND_MAX));
	return sd_event_add_time_relative(
	    c->all->sup->event, &c->timer, CLOCK_MONOTONIC, usec, ACCURACY_USEC, on_time, c);
}

/* --- restarts --- */

static void
watch_anew(struct check *c)
{
	c->failures = 0;
	c->watch_from_ms = (int64_t)clock_ms() + c->restart_grace_ms;
}

/* All checks of the same services wait for the next start. */
static void
forget_failures(struct checks *cs, const char *task)
{
	for (struct check *c = cs->first; c; c = c->next)
		if (str_eq(c->result.task, task))
			watch_anew(c);
}

static void
restart(struct check *c)
{
	struct checks *cs = c->all;
	char reason[300];

	(void)snprintf(
	    reason, sizeof reason, "healthcheck: check \"%.200s\" unhealthy", str(c->result.check));
	forget_failures(cs, c->result.task);
	cs->ev->restart(cs->arg, str(c->result.task), reason);
}

static void
count_failure(struct check *c)
{
	if (c->restart_limit <= 0 || (int64_t)clock_ms() < c->watch_from_ms ||
	    !c->all->ev->runs(c->all->arg, str(c->result.task)))
		return;
	if (++c->failures >= c->restart_limit)
		restart(c);
}

/* --- results --- */

static void
take_outcome(struct check *c, const struct check_outcome *o)
{
	enum check_status status = o->passed ? CHECK_SUCCESS : CHECK_FAILURE;
	bool news = c->result.status != status;
	bool passes = o->passed || c->result.mode == CHECK_READINESS;
	bool turned = passes != (c->pass_since_ms != 0);

	c->result.status = status;
	c->result.status_code = o->status;
	c->result.timestamp = (int64_t)time(NULL);
	(void)str_set(&c->result.output, o->output);
	if (turned)
		c->pass_since_ms = passes ? (int64_t)clock_ms() : 0;
	if (news) {
		log_info("allocation %.8s: check \"%s\" of service %s: %s: %.200s",
		    c->all->sa->a.id, str(c->result.check), str(c->result.service),
		    o->passed ? "passes" : "fails", str(c->result.output));
	}
	if (turned || news)
		c->all->ev->changed(c->all->arg, news);
	if (o->passed)
		c->failures = 0;
	else
		count_failure(c);
}

static void
on_outcome(void *arg, const struct check_outcome *outcome)
{
	struct check *c = arg;

	c->probe = NULL;
	c->over_tls |= outcome->over_tls;
	queues_wake();
	if (outcome->later) {
		(void)sd_event_source_set_enabled(c->timer, SD_EVENT_OFF);
		queue_put(c);
		return;
	}
	wait_for_next(c);
	take_outcome(c, outcome);
}

void
checks_task_started(struct checks *cs, const char *task)
{
	for (struct check *c = cs->first; c; c = c->next) {
		c->pass_since_ms = 0;
		/* A question that is under way was asked of the task that ran before. */
		if (c->probe) {
			check_probe_free(c->probe);
			c->probe = NULL;
			queues_wake();
			wait_for_next(c);
		}
		if (!*str(c->result.task) || str_eq(c->result.task, task))
			watch_anew(c);
	}
}

int64_t
checks_pass_since_ms(const struct checks *cs)
{
	int64_t since = 0;

	for (const struct check *c = cs->first; c; c = c->next) {
		if (c->pass_since_ms == 0)
			return -1;
		if (c->pass_since_ms > since)
			since = c->pass_since_ms;
	}
	return since;
}

/* --- beginning and end --- */

static void
check_free(struct check *c)
{
	queue_take(c);
	queues_wake();
	check_probe_free(c->probe);
	c->timer = sd_event_source_disable_unref(c->timer);
	check_spec_done(&c->spec);
	check_result_done(&c->result);
	free(c->broken);
	free(c);
}

static void
free_list(struct check *list)
{
	while (list) {
		struct check *c = list;

		list = c->next;
		check_free(c);
	}
}

/* The one of this id, taken out of the list. */
static struct check *
take_out(struct check **list, const char *id)
{
	for (struct check **at = list; *at; at = &(*at)->next) {
		struct check *c = *at;

		if (!str_eq(c->result.id, id))
			continue;
		*at = c->next;
		return c;
	}
	return NULL;
}

/* What the last supervisor knew. */
static void
take_kept(struct check *c)
{
	const struct check_result *was =
	    map_get(check_result, &c->all->kept.by_id, str(c->result.id));

	if (!was)
		return;
	c->result.status = was->status;
	c->result.status_code = was->status_code;
	c->result.timestamp = was->timestamp;
	str_set(&c->result.output, was->output);
}

static void
fill(struct check *c, const struct service *s, const struct service_check *b,
    const struct task *task, const char *id)
{
	const struct alloc *a = &c->all->sa->a;
	struct check_result *res = &c->result;
	struct err e = { 0 };

	res->mode = str_eq(b->on_update, "ignore") ? CHECK_READINESS : CHECK_HEALTHINESS;
	res->status = CHECK_PENDING;
	res->timestamp = (int64_t)time(NULL);
	(void)str_set(&res->id, id);
	(void)str_set(&res->output, "nomad: waiting to run");
	(void)str_set(&res->group, a->name);
	(void)str_set(&res->task, task ? task->name : NULL);
	(void)str_set(&res->service, s->name);
	(void)str_set(&res->check, b->name);
	c->interval_ns = b->interval > NS_PER_S ? b->interval : NS_PER_S;
	c->timeout_ns = b->timeout > NS_PER_S ? b->timeout : NS_PER_S;
	if (b->check_restart && b->check_restart->limit > 0) {
		c->restart_limit = b->check_restart->limit;
		c->restart_grace_ms = b->check_restart->grace / NS_PER_MS;
	}
	watch_anew(c);
	if (check_spec_make(c->all->sup, a, s, b, &c->spec, &e) < 0)
		(void)str_set(&c->broken, e.msg);
	c->over_tls = c->spec.tls;
	take_kept(c);
}

static void
add_check(struct checks *cs, const struct service *s, const struct service_check *b,
    const struct task *task, struct check **old)
{
	char workload[WORKLOAD_SIZE], id[CHECK_ID_SIZE];
	struct check *c;

	service_workload(cs->sa, task, workload);
	check_id(&cs->sa->a, workload, s, b, id);
	c = take_out(old, id);
	if (!c && !(c = calloc(1, sizeof *c))) {
		log_error("allocation %.8s: no memory for a check", cs->sa->a.id);
		return;
	}
	if (!c->all) {
		c->all = cs;
		fill(c, s, b, task, id);
		if (begin_timer(c) < 0) {
			log_error("allocation %.8s: no memory for a check", cs->sa->a.id);
			check_free(c);
			return;
		}
	}
	c->next = cs->first;
	cs->first = c;
}

static void
add_all(struct checks *cs, const struct task *task, struct check **old)
{
	cleanup_services struct service_list list;
	struct err e = { 0 };

	if (service_list_make(cs->sup, cs->sa, task, &list, &e) < 0) {
		log_warn("allocation %.8s: no checks: %s", cs->sa->a.id, e.msg);
		return;
	}
	for (size_t i = 0; i < list.services.n; i++) {
		const struct service *s = &list.services.v[i];

		for (size_t k = 0; k < s->checks.n; k++)
			add_check(cs, s, &s->checks.v[k], task, old);
	}
}

void
checks_init(
    struct checks *cs, const struct checks_events *ev, void *arg, const struct check_results *kept)
{
	cs->ev = ev;
	cs->arg = arg;
	check_results_copy(kept, &cs->kept);
}

void
checks_begin(struct checks *cs)
{
	struct check *old = cs->first;

	cs->first = NULL;
	cs->on = true;
	add_all(cs, NULL, &old);
	for (size_t i = 0; i < cs->sa->group->tasks.n; i++)
		add_all(cs, &cs->sa->group->tasks.v[i], &old);
	free_list(old);
	check_results_done(&cs->kept);
}

bool
checks_end(struct checks *cs)
{
	bool some = cs->first != NULL;

	cs->on = false;
	checks_done(cs);
	return some;
}

void
checks_done(struct checks *cs)
{
	free_list(cs->first);
	cs->first = NULL;
	check_results_done(&cs->kept);
}

void
checks_save(const struct checks *cs, struct check_results *ret)
{
	/* Before they begin, what is kept stays as it is. */
	if (!cs->on)
		check_results_copy(&cs->kept, ret);
	for (const struct check *c = cs->first; c; c = c->next)
		check_result_copy(
		    &c->result, map_put(check_result, &ret->by_id, str(c->result.id)));
}
