// SPDX-License-Identifier: Apache-2.0
/* cli_id.c: finds the full id for a prefix or a name. Runs in: cli. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli_api.h"
#include "cli/cli_list.h"
#include "cli/cli_namespace.h"
#include "cli/cli_print.h"
#include "common/id.h"
#include "common/mem.h"

#define CANDIDATES_SHOWN 8

const struct cli_kind cli_kind_alloc = {
	.name = "allocation",
	.list = "/v1/allocations?prefix=%s",
	.all = "/v1/allocations",
	.named = "Name",
	.uuid = true,
};
const struct cli_kind cli_kind_eval = {
	.name = "evaluation", .list = "/v1/evaluations?prefix=%s", .uuid = true
};
const struct cli_kind cli_kind_job = { .name = "job", .list = "/v1/jobs?prefix=%s" };
const struct cli_kind cli_kind_node = {
	.name = "node",
	.list = "/v1/nodes?prefix=%s",
	.all = "/v1/nodes",
	.named = "Name",
	.uuid = true,
};
const struct cli_kind cli_kind_plugin = { .name = "plugin",
	.list = "/v1/plugins?type=csi&prefix=%s" };
const struct cli_kind cli_kind_volume = { .name = "volume",
	.list = "/v1/volumes?type=csi&prefix=%s" };

/* Finds the object whose id starts with wanted; an exact match wins, in the namespace "default"
 * above all. Returns the number of matches, of exact ones if there are any. */
static size_t
match_prefix(const json_t *list, const char *wanted, const json_t **ret)
{
	const json_t *item, *exact = NULL, *longer = NULL;
	size_t i, n_exact = 0, n = 0, len = strlen(wanted);

	json_array_foreach (list, i, item) {
		const char *id = cli_json_str(item, "ID");

		if (strcmp(id, wanted) == 0) {
			bool by_default = strcmp(cli_json_str(item, "Namespace"), "default") == 0;

			n_exact = by_default ? 1 : n_exact + 1;
			exact = item;
			if (by_default)
				break;
		} else if (strncmp(id, wanted, len) == 0) {
			longer = item;
			n++;
		}
	}
	*ret = exact ? exact : longer;
	return exact ? n_exact : n;
}

/* Finds the newest object with exactly this name; one that is wanted wins over one that is stopped.
 * Over time many allocations have the name job.group[0]. */
static const json_t *
match_name(const json_t *list, const char *field, const char *wanted)
{
	const json_t *item, *best = NULL;
	bool runs, best_runs = false;
	size_t i;

	json_array_foreach (list, i, item) {
		if (strcmp(cli_json_str(item, field), wanted) != 0)
			continue;
		runs = strcmp(cli_json_str(item, "DesiredStatus"), "run") == 0;
		if (best && (runs < best_runs ||
				(runs == best_runs && cli_json_int(item, "CreateIndex") <=
							  cli_json_int(best, "CreateIndex"))))
			continue;
		best = item;
		best_runs = runs;
	}
	return best;
}

static int
say_candidates(const struct cli_kind *kind, const json_t *list, const char *wanted, struct err *e)
{
	char names[ERR_MSG_SIZE] = "";
	const json_t *item;
	size_t i, n = 0, len = 0;

	json_array_foreach (list, i, item) {
		const char *id = cli_json_str(item, "ID");

		if (strncmp(id, wanted, strlen(wanted)) != 0)
			continue;
		if (n++ < CANDIDATES_SHOWN && len < sizeof names - 1)
			len += (size_t)snprintf(names + len, sizeof names - len, "\n  %s %s", id,
			    kind->named ? cli_json_str(item, kind->named)
					: cli_json_str(item, "Namespace"));
	}
	cli_clean_lines(names);
	return err_say(e, -ENOTUNIQ, "\"%s\" is the prefix of %zu %ss:%s%s", wanted, n, kind->name,
	    names, n > CANDIDATES_SHOWN ? "\n  …" : "");
}

