/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metric_tasks.h: the tasks of a scrape. A scrape visits all allocs once, some in each turn of the
 * work loop, counts them, and keeps the values and the labels of their tasks, because the formats
 * want the values of all tasks family by family. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_METRICS_METRIC_TASKS_H
#define DROVER_SUPERVISOR_METRICS_METRIC_TASKS_H

#include <stdbool.h>
#include <stddef.h>

#include "supervisor/metrics/scrape.h"

struct metric_label_text;

void metric_tasks_begin(struct scrape *s);
/* Visits some allocs. Returns false when it has visited all. */
bool metric_tasks_go_on(struct scrape *s);
void metric_tasks_free(struct scrape *s);
/* Chooses a wanted family, and returns how many tasks may have a value. */
size_t metric_tasks_count(const struct scrape *s, const struct metric_family *f);
/* Returns the value of the chosen family for the i-th task of its rows; NAN: it has none. */
double metric_tasks_value(const struct scrape *s, const struct metric_family *f, size_t i,
    struct metric_label_text *ret_labels);

#endif
