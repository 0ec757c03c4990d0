// SPDX-License-Identifier: Apache-2.0
/* cli_eval.c: drover eval list and status. Runs in: cli. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli_alloc.h"
#include "cli/cli_api.h"
#include "cli/cli_job.h"
#include "cli/cli_list.h"
#include "cli/cli_print.h"
#include "cli/cli_verbs.h"
#include "cli/cli_watch.h"
#include "common/mem.h"

static struct {
	const char *job, *status;
	bool monitor;
} options;

const struct cli_flag cli_eval_status_flags[] = {
	{ "monitor", CLI_FLAG_BOOL, &options.monitor, NULL,
	    "follow the evaluation until it has ended" },
	{ 0 },
};

const struct cli_flag cli_eval_list_flags[] = {
	CLI_LIST_FLAGS,
	{ "job", CLI_FLAG_STRING, &options.job, "JOB", "only evaluations of this job" },
	{ "status", CLI_FLAG_STRING, &options.status, "STATUS",
	    "only evaluations with this status: blocked, complete, pending, failed or canceled" },
	{ 0 },
};

static void
eval_cells(const struct cli *cli, struct cli_table *t, const json_t *eval)
{
	char created[CLI_TIME_SIZE];

	cli_cell(t, "%.*s", cli->id_len, cli_json_str(eval, "ID"));
	cli_cell(t, "%lld", (long long)cli_json_int(eval, "Priority"));
	CLI_TEXT_CELLS(t, eval, "TriggeredBy", "JobID", "Status");
	cli_cell(t, "%s", cli_yes(json_object_size(cli_json_get(eval, "FailedTGAllocs")) > 0));
	cli_cell(t, "%s", cli_time(cli, cli_json_int(eval, "CreateTime"), created));
}

static const struct cli_list evals = {
	.none = "No evaluations",
	CLI_HEADS("ID", "?Priority", "Triggered By", "Job ID", "Status", "?Placement Failures",
	    "?Created"),
	.cells = eval_cells,
};

void
cli_print_evals(const struct cli *cli, const json_t *list)
{
	cli_list_print(cli, &evals, list);
}

/* Adds a condition to the filter, which the caller frees. */
static int
add_condition(char **filter, const char *member, const char *value, struct err *e)
{
	char *both;

	if (!value)
		return 0;
	if (strpbrk(value, "\"\\"))
		return err_say(e, -EINVAL, "\"%s\": a value has no quotes and backslashes", value);
	both = *filter ? mem_printf("(%s) and %s == \"%s\"", *filter, member, value)
		       : mem_printf("%s == \"%s\"", member, value);
	free(*filter);
	*filter = both;
	return 0;
}

static int
list_evals(struct cli *cli, struct err *e)
{
	const char *given = cli_list_options.filter;
	cleanup_free char *filter = given ? mem_strdup(given) : NULL;
	int r = add_condition(&filter, "JobID", options.job, e);

	if (r == 0)
		r = add_condition(&filter, "Status", options.status, e);
	cli_list_options.filter = filter;
	if (r == 0)
		r = cli_list_get(cli, &evals, "/v1/evaluations", e);
	cli_list_options.filter = given;
	return r;
}

int
cli_eval_list(struct cli *cli, int argc, char **argv)
{
	struct err e = { 0 };

	(void)argc;
	(void)argv;
	return list_evals(cli, &e) < 0 ? cli_fail(cli, &e) : CLI_OK;
}

static void
print_eval(const struct cli *cli, const json_t *eval)
{
	char time[CLI_TIME_SIZE];

	cli_field("ID", "%.*s", cli->id_len, cli_json_str(eval, "ID"));
	cli_field("Created", "%s", cli_time(cli, cli_json_int(eval, "CreateTime"), time));
	cli_field("Modified", "%s", cli_time(cli, cli_json_int(eval, "ModifyTime"), time));
	cli_field("Status", "%s", cli_json_str(eval, "Status"));
	cli_field("Description", "%s", cli_json_str(eval, "StatusDescription"));
	cli_field("Type", "%s", cli_json_str(eval, "Type"));
	cli_field("Triggered By", "%s", cli_json_str(eval, "TriggeredBy"));
	cli_field("Job ID", "%s", cli_json_str(eval, "JobID"));
	cli_field("Namespace", "%s", cli_json_str(eval, "Namespace"));
	cli_field("Priority", "%lld", (long long)cli_json_int(eval, "Priority"));
	cli_field("Wait Until", "%s", cli_time(cli, cli_json_time_ns(eval, "WaitUntil"), time));
	cli_field("Blocked Eval", "%.*s", cli->id_len, cli_json_str(eval, "BlockedEval"));
	if (json_object_size(cli_json_get(eval, "FailedTGAllocs")) > 0) {
		cli_head("Not placed");
		cli_watch_say_failed(cli, cli_json_get(eval, "FailedTGAllocs"));
	}
}

static int
show_eval(struct cli *cli, const char *id, struct err *e)
{
	cleanup_free char *target = cli_target("/v1/evaluation/%s", id);
	cleanup_free char *placed = cli_target("/v1/evaluation/%s/allocations", id);

	if (options.monitor)
		return cli_watch_eval(cli, id, e);
	return cli_show_with_allocs(cli, target, placed, "Allocations placed", print_eval, e);
}

int
cli_eval_status(struct cli *cli, int argc, char **argv)
{
	return cli_with_id(cli, &cli_kind_eval, argv[0], show_eval);
}
