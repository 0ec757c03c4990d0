// SPDX-License-Identifier: Apache-2.0
/* par_main.c: the job-parser, from its constant. It parses job files in HCL and evaluates tasks'
 * configurations, each in a worker, and keeps no state between two requests. The supervisor starts
 * it on demand. Runs in: job-parser. */
#include <errno.h>
#include <unistd.h>

#include "job-parser/par.h"
#include "job-parser/par_filter.h"

#define PARSE_TIMEOUT_MS 10000

static const struct proc_spec job_parser;
static struct workers workers = { .spec = &job_parser };

/* The job-parser reads nothing of the configuration. */
static int
close_config(void *state, const struct proc_args *args, struct err *e)
{
	(void)close(FD_CONFIG);
	return 0;
}

static void
answer(const struct worker *w, const struct worker_result *res, const void *rep)
{
	struct err none = { 0 }, e = { 0 };

	(void)proc_answer(&job_parser, w->type, w->serial, 0, rep, res->fd, &none, &e);
}

static void
answer_parsed(void *state, const struct worker *w, struct worker_result *res)
{
	answer(w, res, &(struct par_job_parse_rep){ .parsed = res->flag });
}

static void
answer_evaluated(void *state, const struct worker *w, struct worker_result *res)
{
	answer(w, res, &(struct par_config_evaluate_rep){ .evaluated = res->flag });
}

static int
handle_request(void *state, const struct ipc_packet *p, void *rep, int *ret_fd, struct err *e)
{
	if (p->type == PAR_JOB_PARSE_REQ)
		return worker_start(&workers, p, PARSE_TIMEOUT_MS, p->fds, 1, par_parse_job, p->msg,
		    answer_parsed, "parse the job file", e);
	if (p->type == PAR_CONFIG_EVALUATE_REQ)
		return worker_start(&workers, p, PARSE_TIMEOUT_MS, p->fds, 1, par_evaluate_config,
		    p->msg, answer_evaluated, "evaluate the configuration", e);
	return -EPROTO;
}

static void
collect(void *state)
{
	workers_collect(&workers);
}

static int
next_timeout(void *state)
{
	return workers_timeout(&workers);
}

static const struct proc_spec job_parser = {
	.name = "job-parser",
	.peer = IPC_JOB_PARSER,
	.no_new_privs = true,
	.filter = &par_prog,
	.handle = handle_request,
	.init = close_config,
	.between = collect,
	.timeout_ms = next_timeout,
};

int
main(int argc, char **argv)
{
	return proc_main(&job_parser, argc, argv);
}
