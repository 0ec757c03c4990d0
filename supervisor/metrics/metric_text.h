/* SPDX-License-Identifier: Apache-2.0 */
/* metric_text.h: the formats of metrics. Each function appends to s->out. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_METRICS_METRIC_TEXT_H
#define DROVER_SUPERVISOR_METRICS_METRIC_TEXT_H

#include "supervisor/metrics/metric_rows.h"

void metric_text_begin(struct scrape *s);
void metric_text_end(struct scrape *s);
/* JSON: begins the list of families of this kind. */
void metric_text_section(struct scrape *s, enum metric_kind kind);
/* The heading of a family, before its first value. */
void metric_text_family(struct scrape *s, const struct metric_family *f);
void metric_text_value(struct scrape *s, const struct metric_family *f,
    const struct metric_labels *labels, double value);
void metric_text_histogram(struct scrape *s, const struct metric_family *f,
    const struct metric_labels *labels, const struct histogram *h);

#endif
