// SPDX-License-Identifier: Apache-2.0
/*
 * checks.c: the checks of an alloc's services. Each has one timer, for its next try or for the
 * timeout of the current one. Runs in: supervisor.
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
#include "common/mem.h"
#include "common/number.h"
#include "model/engine/table.h"
#include "supervisor/core/journal.h"
#include "supervisor/core/sup_timer.h"
#include "supervisor/service/check_probe.h"
#include "supervisor/service/check_spec.h"
#include "supervisor/service/check_tls.h"
#include "supervisor/service/service_text.h"

#define ACCURACY_USEC 20000 /* timers within this time may fire together */

struct check {
	LIST_ENTRY(check) link;
	struct checks *all; /* of its alloc */
	struct check_result result;
	struct check_spec spec;
	char *broken; /* why its definition cannot be used, the result of every try; NULL: it can */
	int64_t interval_ns, timeout_ns;
	struct check_probe *probe; /* the current try; NULL: none */
	struct sd_event_source *timer;
	uint64_t began_usec;   /* of the last try */
	int64_t pass_since_ms; /* 0: the last try failed, or none was made since the last start */
	int64_t restart_limit; /* 0: it does not restart tasks */
	int64_t restart_grace_ms;
	int64_t watch_from_ms; /* the end of the grace: failures count from then on */
	int64_t failures;      /* consecutive ones */
	TAILQ_ENTRY(check) queue_link;
	struct check_queue *queue; /* NULL: not queued */
	bool over_tls;             /* spec.tls, or a try was redirected to https */
};

/* The checks of all allocs whose time has come while too many probes were in progress: [0] without
 * TLS, [1] over TLS. */
TAILQ_HEAD(check_queue, check);
struct check_queues {
	struct check_queue of[2];
};

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
	return c ? LIST_NEXT(c, link) : LIST_FIRST(&cs->list);
}

const struct check_result *
check_result(const struct check *c)
{
	return &c->result;
}

void
check_queues_new(struct sup *sup)
{
	sup->check_queues = mem_new(struct check_queues);
	TAILQ_INIT(&sup->check_queues->of[0]);
	TAILQ_INIT(&sup->check_queues->of[1]);
	check_probes_new(sup);
	check_tls_new(sup);
}

void
check_queues_free(struct sup *sup)
{
	check_tls_free(sup);
	check_probes_free(sup);
	free_p(&sup->check_queues);
}

static struct check_queue *
queue_of(const struct check *c)
{
	return &c->all->sup->check_queues->of[c->over_tls];
}

static void
queue_put(struct check *c)
{
	c->queue = queue_of(c);
	TAILQ_INSERT_TAIL(c->queue, c, queue_link);
}

static void
queue_remove(struct check *c)
{
	if (!c->queue)
		return;
	TAILQ_REMOVE(c->queue, c, queue_link);
	c->queue = NULL;
}

/* Lets the timer of the queue's first check fire. */
static void
queue_wake(struct check_queue *q)
{
	struct check *c = TAILQ_FIRST(q);

	if (!c)
		return;
	(void)sd_event_source_set_time(c->timer, 0);
	(void)sd_event_source_set_enabled(c->timer, SD_EVENT_ONESHOT);
}

/* Called when a probe has ended. It may have been in either class, because of a redirect. */
static void
queues_wake(struct sup *sup)
{
	queue_wake(&sup->check_queues->of[0]);
	queue_wake(&sup->check_queues->of[1]);
}

/* Returns true if the check has to wait: too many probes are in progress, or others wait already.
 */
static bool
has_to_wait(struct check *c)
{
	struct check_queue *q = queue_of(c);
	bool full = !check_probe_may_start(c->all->sup, c->over_tls);

	if (!c->queue && !full && TAILQ_EMPTY(q))
		return false;
	if (!c->queue)
		queue_put(c);
	if (!full && c == TAILQ_FIRST(q)) {
		queue_remove(c);
		queue_wake(q);
		return false;
	}
	if (!full)
		queue_wake(q);
	return true;
}

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

