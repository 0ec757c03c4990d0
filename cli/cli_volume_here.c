// SPDX-License-Identifier: Apache-2.0
/* cli_volume_here.c: shows what a node knows about a volume that is mounted on it. Runs in: cli. */
#include <string.h>

#include "cli/cli_api.h"
#include "cli/cli_print.h"
#include "cli/cli_volume.h"
#include "common/clock.h"
#include "common/duration.h"

/* Appends a number with commas: "1,000". */
static void
add_count(struct text *t, int64_t n)
{
	char digits[24];
	int len = snprintf(digits, sizeof digits, "%lld", (long long)n);

	for (int i = 0; i < len; i++)
		text_printf(t, "%s%c", i > 0 && (len - i) % 3 == 0 ? "," : "", digits[i]);
}

/* Also shows the available bytes if they are fewer than the unused ones: the file system has other
 * users, or reserves space. */
static void
add_bytes(struct text *t, const json_t *bytes)
{
	int64_t used = cli_json_int(bytes, "Used"), available = cli_json_int(bytes, "Available"),
		total = cli_json_int(bytes, "Total");
	char size[CLI_TIME_SIZE], of[CLI_TIME_SIZE], left[CLI_TIME_SIZE];

	text_printf(t, "%s of %s, ", cli_bytes(used, size), cli_bytes(total, of));
	if (used + available < total)
		text_printf(t, "%s available, ", cli_bytes(available, left));
	text_printf(t, "%lld %%", (long long)cli_json_int(bytes, "Percent"));
}

void
cli_volume_print_used(const json_t *here)
{
	const json_t *bytes = cli_json_get(here, "Bytes"), *inodes = cli_json_get(here, "Inodes");
	struct text t = { 0 };

	text_append(&t, "", 0);
	if (json_is_object(bytes))
		add_bytes(&t, bytes);
	if (json_is_object(inodes)) {
		text_printf(&t, "%s", json_is_object(bytes) ? "; " : "");
		add_count(&t, cli_json_int(inodes, "Used"));
		text_printf(&t, " of ");
		add_count(&t, cli_json_int(inodes, "Total"));
		text_printf(&t, " inodes, %lld %%", (long long)cli_json_int(inodes, "Percent"));
	}
	cli_field("Used", "%s", t.text);
	text_done(&t);
}

static void
print_trouble(const struct cli *cli, const json_t *mount)
{
	char since[CLI_TIME_SIZE], next[CLI_TIME_SIZE];
	int64_t wait_ns = cli_json_int(mount, "NextTry") - clock_real_ns();

	if (cli_json_int(mount, "Tries") == 0) {
		if (*cli_json_str(mount, "WaitsFor"))
			cli_say(cli, "Allocation %.*s: %s", cli->id_len,
			    cli_json_str(mount, "AllocID"), cli_json_str(mount, "WaitsFor"));
		return;
	}
	cli_say(cli, "Allocation %.*s: %s; tried %lld times since %s, and again in %s", cli->id_len,
	    cli_json_str(mount, "AllocID"), cli_json_str(mount, "Error"),
	    (long long)cli_json_int(mount, "Tries"),
	    cli_time(cli, cli_json_int(mount, "Since"), since),
	    cli_span(wait_ns > 0 ? wait_ns / NS_PER_S * NS_PER_S + NS_PER_S : 0, next));
}

static void
print_at_controller(const json_t *volume)
{
	const json_t *at = cli_json_get(volume, "AtController");
	cleanup_free char *nodes = cli_join(cli_json_get(at, "PublishedExternalNodeIDs"), ", ");
	const char *said = cli_json_str(at, "ConditionMessage");

	if (!json_is_object(at))
		return;
	cli_head("At the Plugin's Controller");
	cli_field("Published on", "%s", *nodes || *cli_json_str(at, "Error") ? nodes : "no node");
	cli_field("Condition", "%s%s%s", cli_json_str(at, "Condition"), *said ? ": " : "", said);
	cli_field("Last Error", "%s", cli_json_str(at, "Error"));
}

void
cli_volume_print_here(const struct cli *cli, const json_t *volume)
{
	const json_t *here = cli_json_get(volume, "ThisNode"), *mounts, *mount;
	char when[CLI_TIME_SIZE];
	const char *said = cli_json_str(here, "ConditionMessage");
	struct cli_table *t;
	size_t i;

	print_at_controller(volume);
	if (!json_is_object(here))
		return;
	cli_head("On Node %.*s", cli->id_len, cli_json_str(here, "NodeID"));
	cli_volume_print_used(here);
	cli_field("Condition", "%s%s%s", cli_json_str(here, "Condition"), *said ? ": " : "", said);
	cli_field("Reported", "%s", cli_time(cli, cli_json_int(here, "Reported"), when));
	cli_field("Last Error", "%s", cli_json_str(here, "Error"));
	cli_head("Mounts");
	t = CLI_TABLE("Allocation", "?Name", "State", "?Read Only", "Path");
	mounts = cli_json_get(here, "Mounts");
	json_array_foreach (mounts, i, mount) {
		cli_table_row(t);
		cli_cell(t, "%.*s", cli->id_len, cli_json_str(mount, "AllocID"));
		CLI_TEXT_CELLS(t, mount, "Name", "State");
		cli_cell(t, "%s", cli_yes(cli_json_true(mount, "ReadOnly")));
		cli_cell(t, "%s", cli_json_str(mount, "Path"));
	}
	cli_table_print(t);
	json_array_foreach (mounts, i, mount)
		print_trouble(cli, mount);
}
