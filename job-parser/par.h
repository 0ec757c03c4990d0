/* SPDX-License-Identifier: Apache-2.0 */
/* par.h: what job-parser's files share. Runs in: job-parser. */
#ifndef DROVER_JOB_PARSER_PAR_H
#define DROVER_JOB_PARSER_PAR_H

#include "common/worker.h"

/* Limits of one job file: its worker is ended when it needs more. */
#define PAR_JOB_MEMORY_BYTES ((size_t)384 << 20) /* hcl_job_limits and the JSON, with a margin */
#define PAR_JOB_CPU_SECONDS  5
/* Limits of one configuration. */
#define PAR_CONFIG_MEMORY_BYTES ((size_t)160 << 20) /* task_config_limits and the JSON */
#define PAR_CONFIG_CPU_SECONDS  2

/* The two texts of a request: the second follows the first. */
struct par_texts {
	const char *first, *second;
	size_t first_len, second_len;
};

/* Limits the worker, and maps the memfd with the texts. Returns 0, or -errno with *e. */
int par_begin(
    size_t memory_bytes, unsigned cpu_seconds, int fd, struct par_texts *texts, struct err *e);
/* Returns the result in a memfd. Returns 0, -EFBIG if it is too large, or another -errno. */
int par_end(const char *result, size_t len, struct worker_result *ret, struct err *e);

/* Parses the job file, as the struct par_job_parse_req at arg says. Runs in a worker. */
worker_fn par_parse_job;
/* Evaluates the configuration, as the struct par_config_evaluate_req at arg says. Runs in a worker.
 */
worker_fn par_evaluate_config;

#endif
