// SPDX-License-Identifier: Apache-2.0
/* cli_job_stop.c: drover job stop: stops jobs and follows them. Runs in: cli. */
#include <errno.h>
#include <inttypes.h>

#include "cli/cli_api.h"
#include "cli/cli_job.h"
#include "cli/cli_print.h"
#include "cli/cli_verbs.h"
#include "cli/cli_watch.h"
#include "common/mem.h"

static struct {
	bool detach, purge, no_shutdown_delay, yes;
	int64_t eval_priority;
} options;

const struct cli_flag cli_job_stop_flags[] = {
	{ "detach", CLI_FLAG_BOOL, &options.detach, NULL,
	    "return as soon as the request is accepted" },
	{ "eval-priority", CLI_FLAG_NUMBER, &options.eval_priority, "NUMBER",
	    "priority of the evaluation, 1 to 100 (default: that of the job)" },
	{ "global", CLI_FLAG_REFUSED, NULL, NULL, "a job is stopped in the region of the agent" },
	{ "no-shutdown-delay", CLI_FLAG_BOOL, &options.no_shutdown_delay, NULL,
	    "do not wait for shutdown_delay" },
	{ "purge", CLI_FLAG_BOOL, &options.purge, NULL, "also remove the job and its history" },
	{ "yes", CLI_FLAG_BOOL, &options.yes, NULL,
	    "do not ask for confirmation when the id is a prefix" },
	{ 0 },
};

static int
stop_job(struct cli *cli, const char *job_id, struct err *e)
{
	cleanup_free char *priority = mem_printf("%" PRId64, options.eval_priority);
	cleanup_free char *target =
	    cli_target("/v1/job/%s?purge=%s&no_shutdown_delay=%s&eval_priority=%s", job_id,
		cli_yes(options.purge), cli_yes(options.no_shutdown_delay), priority);
	struct cli_watch_filter filter = { .job_id = job_id };
	cleanup_json json_t *answer = NULL;
	const char *eval_id;
	int r;

	r = cli_api_send(cli, "DELETE", target, NULL, &answer, e);
	if (r < 0)
		return r;
	r = cli_job_show_answer(cli, answer, e);
	if (r < 0)
		return r;
	eval_id = cli_json_str(answer, "EvalID");
	if (options.detach) {
		cli_say(cli, "Job \"%s\" is being stopped%s%s", job_id,
		    *eval_id ? ", evaluation " : "", eval_id);
		return CLI_OK;
	}
	if (*eval_id) {
		r = cli_watch_eval(cli, eval_id, e);
		/* Purging a job also removes its evaluations. */
		if (r < 0 && !(r == -ENOENT && options.purge))
			return r;
	}
	r = cli_watch_end(cli, &filter, e);
	if (r < 0)
		return r;
	cli_say(cli, "==> Job \"%s\" is stopped%s", job_id, options.purge ? " and purged" : "");
	return CLI_OK;
}

int
cli_job_stop(struct cli *cli, int argc, char **argv)
{
	const char *namespace = cli->namespace; /* each job may be in another */
	int code = CLI_OK;

	for (int i = 0; i < argc; i++) {
		cleanup_free char *id = NULL;
		struct err e = { 0 };
		int r = cli_id_resolve(cli, &cli_kind_job, argv[i], &id, &e);

		if (r == 0)
			r = cli_confirm_prefix("job", argv[i], id, options.yes, &e);
		if (r == 0)
			r = stop_job(cli, id, &e);
		if (r < 0)
			r = cli_fail(cli, &e);
		cli->namespace = namespace;
		code = code == CLI_OK ? r : code;
	}
	return code;
}
