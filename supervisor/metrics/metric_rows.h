/* SPDX-License-Identifier: Apache-2.0 */
/* metric_rows.h: the rows of metrics with their labels: the node, its cores and disks, the tasks.
 * Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_METRICS_METRIC_ROWS_H
#define DROVER_SUPERVISOR_METRICS_METRIC_ROWS_H

#include "model/alloc_resources.h"
#include "supervisor/metrics/metric_parts.h"
#include "supervisor/metrics/scrape.h"

struct run_sample;
struct sup_alloc;
struct task;
struct task_runner;

#define METRIC_LABELS_MAX 24

struct metric_labels {
	unsigned n;
	char names[1024]; /* of metadata */
	size_t names_used;
	struct {
		const char *name, *value; /* valid until the next row */
	} v[METRIC_LABELS_MAX];
};

/* A task, while its values are read. */
struct metric_task {
	const struct task_runner *tr;
	const struct task_state *state;           /* NULL: it has none yet */
	const struct run_sample *sample, *before; /* ROWS_USAGE only */
};

void metric_label_add(struct metric_labels *l, const char *name, const char *value);
/* The value of the label "alloc_id" in what metric_label_task() makes, compared by its address: all
 * else is the same for each alloc of the task's job. */
extern const char metric_label_id[];
void metric_label_task(
    struct scrape *s, const struct task_runner *tr, struct metric_labels *ret_labels);
/* Begins a scrape: samples the machine. */
void metric_rows_begin(struct scrape *s);
void metric_rows_end(struct scrape *s);
/* Returns how many rows the family has, including some that have gone since. */
size_t metric_rows_count(const struct scrape *s, const struct metric_family *f);
/* Returns the i-th row, valid until the next turn, and its labels. Not for tasks, of which
 * metric_tasks.h has the values. */
const void *metric_row(
    struct scrape *s, enum metric_rows rows, size_t i, struct metric_labels *ret_labels);

/* For expressions of metric_families.def. */
double metric_start_time(const struct scrape *s);
double metric_state_size(const struct scrape *s);
double metric_unallocated_cpu(const struct scrape *s);
double metric_unallocated_disk(const struct scrape *s);
double metric_unallocated_memory(const struct scrape *s);
int64_t metric_cpu_of(const struct sup_alloc *sa, const struct task *task); /* MHz */
double metric_task_cpu(const struct metric_task *t);                        /* MHz */
struct alloc_memory metric_task_memory(const struct metric_task *t);
double metric_task_starts(const struct metric_task *t);
/* A value that Nomad leaves out if it is 0. */
double metric_positive(double v);
double metric_mib(int64_t mib);

#endif
