/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metric_table.h: the families of metric_families.def. A family is a name with one value for each
 * of its rows: for each task, each volume, or once for the node. Nothing is stored for a metric:
 * its value is read from what the agent knows when somebody asks. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_METRICS_METRIC_TABLE_H
#define DROVER_SUPERVISOR_METRICS_METRIC_TABLE_H

#include <stdbool.h>

struct histogram;
struct scrape;

enum metric_kind { METRIC_GAUGE, METRIC_COUNTER, METRIC_HISTOGRAM };

/* What a family has a row for. metric_rows.c has the labels of each. */
enum metric_rows {
#define METRIC_ROWS(name, ...) ROWS_##name,
#include "supervisor/metrics/metric_rows.def"
#undef METRIC_ROWS
	METRIC_ROWS_N
};

struct metric_family {
	const char
	    *name; /* as in Nomad's JSON; where dots are not permitted they are underscores */
	enum metric_kind kind;
	/* Prometheus requires another name for this kind, but the name is Nomad's: it is exported
	 * without a type there. */
	bool untyped;
	enum metric_rows rows;
	const char *help; /* one sentence, without a full stop */
	/* The value for a row; NAN: there is none. */
	double (*value)(const struct scrape *s, const void *row);
	const struct histogram *(*histogram)(const struct scrape *s, const void *row);
};

/* The last has no name. */
extern const struct metric_family metric_families[];

/* Returns true if the configuration's telemetry block permits the family. */
bool metric_is_wanted(const struct scrape *s, const struct metric_family *f);

#endif
