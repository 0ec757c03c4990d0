// SPDX-License-Identifier: Apache-2.0
/* usage.c: what this machine and its allocs use, for who asks. Runs in: supervisor. */
#include "supervisor/alloc/usage.h"

#include <errno.h>
#include <stdlib.h>
#include <systemd/sd-event.h>
#include <time.h>

#include "common/duration.h"
#include "supervisor/alloc/alloc_state.h"
#include "supervisor/driver/run.h"
#include "supervisor/driver/run_usage.h"
#include "supervisor/node/host_usage.h"
#include "supervisor/node/node_state.h"

#define SECOND_USEC 250000 /* between the two samples of who asks for the first time */

struct ask {
	struct sup *sup;
	sd_event_source *timer;
	bool host;
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
answer_host(struct ask *a)
{
	cleanup_done(host_stats) struct host_stats stats;

	host_stats_init(&stats);
	host_usage_fill(a->sup, core_mhz(a->sup), &stats);
	a->cb(a->sup, a->arg, &stats, NULL, NULL);
}

/* --- allocs --- */

static bool
is_asked(const struct ask *a, const struct task_runner *tr)
{
	return tr->run && (!a->task || str_eq(a->task, tr->task->name));
}

/* One sample of each task. False: one more is needed. */
static bool
sample_tasks(const struct ask *a, struct alloc_runner *ar)
{
	bool enough = true;

	for (unsigned i = 0; ar && i < ar->n_tasks; i++) {
		struct task_runner *tr = &ar->tasks[i];

		if (!is_asked(a, tr))
			continue;
		if (!tr->usage)
			tr->usage = calloc(1, sizeof *tr->usage);
		if (tr->usage && !run_usage_sample(tr->usage, run_id(tr->run), a->sup->args.cgroup))
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

/* The names of what was measured, once each. */
static int
add_names(struct strings *sum, const struct strings *names)
{
	for (size_t i = 0; i < names->n; i++)
		if (!strings_has(sum, names->v[i]) && strings_add(sum, names->v[i]) < 0)
			return -ENOMEM;
	return 0;
}

static int
add_task(struct alloc_usage *all, const struct task_runner *tr, double mhz)
{
	struct task_usage *one = map_put(task_usage, &all->tasks, tr->task->name);
	struct resource_usage *sum = all->resource_usage, *usage;

	if (!one || run_usage_show(tr->usage, mhz, one) < 0)
		return -ENOMEM;
	usage = one->resource_usage;
	add_memory(sum->memory_stats, usage->memory_stats);
	add_cpu(sum->cpu_stats, usage->cpu_stats);
	if (all->timestamp < one->timestamp)
		all->timestamp = one->timestamp;
	return add_names(&sum->memory_stats->measured, &usage->memory_stats->measured) < 0 ||
		       add_names(&sum->cpu_stats->measured, &usage->cpu_stats->measured) < 0
		   ? -ENOMEM
		   : 0;
}

static int
fill_alloc(const struct ask *a, const struct alloc_runner *ar, struct alloc_usage *ret)
{
	int r = 0;

	ret->resource_usage = resource_usage_new();
	if (!ret->resource_usage || !(ret->resource_usage->memory_stats = memory_stats_new()) ||
	    !(ret->resource_usage->cpu_stats = cpu_stats_new()))
		return -ENOMEM;
	for (unsigned i = 0; r == 0 && ar && i < ar->n_tasks; i++)
		if (is_asked(a, &ar->tasks[i]) && ar->tasks[i].usage)
			r = add_task(ret, &ar->tasks[i], core_mhz(a->sup));
	return r;
}

static void
answer_alloc(struct ask *a, const struct sup_alloc *sa)
{
	cleanup_done(alloc_usage) struct alloc_usage usage;
	struct err e = { 0 };
	int r;

	alloc_usage_init(&usage);
	r = fill_alloc(a, sa->runner, &usage);
	if (r < 0)
		(void)err_set(&e, r, "look at the alloc's tasks");
	a->cb(a->sup, a->arg, NULL, r < 0 ? NULL : &usage, &e);
}

/* The alloc, if there is something to look at. NULL with *e. */
static struct sup_alloc *
find_alloc(const struct ask *a, struct err *e)
{
	struct sup_alloc *sa = alloc_find(a->sup, &a->alloc);
	char id[ID_UUID_SIZE];

	id_to_uuid(&a->alloc, id);
	if (!sa)
		(void)err_say(e, -ENOENT, "Unknown allocation \"%s\"", id);
	else if (a->task && !alloc_task(sa, a->task))
		(void)err_say(e, -ENOENT, "allocation \"%s\" has no task \"%.128s\"", id, a->task);
	else
		return sa;
	return NULL;
}

/* --- both --- */

/* last: the second sample is taken now. False: one is needed. */
static bool
look(struct ask *a, bool last)
{
	struct err e = { 0 };
	struct sup_alloc *sa;

	if (a->host) {
		if (!host_usage_sample(a->sup) && !last)
			return false;
		answer_host(a);
		return true;
	}
	sa = find_alloc(a, &e);
	if (!sa) {
		a->cb(a->sup, a->arg, NULL, NULL, &e);
		return true;
	}
	if (!sample_tasks(a, sa->runner) && !last)
		return false;
	answer_alloc(a, sa);
	return true;
}

static void
ask_free(struct ask *a)
{
	(void)sd_event_source_disable_unref(a->timer);
	free(a->task);
	free(a);
}

static int
on_second(sd_event_source *timer, uint64_t usec, void *arg)
{
	struct ask *a = arg;

	(void)look(a, true);
	ask_free(a);
	return 0;
}

static void
begin(struct sup *sup, const struct ask *what)
{
	struct ask *a = malloc(sizeof *a);

	if (!a)
		abort();
	*a = *what;
	a->sup = sup;
	if (look(a, false)) {
		ask_free(a);
		return;
	}
	if (sd_event_add_time_relative(
		sup->event, &a->timer, CLOCK_MONOTONIC, SECOND_USEC, 1000, on_second, a) < 0) {
		(void)look(a, true);
		ask_free(a);
	}
}

void
usage_ask_host(struct sup *sup, usage_cb *cb, void *arg)
{
	begin(sup, &(struct ask){ .host = true, .cb = cb, .arg = arg });
}

void
usage_ask_alloc(struct sup *sup, const struct id *alloc, const char *task, usage_cb *cb, void *arg)
{
	struct ask a = { .alloc = *alloc, .cb = cb, .arg = arg };

	if (str_set(&a.task, task) < 0)
		abort();
	begin(sup, &a);
}
