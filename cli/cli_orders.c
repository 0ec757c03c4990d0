// SPDX-License-Identifier: Apache-2.0
/* cli_orders.c: drover alloc restart and alloc signal. Runs in: cli. */
#include <errno.h>

#include "cli/cli_alloc.h"
#include "cli/cli_api.h"
#include "cli/cli_print.h"
#include "cli/cli_verbs.h"

static struct {
	const char *task, *signal;
	bool all;
} options;

const struct cli_flag cli_alloc_restart_flags[] = {
	{ "all-tasks", CLI_FLAG_BOOL, &options.all, NULL,
	    "all tasks, also ended ones, in lifecycle order" },
	{ "task", CLI_FLAG_STRING, &options.task, "TASK", "only this task" },
	{ 0 },
};

const struct cli_flag cli_alloc_signal_flags[] = {
	{ "s", CLI_FLAG_STRING, &options.signal, "SIGNAL", "the signal's name (SIGKILL)" },
	{ "task", CLI_FLAG_STRING, &options.task, "TASK", "only this task" },
	{ 0 },
};

/* Empty: all tasks. */
static int
choose_task(int argc, char **argv, const char **ret, struct err *e)
{
	int r = cli_alloc_task_name(argc > 1 ? argv[1] : NULL, options.task, ret, e);

	if (r == 0 && !*ret)
		*ret = "";
	return r;
}

/* Takes over body. */
static int
send_order(struct cli *cli, const char *id, const char *verb, json_t *body, struct err *e)
{
	cleanup_free char *target = cli_target("/v1/client/allocation/%s/%s", id, verb);
	cleanup_json json_t *answer = NULL;
	int r = cli_api_send_new(cli, "PUT", target, body, &answer, e);

	return r == 0 && cli->json ? cli_json_print(answer, e) : r;
}

static int
restart_tasks(struct cli *cli, int argc, char **argv, struct err *e)
{
	cleanup_free char *id = NULL;
	const char *task = "";
	int r = cli_id_resolve(cli, &cli_kind_alloc, argv[0], &id, e);

	if (r == 0)
		r = choose_task(argc, argv, &task, e);
	if (r == 0)
		r = send_order(cli, id, "restart",
		    json_pack("{s:s, s:b}", "TaskName", task, "AllTasks", options.all), e);
	if (r == 0)
		cli_say(cli, "Allocation \"%.*s\": %s restarted", cli->id_len, id,
		    options.all ? "all tasks are being"
		    : *task     ? "the task is being"
				: "its running tasks are being");
	return r;
}

int
cli_alloc_restart(struct cli *cli, int argc, char **argv)
{
	struct err e = { 0 };

	return restart_tasks(cli, argc, argv, &e) < 0 ? cli_fail(cli, &e) : CLI_OK;
}

static int
send_signal(struct cli *cli, int argc, char **argv, struct err *e)
{
	const char *task = "", *name = options.signal ? options.signal : "SIGKILL";
	cleanup_free char *id = NULL;
	int r;

	/* An empty variable in a script must not send SIGKILL. */
	if (!*name)
		return err_say(e, -EINVAL, "-s needs the name of a signal, like SIGHUP");
	r = cli_id_resolve(cli, &cli_kind_alloc, argv[0], &id, e);
	if (r == 0)
		r = choose_task(argc, argv, &task, e);
	if (r == 0)
		r = send_order(
		    cli, id, "signal", json_pack("{s:s, s:s}", "Task", task, "Signal", name), e);
	return r;
}

int
cli_alloc_signal(struct cli *cli, int argc, char **argv)
{
	struct err e = { 0 };

	return send_signal(cli, argc, argv, &e) < 0 ? cli_fail(cli, &e) : CLI_OK;
}
