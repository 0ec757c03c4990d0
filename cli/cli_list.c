// SPDX-License-Identifier: Apache-2.0
/* cli_list.c: gets lists of objects and prints them as tables. Runs in: drover. */
#include "cli/cli_list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli_alloc.h"
#include "cli/cli_namespace.h"

struct cli_list_options cli_list_options;
const struct cli_flag cli_list_flags[] = { CLI_LIST_FLAGS, { 0 } };

void
cli_list_print(const struct cli *cli, const struct cli_list *list, const json_t *objects)
{
	bool shown = cli_namespace_shown(cli, objects);
	struct cli_table *t;
	const json_t *object;
	const char *key;
	size_t i;

	if (list->none && json_array_size(objects) == 0 && json_object_size(objects) == 0) {
		cli_say(cli, "%s", list->none);
		return;
	}
	t = cli_table_new(list->heads, list->n_heads);
	if (shown)
		cli_table_column(t, "Namespace");
	json_array_foreach (objects, i, object) {
		cli_table_row(t);
		list->cells(cli, t, object);
		if (shown)
			cli_cell(t, "%s", cli_json_str(object, "Namespace"));
	}
	json_object_foreach ((json_t *)objects, key, object) {
		cli_table_row(t);
		list->cells(cli, t, object);
	}
	cli_table_print(t);
}

void
cli_map_print(const char *head, const json_t *map)
{
	size_t n;
	cleanup_free const char **names = cli_json_keys(map, &n);

	cli_head("%s", head);
	for (size_t i = 0; i < n; i++) {
		const json_t *value = json_object_get(map, names[i]);
		cleanup_free char *other = json_is_string(value)
					       ? NULL
					       : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);

		cli_field(names[i], "%s", other ? other : json_string_value(value) ?: "");
	}
}

int
cli_list_refuse_flags(struct err *e)
{
	const struct cli_list_options *o = &cli_list_options;

	if (!o->filter && !o->page_token && !o->per_page && !o->quiet)
		return 0;
	return err_say(e, -EINVAL, "-filter, -page-token, -per-page and -quiet are for lists");
}

/* Returns target with the parameters that the flags ask for; the caller frees it. */
static char *
page_target(const char *target)
{
	const struct cli_list_options *o = &cli_list_options;
	const char *sep = strchr(target, '?') ? "&" : "?";
	cleanup_free char *filter = cli_target("filter=%s", o->filter ?: "");
	cleanup_free char *token = cli_target("next_token=%s", o->page_token ?: "");
	struct text all = { 0 };

	text_printf(&all, "%s", target);
	if (o->filter) {
		text_printf(&all, "%s%s", sep, filter);
		sep = "&";
	}
	if (o->page_token) {
		text_printf(&all, "%s%s", sep, token);
		sep = "&";
	}
	if (o->per_page > 0)
		text_printf(&all, "%sper_page=%lld", sep, (long long)o->per_page);
	return all.text;
}

static void
print_ids(const json_t *objects)
{
	const json_t *object;
	size_t i;

	json_array_foreach (objects, i, object)
		cli_line("%s", cli_json_str(object, "ID"));
}

/* Gets the list, and prints it with -json and -quiet. Returns 1 with *ret if it is still to be
 * printed, else 0 or -errno with *e. */
static int
get_page(struct cli *cli, const char *target, json_t **ret, struct err *e)
{
	cleanup_free char *whole = page_target(target);
	int r;

	if (cli_list_options.quiet && cli->json)
		return err_say(e, -EINVAL, "-quiet and -json exclude each other");
	r = cli_api_get(cli, whole, ret, e);
	if (r < 0)
		return r;
	if (cli->json)
		return cli_json_print(*ret, e);
	if (!cli_list_options.quiet)
		return 1;
	print_ids(*ret);
	return 0;
}

static void
say_next(const struct cli *cli)
{
	if (*cli->next_token && !cli_list_options.quiet)
		cli_say(cli, "There is more: add -page-token %s", cli->next_token);
}

int
cli_list_show(struct cli *cli, const char *target, cli_print_fn *print, struct err *e)
{
	cleanup_json json_t *objects = NULL;
	int r = get_page(cli, target, &objects, e);

	if (r > 0)
		print(cli, objects);
	if (r >= 0)
		say_next(cli);
	return r < 0 ? r : 0;
}

int
cli_list_get(struct cli *cli, const struct cli_list *list, const char *target, struct err *e)
{
	cleanup_json json_t *objects = NULL;
	int r = get_page(cli, target, &objects, e);

	if (r > 0)
		cli_list_print(cli, list, objects);
	if (r >= 0)
		say_next(cli);
	return r < 0 ? r : 0;
}

int
cli_show(struct cli *cli, const char *target, cli_print_fn *print, struct err *e)
{
	cleanup_json json_t *object = NULL;
	int r = cli_api_fetch(cli, target, &object, e);

	if (r > 0)
		print(cli, object);
	return r < 0 ? r : 0;
}

int
cli_show_with_allocs(struct cli *cli, const char *target, const char *placed, const char *head,
    cli_print_fn *print, struct err *e)
{
	cleanup_json json_t *allocs = NULL;
	int r = cli_show(cli, target, print, e);

	if (r < 0 || cli->json)
		return r;
	r = cli_api_get(cli, placed, &allocs, e);
	if (r < 0)
		return r;
	cli_head("%s", head);
	cli_print_allocs(cli, allocs);
	return 0;
}