/* The first try comes after half an interval. After a restart of the agent, when all checks begin
 * at once, it comes at a random time within the interval. */
static void
begin_timer(struct check *c)
{
	uint64_t usec = (uint64_t)c->interval_ns / 2000;

	if (c->all->restored)
		usec = (uint64_t)((double)c->interval_ns / 1000 * ((double)random() / RAND_MAX));
	/* Not a sup_timer: it is more accurate, and is set again for each try. */
	c->timer = sd_event_source_disable_unref(c->timer);
	if (sd_event_add_time_relative(c->all->sup->event, &c->timer, CLOCK_MONOTONIC, usec,
		ACCURACY_USEC, on_time, c) < 0)
		mem_exhausted();
}

static void
begin_grace(struct check *c)
{
	c->failures = 0;
	c->watch_from_ms = (int64_t)clock_ms() + c->restart_grace_ms;
}

/* The restart resets all checks of the task, or of the group. */
static void
reset_failures(struct checks *cs, const char *task)
{
	struct check *c;

	LIST_FOREACH (c, &cs->list, link)
		if (str_eq(c->result.task, task))
			begin_grace(c);
}

static void
restart_task(struct check *c)
{
	struct checks *cs = c->all;
	char reason[300];

	(void)snprintf(
	    reason, sizeof reason, "healthcheck: check \"%.200s\" unhealthy", str(c->result.check));
	reset_failures(cs, c->result.task);
	cs->ev->restart(cs->arg, str(c->result.task), reason);
}

static void
count_failure(struct check *c)
{
	if (c->restart_limit <= 0 || (int64_t)clock_ms() < c->watch_from_ms ||
	    !c->all->ev->runs(c->all->arg, str(c->result.task)))
		return;
	if (++c->failures >= c->restart_limit)
		restart_task(c);
}

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
	str_set(&c->result.output, o->output);
	if (turned)
		c->pass_since_ms = passes ? (int64_t)clock_ms() : 0;
	if (news) {
		journal_info(JOURNAL_CHECK, ABOUT_ALLOC(c->all->sa),
		    "allocation %.8s: check \"%s\" of service %s: %s: %.200s", c->all->sa->a.id,
		    str(c->result.check), str(c->result.service), o->passed ? "passes" : "fails",
		    str(c->result.output));
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
	queues_wake(c->all->sup);
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
	struct check *c;

	LIST_FOREACH (c, &cs->list, link) {
		c->pass_since_ms = 0;
		/* The current try was made with the run before. */
		if (c->probe) {
			check_probe_free(c->probe);
			c->probe = NULL;
			queues_wake(c->all->sup);
			wait_for_next(c);
		}
		if (!*str(c->result.task) || str_eq(c->result.task, task))
			begin_grace(c);
	}
}

int64_t
checks_pass_since_ms(const struct checks *cs)
{
	const struct check *c;
	int64_t since = 0;

	LIST_FOREACH (c, &cs->list, link) {
		if (c->pass_since_ms == 0)
			return -1;
		if (c->pass_since_ms > since)
			since = c->pass_since_ms;
	}
	return since;
}

static void
check_free(struct check *c)
{
	queue_remove(c);
	queues_wake(c->all->sup);
	check_probe_free(c->probe);
	c->timer = sd_event_source_disable_unref(c->timer);
	check_spec_done(&c->spec);
	check_result_done(&c->result);
	free(c->broken);
	free(c);
}

static void
free_checks(struct check_list *list)
{
	struct check *c;

	while ((c = LIST_FIRST(list))) {
		LIST_REMOVE(c, link);
		check_free(c);
	}
}

static struct check *
find_check(struct check_list *list, const char *id)
{
	struct check *c;

	LIST_FOREACH (c, list, link)
		if (str_eq(c->result.id, id))
			return c;
	return NULL;
}

