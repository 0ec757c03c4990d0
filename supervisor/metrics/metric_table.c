// SPDX-License-Identifier: Apache-2.0
/* metric_table.c: the families of metric_families.def, with a function for the value of each. Runs
 * in: supervisor. */
#include "supervisor/metrics/metric_table.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "common/duration.h"
#include "supervisor/audit/audit_log.h"
#include "supervisor/core/sup_child.h"
#include "supervisor/core/sup_turn.h"
#include "supervisor/driver/run.h"
#include "supervisor/driver/run_usage.h"
#include "supervisor/alloc/alloc_state.h"
#include "supervisor/alloc/hook_network.h"
#include "supervisor/node/host_usage.h"
#include "supervisor/image/image_counts.h"
#include "supervisor/source/source_api.h"
#include "supervisor/volume/plugin_counts.h"
#include "supervisor/health/probe.h"
#include "supervisor/metrics/metric_rows.h"
#include "supervisor/table/alloc_table.h"

/* Nomad's gauges of CPU time cover the time between two samples; the first sample has none. */
static double
percent_between(const struct metric_task *t, uint64_t before, uint64_t now)
{
	const int64_t span_ns = t->sample->at_ns - t->before->at_ns;

	if (t->before->at_ns == 0 || span_ns <= 0)
		return NAN;
	return now > before ? 100.0 * (double)(now - before) / (double)span_ns : 0;
}

#define metric_percent(row, member)                                                                \
	percent_between((row), (row)->before->cpu.member, (row)->sample->cpu.member)
#define metric_measured(row, bit, member)                                                          \
	((row)->sample->memory.measured & (bit) ? (double)(row)->sample->memory.member : NAN)
#define metric_throttled(row, v) ((row)->sample->has_throttled ? (double)(v) : NAN)

#define metric_of_helper(row, v)      ((row)->counts ? (double)(v) : NAN)
#define metric_amount(amount, member) ((amount).total > 0 ? (double)(amount).member : NAN)

/* A function for each line. The line's number names it. */
#define NAME_OF_LINE_(line)             value_##line
#define NAME_OF_LINE(line)              NAME_OF_LINE_(line)
#define METRIC_ROWS(name, type, labels) typedef type row_of_##name;
#include "supervisor/metrics/metric_rows.def"
#undef METRIC_ROWS

#define TYPE_GAUGE         double
#define TYPE_NOMAD_GAUGE   double
#define TYPE_COUNTER       double
#define TYPE_NOMAD_COUNTER double
#define TYPE_HISTOGRAM     const struct histogram *
#define METRIC(rows, kind, name, help, expression)                                                 \
	static TYPE_##kind NAME_OF_LINE(__LINE__)(const struct scrape *s, const void *row_)        \
	{                                                                                          \
		const row_of_##rows *row = row_;                                                   \
                                                                                                   \
		(void)s, (void)row;                                                                \
		return (TYPE_##kind)(expression);                                                  \
	}
#include "supervisor/metrics/metric_families.def"
#undef METRIC

#define KIND_GAUGE         .kind = METRIC_GAUGE, .value
#define KIND_NOMAD_GAUGE   .kind = METRIC_GAUGE, .untyped = true, .value
#define KIND_COUNTER       .kind = METRIC_COUNTER, .value
#define KIND_NOMAD_COUNTER .kind = METRIC_COUNTER, .untyped = true, .value
#define KIND_HISTOGRAM     .kind = METRIC_HISTOGRAM, .histogram

const struct metric_family metric_families[] = {
#define METRIC(rows_, kind_, name_, help_, expression)                                             \
	{ .name = (name_),                                                                         \
		.rows = ROWS_##rows_,                                                              \
		.help = (help_),                                                                   \
		KIND_##kind_ = NAME_OF_LINE(__LINE__) },
#include "supervisor/metrics/metric_families.def"
#undef METRIC
	{ 0 }
};

/* The longest prefix decides; if it is there twice, the one that blocks. */
static bool
passes_filters(const struct config_telemetry *t, const char *name)
{
	bool wanted = t->filter_default;
	ssize_t longest = -1;

	for (uint32_t i = 0; i < t->n_filters; i++) {
		const ssize_t len = (ssize_t)strlen(t->filters[i].prefix);

		if (len < longest || strncmp(name, t->filters[i].prefix, (size_t)len) != 0)
			continue;
		wanted = t->filters[i].allow && (len > longest || wanted);
		longest = len;
	}
	return wanted;
}

bool
metric_is_wanted(const struct scrape *s, const struct metric_family *f)
{
	const struct config_telemetry *t = &s->sup->config->telemetry;

	switch (f->rows) {
	case ROWS_HOST:
	case ROWS_CORE:
	case ROWS_DISK:
		return t->node && passes_filters(t, f->name);
	case ROWS_TASK:
	case ROWS_USAGE:
		return t->allocs && passes_filters(t, f->name);
	default:
		return passes_filters(t, f->name);
	}
}
