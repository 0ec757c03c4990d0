/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checks.h: the checks of an alloc's services: when each is made, what it found last, and what
 * follows from that for its tasks. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_SERVICE_CHECKS_H
#define DROVER_SUPERVISOR_SERVICE_CHECKS_H

#include <jansson.h>

#include "model/service.h"

struct alloc_runner;
struct check;
struct task_runner;

/* Begins with the checks of the group and its tasks; results that are known (of the last
 * supervisor, before an update of the job) stay. */
void checks_begin(struct alloc_runner *ar);
/* Ends all of them and forgets what they found. */
void checks_end(struct alloc_runner *ar);
void checks_free(struct alloc_runner *ar);
/* A task has started: what was found before is not of it. */
void checks_task_started(struct task_runner *tr);

/* The result of one after another: from NULL to NULL. */
const struct check *checks_next(const struct alloc_runner *ar, const struct check *c);
const struct check_result *check_result(const struct check *c);

/*
 * For the alloc's health: since when (CLOCK_MONOTONIC, ms) all of them pass, each seen after the
 * last start of its tasks. -1: they do not all; 0: there is none.
 */
int64_t checks_pass_since_ms(const struct alloc_runner *ar);

/* For what is kept beside the alloc: the results as a JSON object; and one that was kept, which is
 * taken over. */
void checks_save(const struct alloc_runner *ar, struct text *t);
void checks_restore(struct alloc_runner *ar, json_t *kept);

#endif