/* Takes the last supervisor's result of the check. */
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
fill_check(struct check *c, const struct service *s, const struct service_check *b,
    const struct task *task, const char *id)
{
	const struct alloc *a = &c->all->sa->a;
	struct check_result *res = &c->result;
	struct err e = { 0 };

	res->mode = str_eq(b->on_update, "ignore") ? CHECK_READINESS : CHECK_HEALTHINESS;
	res->status = CHECK_PENDING;
	res->timestamp = (int64_t)time(NULL);
	str_set(&res->id, id);
	str_set(&res->output, "nomad: waiting to run");
	str_set(&res->group, a->name);
	str_set(&res->task, task ? task->name : NULL);
	str_set(&res->service, s->name);
	str_set(&res->check, b->name);
	c->interval_ns = b->interval > NS_PER_S ? b->interval : NS_PER_S;
	c->timeout_ns = b->timeout > NS_PER_S ? b->timeout : NS_PER_S;
	if (b->check_restart && b->check_restart->limit > 0) {
		c->restart_limit = b->check_restart->limit;
		c->restart_grace_ms = b->check_restart->grace / NS_PER_MS;
	}
	begin_grace(c);
	if (check_spec_make(c->all->sup, a, task, s, b, &c->spec, &e) < 0)
		str_set(&c->broken, e.msg);
	c->over_tls = c->spec.tls;
	take_kept(c);
}

/* Adds a check to the list. One in `old` that has the same definition is kept. */
static void
add_check(struct checks *cs, const struct service *s, const struct service_check *b,
    const struct task *task, struct check_list *old)
{
	char workload[WORKLOAD_SIZE], id[CHECK_ID_SIZE];
	struct check *c;

	service_workload(cs->sa, task, workload);
	check_id(&cs->sa->a, workload, s, b, id);
	c = find_check(old, id);
	if (c) {
		LIST_REMOVE(c, link);
	} else {
		c = mem_new(struct check);
		c->all = cs;
		fill_check(c, s, b, task, id);
		begin_timer(c);
	}
	LIST_INSERT_HEAD(&cs->list, c, link);
}

static void
add_all(struct checks *cs, const struct task *task, struct check_list *old)
{
	cleanup_services struct service_list list;
	struct err e = { 0 };

	if (service_list_make(cs->sup, cs->sa, task, &list, &e) < 0) {
		journal_warn(JOURNAL_CHECK, ABOUT_ALLOC(cs->sa), "allocation %.8s: no checks: %s",
		    cs->sa->a.id, e.msg);
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
	struct check_list old = LIST_HEAD_INITIALIZER(old);
	bool all = true;
	struct check *c;

	while ((c = LIST_FIRST(&cs->list))) {
		LIST_REMOVE(c, link);
		LIST_INSERT_HEAD(&old, c, link);
	}
	cs->on = true;
	add_all(cs, NULL, &old);
	for (size_t i = 0; i < cs->sa->group->tasks.n; i++) {
		const struct task *task = &cs->sa->group->tasks.v[i];

		if (cs->ev->knows_env(cs->arg, task->name))
			add_all(cs, task, &old);
		else
			all = false;
	}
	free_checks(&old);
	if (all)
		check_results_done(&cs->kept);
}

bool
checks_end(struct checks *cs)
{
	bool some = !LIST_EMPTY(&cs->list);

	cs->on = false;
	checks_done(cs);
	return some;
}

void
checks_done(struct checks *cs)
{
	free_checks(&cs->list);
	check_results_done(&cs->kept);
}

void
checks_save(const struct checks *cs, struct check_results *ret)
{
	const struct check *c;

	/* Until all checks begin, the results of the last supervisor are saved again. */
	check_results_copy(&cs->kept, ret);
	LIST_FOREACH (c, &cs->list, link) {
		struct check_result *r = map_put(check_result, &ret->by_id, str(c->result.id));

		check_result_done(r);
		check_result_copy(&c->result, r);
	}
}
