// SPDX-License-Identifier: Apache-2.0
/* metric_rows.c: the rows of metrics with their labels. Runs in: supervisor. */
#include "supervisor/metrics/metric_rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/mem.h"
#include "supervisor/alloc/alloc_state.h"
#include "supervisor/core/store.h"
#include "supervisor/driver/lease_page.h"
#include "supervisor/metrics/metric_tasks.h"
#include "supervisor/node/host_usage.h"
#include "supervisor/node/node_state.h"
#include "supervisor/table/alloc_table.h"

#define MIB (1024.0 * 1024)

/* --- the machine --- */

/* The percentages of the cores cover the time since the last sample, which may be the last scrape.
 */
static void
sample_host(struct scrape *s)
{
	const struct node_cpu *cpu = &node_get(s->sup)->node_resources.cpu;

	if (cpu->total_cpu_cores > 0)
		s->core_mhz = (double)cpu->cpu_shares / (double)cpu->total_cpu_cores;
	host_stats_init(&s->host);
	(void)host_usage_sample(s->sup);
	host_usage_fill(s->sup, s->core_mhz, &s->host);
}

static double
read_lease_age(const struct scrape *s)
{
	struct lease_page page;
	uint64_t now = clock_boot_ns();

	if (lease_page_read(s->sup, &page, NULL) < 0 || page.last_ok == 0 || page.last_ok > now)
		return NAN;
	return (double)(now - page.last_ok) / NS_PER_S;
}

void
metric_rows_begin(struct scrape *s)
{
	if (s->sup->config->telemetry.use_node_name)
		(void)snprintf(
		    s->host_name, sizeof s->host_name, "%s", str(node_get(s->sup)->name));
	else if (gethostname(s->host_name, sizeof s->host_name - 1) < 0)
		s->host_name[0] = '\0';
	sample_host(s);
	s->lease_age_s = read_lease_age(s);
	metric_parts_take(s);
}

void
metric_rows_end(struct scrape *s)
{
	host_stats_done(&s->host);
	metric_parts_free(s);
}

/* --- labels --- */

const char metric_label_id[] = "";

void
metric_label_add(struct metric_labels *l, const char *name, const char *value)
{
	if (l->n == METRIC_LABELS_MAX)
		return;
	l->v[l->n].name = name;
	l->v[l->n++].value = str(value);
}

static void
label_host(struct scrape *s, struct metric_labels *l)
{
	if (!s->sup->config->telemetry.disable_hostname)
		metric_label_add(l, "host", s->host_name);
}

static void
label_node(struct scrape *s, struct metric_labels *l)
{
	const struct node *node = node_get(s->sup);

	metric_label_add(l, "node_id", node->id);
	metric_label_add(l, "datacenter", *str(node->datacenter) ? node->datacenter : "dc1");
	metric_label_add(l, "node_class", *str(node->node_class) ? node->node_class : "none");
	metric_label_add(l, "node_pool", *str(node->node_pool) ? node->node_pool : "default");
	metric_label_add(l, "node_status", node_status_names[node->status]);
	metric_label_add(
	    l, "node_scheduling_eligibility", node_eligibility_names[node->scheduling_eligibility]);
	label_host(s, l);
}

/* A child is named after its parent: "batch/dispatch-1700000000-ab", "cron/periodic-1700000000". */
static void
label_child(const struct job *job, struct metric_labels *l)
{
	static const char *const kinds[][2] = { { "/dispatch-", "dispatch_id" },
		{ "/periodic-", "periodic_id" } };

	if (!*str(job->parent_id))
		return;
	metric_label_add(l, "parent_id", job->parent_id);
	for (size_t i = 0; i < ELEMENTSOF(kinds); i++) {
		const char *at = strstr(str(job->name), kinds[i][0]);

		if (at)
			metric_label_add(l, kinds[i][1], at + strlen(kinds[i][0]));
	}
}

static bool
has_label(const struct metric_labels *l, const char *name)
{
	for (unsigned i = 0; i < l->n; i++)
		if (strcmp(l->v[i].name, name) == 0)
			return true;
	return false;
}

/* Makes a label's name of a key of metadata. Returns NULL if there is no space left. */
static const char *
make_name(struct metric_labels *l, const char *key)
{
	char *name = l->names + l->names_used;
	const size_t len = strlen(key);

	if (len + 2 > sizeof l->names - l->names_used)
		return NULL;
	l->names_used += len + 2;
	/* A digit may not be first. */
	(void)snprintf(name, len + 2, "%s%s", key[0] >= '0' && key[0] <= '9' ? "_" : "", key);
	for (char *at = name; *at; at++)
		if (!(*at >= '0' && *at <= '9') && !((*at | 0x20) >= 'a' && (*at | 0x20) <= 'z'))
			*at = '_';
	return name;
}

static bool
meta_is_wanted(const struct config_telemetry *t, const char *key)
{
	for (uint32_t i = 0; i < t->n_meta_keys; i++)
		if (strcmp(t->meta_keys[i], key) == 0)
			return true;
	return t->n_meta_keys == 0 && *key;
}

/* The other labels come before metadata with the same name; a task's metadata before its group's.
 */
