// SPDX-License-Identifier: Apache-2.0
/* cli_watch_deployment.c: follows a deployment until it has ended or needs an operator. Runs in:
 * cli. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli_api.h"
#include "cli/cli_deployment.h"
#include "cli/cli_print.h"
#include "cli/cli_screen.h"
#include "cli/cli_watch.h"

/* Formats the progress of the groups in one line, which changes when they progress. The caller
 * frees it. */
static char *
describe_progress(const json_t *deployment)
{
	const char *name, *before = "";
	const json_t *group;
	struct text all = { 0 };

	text_append(&all, "", 0);
	json_object_foreach (cli_json_get(deployment, "TaskGroups"), name, group) {
		long long bad = cli_json_int(group, "UnhealthyAllocs");

		text_printf(&all, "%s%s: %lld of %lld healthy, %lld placed", before, name,
		    (long long)cli_json_int(group, "HealthyAllocs"),
		    (long long)cli_json_int(group, "DesiredTotal"),
		    (long long)cli_json_int(group, "PlacedAllocs"));
		if (bad)
			text_printf(&all, ", %lld unhealthy", bad);
		before = "; ";
	}
	return all.text;
}

/* Returns true if all canaries are healthy and the deployment waits for a promotion. */
static bool
waits_for_promotion(const json_t *deployment)
{
	const json_t *group;
	const char *name;
	bool some = false;

	json_object_foreach (cli_json_get(deployment, "TaskGroups"), name, group) {
		json_int_t canaries = cli_json_int(group, "DesiredCanaries");

		if (canaries == 0 || cli_json_true(group, "Promoted"))
			continue;
		if (cli_json_true(group, "AutoPromote") ||
		    cli_json_int(group, "HealthyAllocs") < canaries)
			return false;
		some = true;
	}
	return some;
}

/* Returns the exit code, or -1 while the deployment continues. */
static int
say_end(const struct cli *cli, const char *id, const json_t *deployment)
{
	const char *status = cli_json_str(deployment, "Status"),
		   *why = cli_json_str(deployment, "StatusDescription");

	if (strcmp(status, "running") == 0) {
		if (!waits_for_promotion(deployment))
			return -1;
		cli_say(cli,
		    "==> Deployment \"%.*s\": the canaries are healthy; to continue: drover "
		    "deployment promote %.*s",
		    cli->id_len, id, cli->id_len, id);
		return CLI_OK;
	}
	cli_say(cli, "==> Deployment \"%.*s\" is %s: %s", cli->id_len, id, status, why);
	if (strcmp(status, "paused") == 0)
		cli_say(cli, "    To continue: drover deployment resume %.*s", cli->id_len, id);
	return strcmp(status, "successful") == 0 || strcmp(status, "paused") == 0 ? CLI_OK
										  : CLI_FAILED;
}

int
cli_deployment_follow(struct cli *cli, const char *id, struct err *e)
{
	cleanup_free char *target = cli_target("/v1/deployment/%s", id);
	cleanup_free char *said = NULL;
	unsigned step_ms = 0;
	int r;

	cli_say(cli, "==> Monitoring deployment \"%.*s\"", cli->id_len, id);
	for (;;) {
		cleanup_json json_t *deployment = NULL;
		cleanup_free char *now = NULL;

		r = cli_api_get(cli, target, &deployment, e);
		if (r < 0)
			return r;
		now = describe_progress(deployment);
		if (!said || strcmp(said, now) != 0) {
			cli_say(cli, "    %s", now);
			free(said);
			said = steal_ptr(&now);
		}
		r = say_end(cli, id, deployment);
		if (r >= 0)
			return r;
		cli_progress("The deployment is running");
		cli_watch_pause(&step_ms);
	}
}
