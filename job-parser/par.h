/* SPDX-License-Identifier: Apache-2.0 */
/* par.h: what job-parser's files share. Runs in: job-parser. */
#ifndef DROVER_JOB_PARSER_PAR_H
#define DROVER_JOB_PARSER_PAR_H

#include "common/worker.h"

/* Limits of one job file: its worker is ended when it needs more. */
#define PAR_MEMORY_BYTES ((size_t)384 << 20) /* hcl_job_limits and the JSON, with a margin */
#define PAR_CPU_SECONDS  5

/* Parses the memfd fd as the struct par_job_parse_req at arg says. Runs in a worker. */
worker_fn par_parse_job;

#endif
