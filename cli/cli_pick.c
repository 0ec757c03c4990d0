// SPDX-License-Identifier: Apache-2.0
/* cli_pick.c: finds an allocation of a job, for commands that need one of several. Runs in: cli. */
#include "cli/cli_pick.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli_api.h"
#include "common/mem.h"

struct cli_pick_options cli_pick_options;

static bool
is_running(const json_t *alloc)
{
	return strcmp(cli_json_str(alloc, "ClientStatus"), "running") == 0;
}

/* Returns whether a is preferred: the one that runs, or else the newer one. */
static bool
is_better(const json_t *a, const json_t *b)
{
	if (is_running(a) != is_running(b))
		return is_running(a);
	return cli_json_int(a, "CreateIndex") > cli_json_int(b, "CreateIndex");
}

int
cli_pick_of_job(
    struct cli *cli, const char *job, const char *group, bool ended, char **ret, struct err *e)
{
	cleanup_free char *id = NULL, *target = NULL;
	cleanup_json json_t *list = NULL;
	const json_t *alloc, *best = NULL;
	size_t i;
	int r = cli_id_resolve(cli, &cli_kind_job, job, &id, e);

	if (r < 0)
		return r;
	target = cli_target("/v1/job/%s/allocations", id);
	r = cli_api_get(cli, target, &list, e);
	json_array_foreach (list, i, alloc) {
		if ((!ended && !is_running(alloc)) ||
		    (group && strcmp(cli_json_str(alloc, "TaskGroup"), group) != 0))
			continue;
		if (!best || is_better(alloc, best))
			best = alloc;
	}
	if (r < 0)
		return r;
	if (!best)
		return err_say(e, -ENOENT,
		    ended ? "%s%s%s has no allocation" : "no allocation of %s%s%s is running", id,
		    group ? ", group " : "", group ?: "");
	*ret = mem_strdup(cli_json_str(best, "ID"));
	return 0;
}

int
cli_pick_alloc(struct cli *cli, const char *word, char **ret, struct err *e)
{
	if (cli_pick_options.job)
		return cli_pick_of_job(cli, word, cli_pick_options.group, true, ret, e);
	if (cli_pick_options.group)
		return err_say(e, -EINVAL, "-group needs -job");
	return cli_id_resolve(cli, &cli_kind_alloc, word, ret, e);
}
