// SPDX-License-Identifier: Apache-2.0
/* cli_image.c: drover image list, pull and remove: the container images of this node. Runs in:
 * cli. */
#include <errno.h>
#include <string.h>

#include "cli/cli_api.h"
#include "cli/cli_list.h"
#include "cli/cli_print.h"
#include "cli/cli_verbs.h"

#define ASK_MS 500 /* between two questions about a pull */

static struct {
	bool detach, force;
} options;

const struct cli_flag cli_image_pull_flags[] = {
	{ "detach", CLI_FLAG_BOOL, &options.detach, NULL,
	    "return as soon as the request is accepted" },
	{ "force", CLI_FLAG_BOOL, &options.force, NULL,
	    "ask the registry also if the image is on this node" },
	{ 0 },
};

const struct cli_flag cli_image_remove_flags[] = {
	{ "force", CLI_FLAG_BOOL, &options.force, NULL,
	    "remove it also if tasks use it, whose next start asks the registry" },
	{ 0 },
};

static void
last_use_cell(const struct cli *cli, struct cli_table *t, const json_t *image, bool ready)
{
	int64_t used = cli_json_int(image, "LastUsed");
	char text[CLI_TIME_SIZE];

	if (cli_json_true(image, "InUse"))
		cli_cell(t, "in use");
	else if (used > 0)
		cli_cell(t, "%s", cli_time(cli, used, text));
	else
		cli_cell(t, ready ? "never" : "");
}

static void
image_cells(const struct cli *cli, struct cli_table *t, const json_t *image)
{
	char size[CLI_TIME_SIZE], pulled[CLI_TIME_SIZE];
	const char *status = cli_json_str(image, "Status");
	bool ready = strcmp(status, "ready") == 0;

	cli_cell(t, "%s", cli_json_str(image, "Name"));
	if (strcmp(status, "pulling") == 0 && cli_json_int(image, "Total") > 0)
		cli_cell(t, "pulling, %d %%",
		    (int)(100 * cli_json_int(image, "Bytes") / cli_json_int(image, "Total")));
	else
		cli_cell(t, "%s", status);
	cli_cell(t, "%.19s", cli_json_str(image, "Digest"));
	cli_cell(t, "%s", cli_bytes(cli_json_int(image, ready ? "Size" : "Total"), size));
	cli_cell(t, "%s", cli_time(cli, cli_json_int(image, "Pulled"), pulled));
	last_use_cell(cli, t, image, ready);
	cli_cell(t, "%s", cli_yes(cli_json_true(image, "Kept")));
}

static const struct cli_list images = {
	.none = "No images",
	CLI_HEADS("Name", "Status", "Digest", "Size", "Pulled", "Last used", "Kept"),
	.cells = image_cells,
};

int
cli_image_list(struct cli *cli, int argc, char **argv)
{
	struct err e = { 0 };
	int r = cli_list_get(cli, &images, "/v1/agent/images", &e);

	(void)argc;
	(void)argv;
	return r < 0 ? cli_fail(cli, &e) : CLI_OK;
}

static json_t *
find_image(json_t *list, const char *name)
{
	json_t *found = NULL, *one;
	size_t i;

	/* A pull comes after the image of the same name that it replaces. */
	json_array_foreach (list, i, one)
		if (strcmp(cli_json_str(one, "Name"), name) == 0)
			found = one;
	return found;
}

static void
say_progress(const struct cli *cli, const json_t *image, int64_t *last)
{
	int64_t bytes = cli_json_int(image, "Bytes"), total = cli_json_int(image, "Total");
	char some[CLI_TIME_SIZE], all[CLI_TIME_SIZE];

	if (strcmp(cli_json_str(image, "Status"), "unpacking") == 0)
		bytes = INT64_MAX;
	if (bytes == *last)
		return;
	*last = bytes;
	if (bytes == INT64_MAX)
		cli_say(cli, "    Unpacking the layers");
	else if (total > 0)
		cli_say(cli, "    Fetched %s of %s", cli_bytes(bytes, some), cli_bytes(total, all));
}

/* Follows a pull to its end. Returns CLI_OK, or CLI_FAILED after printing the error. */
static int
follow(struct cli *cli, const char *name)
{
	struct err e = { 0 };
	int64_t last = 0;

	for (;; cli_sleep_ms(ASK_MS)) {
		cleanup_json json_t *list = NULL;
		const json_t *image;
		const char *status;

		if (cli_api_get(cli, "/v1/agent/images", &list, &e) < 0)
			return cli_fail(cli, &e);
		image = find_image(list, name);
		status = cli_json_str(image, "Status");
		if (!image || strcmp(status, "failed") == 0)
			return cli_fail_text(image
						 ? cli_json_str(image, "Error")
						 : "the pull was ended by a restart of the agent");
		if (strcmp(status, "ready") != 0) {
			say_progress(cli, image, &last);
			continue;
		}
		if (cli->json)
			return cli_json_print(image, &e) < 0 ? cli_fail(cli, &e) : CLI_OK;
		cli_say(cli, "==> %s is here: %lld layers, %s", name,
		    (long long)cli_json_int(image, "Layers"), cli_json_str(image, "Digest"));
		return CLI_OK;
	}
}

int
cli_image_pull(struct cli *cli, int argc, char **argv)
{
	cleanup_json json_t *answer = NULL;
	struct err e = { 0 };
	int r;

	(void)argc;
	r = cli_api_send_new(cli, "PUT", "/v1/agent/images",
	    json_pack("{s:s, s:b}", "Name", argv[0], "Force", options.force), &answer, &e);
	if (r < 0)
		return cli_fail(cli, &e);
	cli_say(cli, "==> Pulling %s", cli_json_str(answer, "Name"));
	return options.detach ? CLI_OK : follow(cli, cli_json_str(answer, "Name"));
}

int
cli_image_remove(struct cli *cli, int argc, char **argv)
{
	struct err e = { 0 };

	for (int i = 0; i < argc; i++) {
		cleanup_free char *target =
		    cli_target(options.force ? "/v1/agent/images?force=true&name=%s"
					     : "/v1/agent/images?name=%s",
			argv[i]);

		if (cli_api_send(cli, "DELETE", target, NULL, NULL, &e) < 0)
			return cli_fail(cli, &e);
		cli_say(cli, "Image %s is removed", argv[i]);
	}
	return CLI_OK;
}
