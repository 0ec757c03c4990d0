// SPDX-License-Identifier: Apache-2.0
/* usage.c: the resource usage of this machine and its allocs. Runs in: supervisor. */
#include "supervisor/alloc/usage.h"

#include <errno.h>
#include <stdlib.h>

#include "common/mem.h"
#include "supervisor/alloc/alloc_state.h"
#include "supervisor/core/sup_timer.h"
#include "supervisor/driver/run.h"
#include "supervisor/driver/run_usage.h"
#include "supervisor/node/host_usage.h"
#include "supervisor/node/node_state.h"

#define SECOND_USEC 250000 /* between two samples, if there was none before */

struct usage_request {
	struct sup *sup;
	struct sup_timer timer; /* until the second sample */
	bool host;              /* of the machine; false: of an alloc */
	struct id alloc;
	char *task; /* NULL: all */
	usage_cb *cb;
	void *arg;
};

static double
core_mhz(struct sup *sup)
{
	const struct node_cpu *cpu = &node_get(sup)->node_resources.cpu;

	return cpu->total_cpu_cores > 0 ? (double)cpu->cpu_shares / (double)cpu->total_cpu_cores
					: 0;
}

/* --- host --- */

static void
answer_host(struct usage_request *q)
{
	cleanup_done(host_stats) struct host_stats stats;

	host_stats_init(&stats);
	host_usage_fill(q->sup, core_mhz(q->sup), &stats);
	q->cb(q->sup, q->arg, &stats, NULL, NULL);
}

/* --- allocs --- */

static bool
is_asked(const struct usage_request *q, const struct task_runner *tr)
{
	return tr->run && (!q->task || str_eq(q->task, tr->task->name));
}

/* Takes a sample of each task. False: a second one is needed. */
static bool
sample_tasks(const struct usage_request *q, struct alloc_runner *ar)
{
	bool enough = true;

	for (unsigned i = 0; ar && i < ar->n_tasks; i++) {
		struct task_runner *tr = &ar->tasks[i];

		if (!is_asked(q, tr))
			continue;
		if (!tr->usage)
			tr->usage = mem_new(struct run_usage);
		if (!run_usage_sample(q->sup, tr->usage, run_id(tr->run), RUN_WITH_PIDS))
			enough = false;
	}
	return enough;
}

static void
add_memory(struct memory_stats *sum, const struct memory_stats *m)
{
	sum->rss += m->rss;
	sum->cache += m->cache;
	sum->swap += m->swap;
	sum->mapped_file += m->mapped_file;
	sum->usage += m->usage;
	sum->max_usage += m->max_usage;
	sum->kernel_usage += m->kernel_usage;
	sum->kernel_max_usage += m->kernel_max_usage;
}

static void
add_cpu(struct cpu_stats *sum, const struct cpu_stats *c)
{
	sum->system_mode += c->system_mode;
	sum->user_mode += c->user_mode;
	sum->total_ticks += c->total_ticks;
	sum->throttled_periods += c->throttled_periods;
	sum->throttled_time += c->throttled_time;
	sum->percent += c->percent;
}

/* Adds the names of the measured figures, once each. */
static void
add_names(struct strings *sum, const struct strings *names)
{
	for (size_t i = 0; i < names->n; i++)
		if (!strings_has(sum, names->v[i]))
			strings_add(sum, names->v[i]);
}

static void
add_task(struct alloc_usage *all, const struct task_runner *tr, double mhz)
{
	struct task_usage *one = map_put(task_usage, &all->tasks, tr->task->name);
	struct resource_usage *sum = all->resource_usage, *usage;

	run_usage_show(tr->usage, mhz, one);
	usage = one->resource_usage;
	add_memory(sum->memory_stats, usage->memory_stats);
	add_cpu(sum->cpu_stats, usage->cpu_stats);
	add_names(&sum->memory_stats->measured, &usage->memory_stats->measured);
	add_names(&sum->cpu_stats->measured, &usage->cpu_stats->measured);
	if (all->timestamp < one->timestamp)
		all->timestamp = one->timestamp;
}

static void
answer_alloc(struct usage_request *q, const struct sup_alloc *sa)
{
	cleanup_done(alloc_usage) struct alloc_usage usage;
	const struct alloc_runner *ar = sa->runner;

	alloc_usage_init(&usage);
	usage.resource_usage = resource_usage_new();
	usage.resource_usage->memory_stats = memory_stats_new();
	usage.resource_usage->cpu_stats = cpu_stats_new();
	for (unsigned i = 0; ar && i < ar->n_tasks; i++)
		if (is_asked(q, &ar->tasks[i]) && ar->tasks[i].usage)
			add_task(&usage, &ar->tasks[i], core_mhz(q->sup));
	q->cb(q->sup, q->arg, NULL, &usage, NULL);
}

/* NULL with *e: there is no such alloc or task. */
static struct sup_alloc *
find_alloc(const struct usage_request *q, struct err *e)
{
	struct sup_alloc *sa = alloc_find(q->sup, &q->alloc);
	char id[ID_UUID_SIZE];

	id_to_uuid(&q->alloc, id);
	if (!sa)
		(void)err_say(e, -ENOENT, "Unknown allocation \"%s\"", id);
	else if (q->task && !alloc_task(sa, q->task))
		(void)err_say(e, -ENOENT, "allocation \"%s\" has no task \"%.128s\"", id, q->task);
	else
		return sa;
	return NULL;
}

/* --- both --- */

/* Takes a sample and answers. last: this is the second sample. False: a second one is needed. */
static bool
sample_and_answer(struct usage_request *q, bool last)
{
	struct err e = { 0 };
	struct sup_alloc *sa;

	if (q->host) {
		if (!host_usage_sample(q->sup) && !last)
			return false;
		answer_host(q);
		return true;
	}
	sa = find_alloc(q, &e);
	if (!sa) {
		q->cb(q->sup, q->arg, NULL, NULL, &e);
		return true;
	}
	if (!sample_tasks(q, sa->runner) && !last)
		return false;
	answer_alloc(q, sa);
	return true;
}

static void
request_free(struct usage_request *q)
{
	sup_timer_cancel(&q->timer);
	free(q->task);
	free(q);
}

static void
on_second(void *arg)
{
	struct usage_request *q = arg;

	(void)sample_and_answer(q, true);
	request_free(q);
}

static void
begin_request(struct usage_request *q)
{
	if (sample_and_answer(q, false))
		request_free(q);
	else
		sup_timer_set(q->sup, &q->timer, CLOCK_MONOTONIC, SECOND_USEC, on_second, q);
}

void
usage_ask_host(struct sup *sup, usage_cb *cb, void *arg)
{
	struct usage_request *q = mem_new(struct usage_request);

	*q = (struct usage_request){ .sup = sup, .host = true, .cb = cb, .arg = arg };
	begin_request(q);
}

void
usage_ask_alloc(struct sup *sup, const struct id *alloc, const char *task, usage_cb *cb, void *arg)
{
	struct usage_request *q = mem_new(struct usage_request);

	*q = (struct usage_request){ .sup = sup, .alloc = *alloc, .cb = cb, .arg = arg };
	str_set(&q->task, task);
	begin_request(q);
}
