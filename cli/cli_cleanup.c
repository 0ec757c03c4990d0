// SPDX-License-Identifier: Apache-2.0
/*
 * cli_cleanup.c: drover cleanup: removes what agents that do not run any more have left on the
 * machine. It needs no agent. Runs in: cli, as root.
 */
#include "cli/cli_cleanup.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli_list.h"
#include "cli/cli_verbs.h"

static struct cleanup cleanup;

const struct cli_flag cli_cleanup_flags[] = {
	{ "all", CLI_FLAG_BOOL, &cleanup.all, NULL,
	    "also of installed agents that are stopped: mounts and runtime directories" },
	{ "data-dir", CLI_FLAG_STRINGS, &cleanup.data_dirs, "DIR",
	    "also of the agent with this data directory; may be given several times" },
	{ "dry-run", CLI_FLAG_BOOL, &cleanup.dry_run, NULL, "only show what would be removed" },
	{ "kill", CLI_FLAG_BOOL, &cleanup.kills, NULL, "kill tasks whose agent does not run" },
	{ "users", CLI_FLAG_BOOL, &cleanup.users, NULL,
	    "also remove the users of installed agents" },
	{ 0 },
};

#define LOGS_GROUP "drover-logs"

static const char *const users[] = {
#define AGENT_USER(id, name) (name),
#include "proto/agent_users.def"
#undef AGENT_USER
};

void
cleanup_say(
    struct cleanup *c, const char *kind, const char *name, const char *result, const char *fmt, ...)
{
	char detail[ERR_MSG_SIZE];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(detail, sizeof detail, fmt, ap);
	va_end(ap);
	(void)json_array_append_new(c->results, json_pack("{s:s s:s s:s s:s}", "Kind", kind, "Name",
						    name, "Result", result, "Detail", detail));
}

void
cleanup_did(struct cleanup *c, const char *kind, const char *name, int r, const struct err *e)
{
	c->failed |= r < 0;
	if (r < 0)
		cleanup_say(c, kind, name, "failed", "%s", e->msg);
	else
		cleanup_say(c, kind, name, c->dry_run ? "would be removed" : "removed", "%s", "");
}

static int
run_on(const char *program, const char *name, struct err *e)
{
	char *const argv[] = { (char *)(uintptr_t)program, (char *)(uintptr_t)name, NULL };
	char *const env[] = { (char *)(uintptr_t) "PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL };
	int status, r;
	pid_t pid;

	r = posix_spawnp(&pid, argv[0], NULL, NULL, argv, env);
	if (r != 0)
		return err_set(e, -r, "run %s", program);
	if (waitpid(pid, &status, 0) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return err_say(e, -EIO, "%s %s failed", program, name);
	return 0;
}

static void
remove_users(struct cleanup *c)
{
	for (size_t i = 0; i < ELEMENTSOF(users); i++) {
		struct err e = { 0 };

		if (!getpwnam(users[i]))
			continue;
		if (c->runs)
			cleanup_say(c, "user", users[i], "kept", "agents or tasks run");
		else
			cleanup_did(c, "user", users[i],
			    c->dry_run ? 0 : run_on("userdel", users[i], &e), &e);
	}
}

/* The group of programs that ship logs, which has no user. */
static void
remove_group(struct cleanup *c)
{
	struct err e = { 0 };

	if (!getgrnam(LOGS_GROUP))
		return;
	if (c->runs)
		cleanup_say(c, "group", LOGS_GROUP, "kept", "agents or tasks run");
	else
		cleanup_did(c, "group", LOGS_GROUP,
		    c->dry_run ? 0 : run_on("groupdel", LOGS_GROUP, &e), &e);
}

static void
put_cells(const struct cli *cli, struct cli_table *t, const json_t *result)
{
	(void)cli;
	CLI_TEXT_CELLS(t, result, "Kind", "Name", "Result", "Detail");
}

static const struct cli_list list = {
	.none = "nothing to remove",
	CLI_HEADS("Kind", "Name", "Result", "Detail"),
	.cells = put_cells,
};

int
cli_cleanup(struct cli *cli, int argc, char **argv)
{
	cleanup_json json_t *results = json_array();
	struct cleanup *c = &cleanup;
	struct err e = { 0 };
	int r = 0;

	(void)argc;
	(void)argv;
	c->cli = cli;
	c->results = results;
	if (geteuid() != 0)
		r = err_say(&e, -EPERM, "cleanup must run as root");
	if (r == 0)
		r = cleanup_groups_find(c, &e);
	if (r == 0) {
		cleanup_groups_remove(c); /* first the tasks, then their directories */
		r = cleanup_data_dirs(c, &e);
	}
	if (r < 0)
		return cli_fail(cli, &e);
	if (c->all)
		cleanup_runtime_dirs(c);
	if (c->users) {
		remove_users(c);
		remove_group(c);
	}
	cleanup_groups_done(c);
	if (cli->json)
		r = cli_json_print(results, &e);
	else
		cli_list_print(cli, &list, results);
	return r < 0 ? cli_fail(cli, &e) : c->failed ? CLI_FAILED : CLI_OK;
}