static void
label_meta(struct scrape *s, const struct task_runner *tr, struct metric_labels *l)
{
	const struct config_telemetry *t = &s->sup->config->telemetry;
	const struct string_map *const maps[] = { &tr->task->meta, &tr->ar->sa->group->meta,
		&tr->ar->sa->job->job.meta };

	for (size_t m = 0; t->alloc_meta && m < ELEMENTSOF(maps); m++) {
		for (size_t i = 0; i < maps[m]->n; i++) {
			const char *name = meta_is_wanted(t, str(maps[m]->v[i].key))
					       ? make_name(l, maps[m]->v[i].key)
					       : NULL;

			if (name && !has_label(l, name) && strcmp(name, "le") != 0)
				metric_label_add(l, name, maps[m]->v[i].value);
		}
	}
}

void
metric_label_task(struct scrape *s, const struct task_runner *tr, struct metric_labels *l)
{
	const struct sup_alloc *sa = tr->ar->sa;

	l->n = 0;
	l->names_used = 0;
	metric_label_add(l, "job", sa->job->job.name);
	metric_label_add(l, "task_group", sa->a.task_group);
	metric_label_add(l, "alloc_id", metric_label_id);
	metric_label_add(l, "task", tr->task->name);
	metric_label_add(l, "namespace", sa->a.namespace);
	label_child(&sa->job->job, l);
	label_host(s, l);
	label_meta(s, tr, l);
}

/* --- rows --- */

size_t
metric_rows_count(const struct scrape *s, const struct metric_family *f)
{
	switch (f->rows) {
	case ROWS_NETWORK:
		return node_get(s->sup)->node_resources.networks.n;
	case ROWS_CORE:
		return s->host.cpu.n;
	case ROWS_DISK:
		return s->host.disk_stats.n;
	case ROWS_TASK:
	case ROWS_USAGE:
		return metric_tasks_count(s, f);
	case ROWS_AGENT:
	case ROWS_NODE:
	case ROWS_HOST:
		return 1;
	default:
		return metric_parts_count(s, f->rows);
	}
}

const void *
metric_row(struct scrape *s, enum metric_rows rows, size_t i, struct metric_labels *ret_labels)
{
	ret_labels->n = 0;
	ret_labels->names_used = 0;
	if (rows == ROWS_AGENT)
		return s;
	if (rows > ROWS_USAGE)
		return metric_part(s, rows, i, ret_labels);
	label_node(s, ret_labels);
	if (rows == ROWS_NETWORK) {
		const struct network_resource *n = &node_get(s->sup)->node_resources.networks.v[i];

		metric_label_add(ret_labels, "device", n->device);
		return n;
	}
	if (rows == ROWS_CORE) {
		/* Nomad names cores "cpu0" as well. */
		metric_label_add(ret_labels, "cpu", s->host.cpu.v[i].cpu);
		return &s->host.cpu.v[i];
	}
	if (rows == ROWS_DISK) {
		metric_label_add(ret_labels, "disk", s->host.disk_stats.v[i].device);
		return &s->host.disk_stats.v[i];
	}
	return s;
}

/* --- values --- */

double
metric_unallocated_cpu(const struct scrape *s)
{
	const struct node *n = node_get(s->sup);

	return (double)(n->node_resources.cpu.cpu_shares - n->reserved_resources.cpu.cpu_shares -
			s->counts.cpu);
}

double
metric_unallocated_disk(const struct scrape *s)
{
	const struct node *n = node_get(s->sup);

	return (double)(n->node_resources.disk.disk_mb - n->reserved_resources.disk.disk_mb -
			s->counts.disk_mb);
}

double
metric_unallocated_memory(const struct scrape *s)
{
	const struct node *n = node_get(s->sup);

	return (double)(n->node_resources.memory.memory_mb -
			n->reserved_resources.memory.memory_mb - s->counts.memory_mb);
}

int64_t
metric_cpu_of(const struct sup_alloc *sa, const struct task *task)
{
	const struct alloc_cpu *own = alloc_task_cpu(&sa->a, task->name);

	return own ? own->cpu_shares : task->resources->cpu;
}

double
metric_task_cpu(const struct metric_task *t)
{
	return (double)metric_cpu_of(t->tr->ar->sa, t->tr->task);
}

struct alloc_memory
metric_task_memory(const struct metric_task *t)
{
	return alloc_task_memory(&t->tr->ar->sa->a, t->tr->task);
}

double
metric_task_starts(const struct metric_task *t)
{
	return t->state && t->state->started_at > 0 ? (double)t->state->restarts + 1 : 0;
}

double
metric_positive(double v)
{
	return v > 0 ? v : NAN;
}

double
metric_mib(int64_t mib)
{
	return mib > 0 ? (double)mib * MIB : NAN;
}

double
metric_start_time(const struct scrape *s)
{
	int64_t opened_ns;

	(void)store_was_left(s->sup->store, &opened_ns);
	return floor((double)opened_ns / NS_PER_S);
}

/* The log is truncated now and then, and grows again. */
double
metric_state_size(const struct scrape *s)
{
	static const char *const names[] = { "", "-wal" };
	double size = 0;

	for (size_t i = 0; i < ELEMENTSOF(names); i++) {
		cleanup_free char *path =
		    mem_printf("%s/state/state.db%s", s->sup->args.data_dir, names[i]);
		struct stat st;

		size += stat(path, &st) == 0 ? (double)st.st_size : 0;
	}
	return size;
}
