/* SPDX-License-Identifier: Apache-2.0 */
/* par.h: what job-parser's files share. Runs in: job-parser. */
#ifndef DROVER_JOB_PARSER_PAR_H
#define DROVER_JOB_PARSER_PAR_H

#include "common/worker_texts.h"

/* Parses the job file, as the struct par_job_parse_req at arg says. Runs in a worker. */
worker_fn par_parse_job;
/* Evaluates the configuration, as the struct par_config_evaluate_req at arg says. Runs in a worker.
 */
worker_fn par_evaluate_config;

#endif
