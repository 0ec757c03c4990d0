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
#define METRIC_ALLOC_ID 36 /* bytes of an alloc's id */

/* The labels of a row in this format, made once for all values of the row. Those of the tasks of a
 * job differ in the alloc's id only. */
struct metric_label_text {
	const char *text;
	size_t len;
	const char *alloc_id; /* NULL: it is in the text, if at all; else METRIC_ALLOC_ID bytes */
	size_t id_at;         /* its place in the text */
};

/* Appends the labels. Returns the place of metric_label_id, which is left empty; 0: there is none.
 */
size_t metric_text_labels(
    const struct scrape *s, const struct metric_labels *labels, struct text *to);
/* A value or histogram of the family whose heading was written last. */
void metric_text_value(struct scrape *s, const struct metric_family *f,
    const struct metric_label_text *labels, double value);
void metric_text_histogram(
    struct scrape *s, const struct metric_label_text *labels, const struct histogram *h);

#endif
