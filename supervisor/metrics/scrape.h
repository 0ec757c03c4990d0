/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scrape.h: one reading of all metrics, as text. First it visits all allocs, then it makes the
 * text. Both are done piece by piece, so that the work loop goes on between two pieces, and it
 * holds no pointers to allocs between them. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_METRICS_SCRAPE_H
#define DROVER_SUPERVISOR_METRICS_SCRAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "common/id.h"
#include "model/engine/text.h"
#include "model/stats.h"
#include "model/task_state.h"
#include "supervisor/core/sup.h"
#include "supervisor/image/image_counts.h"
#include "supervisor/metrics/metric_table.h"

enum metric_format {
	METRIC_JSON,        /* the answer of Nomad's /v1/metrics */
	METRIC_PROMETHEUS,  /* version 0.0.4 */
	METRIC_OPENMETRICS, /* version 1.0.0 */
	METRIC_STATSD,      /* a line for each value: statsd.c sends it */
};

/* What the allocs of this node are and use together; counted once for a scrape. */
struct metric_counts {
	uint64_t blocked, pending, running, terminal, networks;
	uint64_t tasks[TASK_STATE_DEAD + 1];
	int64_t cpu, memory_mb, memory_max_mb, disk_mb;
	uint64_t lease_min_ms; /* the shortest stop_after_client_disconnect; 0: none */
};

struct scrape {
	struct sup *sup;
	enum metric_format format;
	struct metric_counts counts;
	struct host_stats host;
	double core_mhz;
	int64_t age_s;              /* since the agent was started */
	char host_name[129];        /* the label "host" of Nomad's names */
	struct metric_tasks *tasks; /* metric_tasks.h */
	double lease_age_s;         /* NAN: not known */
	struct metric_parts *parts; /* metric_parts.h: what was copied when it began */
	size_t n_mounts;
	struct image_sizes images;
	/* The place of the next piece. */
	enum metric_kind section; /* JSON has a list for each kind */
	const struct metric_family *family;
	size_t row;
	bool collected;               /* all allocs were visited */
	bool begun, in_family, ended; /* in_family: its heading was written */
	bool comma;                   /* JSON: an object comes before the next one */
	struct text head;             /* what each line of the family begins with */
	struct text labels;           /* of the row that is printed */
	struct text tail;             /* JSON: of the last counter, whose value was tail_value */
	double tail_value;
	struct text out; /* not read yet, from `at` */
	size_t at;
};

/* The caller frees it. */
struct scrape *scrape_new(struct sup *sup, enum metric_format format);
void scrape_free(struct scrape *s); /* ignores NULL */
/* Fills buf with the next piece. Returns its length; 0: it will have one in a later turn; -1 at the
 * end. */
ssize_t scrape_read(struct scrape *s, char *buf, size_t max);
/* The same without a copy, and never with a part of a line; valid until the next call. It may be
 * empty. Returns false at the end. */
bool scrape_piece(struct scrape *s, const char **ret, size_t *ret_len);

#endif
