/* SPDX-License-Identifier: Apache-2.0 */
/* metric_parts.h: rows of metrics that are copied when a scrape begins, because they may change
 * before its end: processes, plugins, volumes. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_METRICS_METRIC_PARTS_H
#define DROVER_SUPERVISOR_METRICS_METRIC_PARTS_H

#include "model/volume_here.h"
#include "supervisor/health/component.h"
#include "supervisor/metrics/scrape.h"

struct child_counts;
struct metric_labels;

struct metric_process {
	const char *name;
	uint32_t pid; /* 0: it does not run */
	uint32_t starts, losses;
	unsigned waiting, sent;
	const struct child_counts *counts; /* NULL: the supervisor itself */
	double rss;                        /* NAN: not known */
};

struct metric_step {
	const char *name;
	const struct histogram *histogram;
};

struct metric_plugin {
	char *id, *alloc;
	const char *type;
	bool healthy;
	int64_t since_ns;
	size_t volumes;
};

struct metric_volume {
	char *namespace, *id, *plugin;
	unsigned mounts, failing;
	enum volume_condition condition;
	struct volume_amount bytes, inodes; /* total 0: not known */
};

struct metric_probe {
	char *component;
	enum health_state state;
	int64_t since_ns, checked_ns;
	uint64_t took_ms;
};

struct metric_driver {
	const char *name;
	bool healthy;
};

void metric_parts_take(struct scrape *s);
void metric_parts_free(struct scrape *s);
size_t metric_parts_count(const struct scrape *s, enum metric_rows rows);
const void *metric_part(
    const struct scrape *s, enum metric_rows rows, size_t i, struct metric_labels *ret_labels);

#endif
