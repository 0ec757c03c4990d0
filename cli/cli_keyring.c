// SPDX-License-Identifier: Apache-2.0
/* cli_keyring.c: drover operator root keyring list, rotate and remove. Runs in: cli. */
#include "cli/cli_api.h"
#include "cli/cli_list.h"
#include "cli/cli_print.h"
#include "cli/cli_verbs.h"
#include "common/cleanup.h"

static void
key_cells(const struct cli *cli, struct cli_table *t, const json_t *key)
{
	char when[CLI_TIME_SIZE];

	cli_cell(t, "%s", cli_json_str(key, "KeyID"));
	cli_cell(t, "%s", cli_json_str(key, "Algorithm"));
	cli_cell(t, "%s", cli_json_str(key, "State"));
	cli_cell(t, "%s", cli_time(cli, cli_json_int(key, "CreateTime"), when));
}

static const struct cli_list keys = {
	.none = "No keys: no task has needed a token",
	CLI_HEADS("Key", "Algorithm", "State", "Created"),
	.cells = key_cells,
};

int
cli_keyring_list(struct cli *cli, int argc, char **argv)
{
	struct err e = { 0 };

	(void)argc;
	(void)argv;
	return cli_list_get(cli, &keys, "/v1/operator/keyring/keys", &e) < 0 ? cli_fail(cli, &e)
									     : CLI_OK;
}

int
cli_keyring_rotate(struct cli *cli, int argc, char **argv)
{
	struct err e = { 0 };
	json_t *answer = NULL;

	(void)argc;
	(void)argv;
	if (cli_api_send(cli, "PUT", "/v1/operator/keyring/rotate", NULL, &answer, &e) < 0)
		return cli_fail(cli, &e);
	cli_say(cli, "Key %s signs tokens from now on", cli_json_str(answer, "Key/KeyID"));
	json_decref(answer);
	return CLI_OK;
}

int
cli_keyring_remove(struct cli *cli, int argc, char **argv)
{
	cleanup_free char *target = cli_target("/v1/operator/keyring/key/%s", argv[0]);
	struct err e = { 0 };

	(void)argc;
	if (cli_api_send(cli, "DELETE", target, NULL, NULL, &e) < 0)
		return cli_fail(cli, &e);
	cli_say(cli, "Key %s is removed: its tokens are not valid any more", argv[0]);
	return CLI_OK;
}