/* UUIDs are listed by whole bytes: an odd digit is left to match_prefix(). */
static int
list_prefix(
    struct cli *cli, const struct cli_kind *kind, const char *wanted, json_t **ret, struct err *e)
{
	cleanup_free char *prefix = mem_strdup(wanted);
	cleanup_free char *target = NULL;
	size_t len = strlen(wanted);

	if (kind->uuid && len % 2)
		prefix[len - 1] = '\0';
	target = cli_target(kind->list, prefix);
	return cli_api_get(cli, target, ret, e);
}

int
cli_id_search(
    struct cli *cli, const struct cli_kind *kind, const char *wanted, char **ret_id, struct err *e)
{
	cleanup_json json_t *list = NULL, *all = NULL;
	const json_t *found = NULL;
	size_t n;
	int r;

	if (strlen(wanted) < (kind->uuid ? 2 : 1))
		return err_say(
		    e, -EINVAL, "\"%s\" is too short: give at least 2 characters of an id", wanted);
	/* A word that cannot be part of a UUID is a name and is not looked up as an id. */
	if (!kind->uuid || strspn(wanted, "0123456789abcdef-") == strlen(wanted)) {
		r = list_prefix(cli, kind, wanted, &list, e);
		if (r < 0)
			return r;
	}
	n = match_prefix(list, wanted, &found);
	if (n > 1)
		return say_candidates(kind, list, wanted, e);
	if (n == 0 && kind->named) {
		r = cli_api_get(cli, kind->all, &all, e);
		if (r < 0)
			return r;
		found = match_name(all, kind->named, wanted);
	}
	if (!found)
		return err_say(e, -ENOENT, "no %s \"%s\" exists", kind->name, wanted);
	if (!kind->uuid && strlen(wanted) < 2 && strcmp(cli_json_str(found, "ID"), wanted) != 0)
		return err_say(
		    e, -EINVAL, "\"%s\" is too short: give at least 2 characters of an id", wanted);
	cli_namespace_use(cli, found);
	*ret_id = mem_strdup(cli_json_str(found, "ID"));
	return 0;
}

int
cli_id_resolve(
    struct cli *cli, const struct cli_kind *kind, const char *wanted, char **ret_id, struct err *e)
{
	struct id id;

	if (!kind->uuid || !id_from_uuid(wanted, &id))
		return cli_id_search(cli, kind, wanted, ret_id, e);
	*ret_id = mem_strdup(wanted);
	return 0;
}

int
cli_id_self(struct cli *cli, char **ret_id, struct err *e)
{
	cleanup_json json_t *self = NULL;
	const char *id;
	int r;

	r = cli_api_get(cli, "/v1/agent/self", &self, e);
	if (r < 0)
		return r;
	id = cli_json_str(self, "stats/client/node_id");
	if (*id == '\0')
		return err_say(e, -ENOENT, "the agent does not report its node: name the node");
	*ret_id = mem_strdup(id);
	return 0;
}

int
cli_with_id(struct cli *cli, const struct cli_kind *kind, const char *wanted, cli_id_fn *fn)
{
	cleanup_free char *id = NULL;
	struct err e = { 0 };
	int r = cli_id_resolve(cli, kind, wanted, &id, &e);

	if (r == 0)
		r = fn(cli, id, &e);
	return r < 0 ? cli_fail(cli, &e) : r;
}

int
cli_list_or_show(struct cli *cli, const struct cli_kind *kind, int argc, char **argv,
    cli_list_fn *list, cli_id_fn *show)
{
	struct err e = { 0 };
	int r;

	if (argc > 0 && cli_list_refuse_flags(&e) == 0)
		return cli_with_id(cli, kind, argv[0], show);
	r = argc > 0 ? e.code : list(cli, &e);
	return r < 0 ? cli_fail(cli, &e) : CLI_OK;
}
