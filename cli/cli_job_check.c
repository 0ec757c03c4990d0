// SPDX-License-Identifier: Apache-2.0
/* cli_job_check.c: drover job eval, validate. Runs in: cli. */
#include <errno.h>
#include <string.h>

#include "cli/cli_api.h"
#include "cli/cli_job.h"
#include "cli/cli_print.h"
#include "cli/cli_verbs.h"

static struct {
	bool detach, force;
} options;

const struct cli_flag cli_job_eval_flags[] = {
	{ "detach", CLI_FLAG_BOOL, &options.detach, NULL,
	    "return as soon as the request is accepted" },
	{ "force-reschedule", CLI_FLAG_BOOL, &options.force, NULL,
	    "replace failed allocations now, ignoring the reschedule policy" },
	{ 0 },
};

static int
evaluate_job(struct cli *cli, const char *id, struct err *e)
{
	cleanup_free char *target = cli_target("/v1/job/%s/evaluate", id);
	cleanup_json json_t *answer = NULL;
	int r = cli_api_send_new(cli, "PUT", target,
	    json_pack(
		"{s:s, s:{s:b}}", "JobID", id, "EvalOptions", "ForceReschedule", options.force),
	    &answer, e);

	return r < 0 ? r : cli_job_follow(cli, id, answer, options.detach, e);
}

int
cli_job_eval(struct cli *cli, int argc, char **argv)
{
	return cli_with_id(cli, &cli_kind_job, argv[0], evaluate_job);
}

/* Problems of the job are the result of this command, not an error of the request. */
static int
say_validity(struct cli *cli, const json_t *answer, char *of_templates, struct err *e)
{
	const char *problems = cli_json_str(answer, "Error");
	int code = CLI_OK;

	if (cli->json) {
		int r = cli_json_print(answer, e);

		if (r < 0)
			return r;
	}
	cli_job_say_warnings(cli, answer);
	if (*problems)
		code = cli->json ? CLI_FAILED : cli_fail_text(problems);
	for (const char *line; of_templates && *(line = strsep(&of_templates, "\n"));)
		code = cli_fail_text(line);
	if (code == CLI_OK)
		cli_say(cli, "The job is valid");
	return code;
}

int
cli_job_validate(struct cli *cli, int argc, char **argv)
{
	cleanup_json json_t *request = NULL, *answer = NULL;
	cleanup_free char *problems = NULL;
	struct err e = { 0 };
	int r;

	(void)argc;
	r = cli_job_read(argv[0], &request, NULL, &e);
	if (r == 0)
		r = cli_api_send(cli, "PUT", "/v1/validate/job", request, &answer, &e);
	if (r == 0) {
		problems = cli_job_template_problems(request);
		r = say_validity(cli, answer, problems, &e);
	}
	return r < 0 ? cli_fail(cli, &e) : r;
}
