// SPDX-License-Identifier: Apache-2.0
/* cli_agent.c: `drover agent` becomes the launcher. Runs in: cli, before the exec. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli_verbs.h"
#include "common/cleanup.h"
#include "common/mem.h"

int
cli_find_program(const char *name, char *path, size_t size, struct err *e)
{
	static const char *const places[] = { "", "/../libexec/drover" };
	char self[PATH_MAX];
	ssize_t n;
	char *slash;

	n = readlink("/proc/self/exe", self, sizeof self - 1);
	if (n < 0)
		return err_set(e, -errno, "find the directory of this command");
	self[n] = '\0';
	slash = strrchr(self, '/');
	if (slash)
		*slash = '\0';
	for (size_t i = 0; i < ELEMENTSOF(places); i++) {
		n = snprintf(path, size, "%s%s/%s", self, places[i], name);
		if (n > 0 && (size_t)n < size && access(path, X_OK) == 0)
			return 0;
	}
	return err_say(
	    e, -ENOENT, "there is no %s in %s or %s/../libexec/drover", name, self, self);
}

static struct {
	bool dev;
	const char *config, *data_dir, *socket;
} options;

const struct cli_flag cli_agent_flags[] = {
	{ "config", CLI_FLAG_STRING, &options.config, "PATH",
	    "a file or directory of the configuration; may be repeated" },
	{ "data-dir", CLI_FLAG_STRING, &options.data_dir, "DIR", "the agent's data directory" },
	{ "dev", CLI_FLAG_BOOL, &options.dev, NULL,
	    "development mode: no configuration needed, raw_exec enabled, SIGINT drains and "
	    "exits" },
	{ "socket", CLI_FLAG_STRING, &options.socket, "PATH", "path of the control socket" },
	{ 0 },
};

/* Checks the flags, then passes the words on to the launcher unchanged. */
static int
check_words(int argc, char **argv, struct err *e)
{
	static const struct cli_flag *const tables[] = { cli_agent_flags };
	cleanup_free char **copy = mem_zeroed((size_t)argc, sizeof *copy);
	int n;

	for (int i = 0; i < argc; i++)
		copy[i] = argv[i];
	n = cli_flags_parse(tables, ELEMENTSOF(tables), argc, copy, e);
	return n > 0 ? err_say(e, -EINVAL,
			   "unexpected argument \"%s\": drover agent takes flags only", copy[0])
		     : n;
}

int
cli_agent(struct cli *cli, int argc, char **argv)
{
	char path[PATH_MAX + 32];
	cleanup_free char **words = NULL;
	struct err e = { 0 };
	int r;

	r = check_words(argc, argv, &e);
	if (r == 0)
		r = cli_find_program("drover-launcher", path, sizeof path, &e);
	if (r < 0)
		return cli_fail(cli, &e);
	words = mem_zeroed((size_t)argc + 2, sizeof *words);
	words[0] = path;
	for (int i = 0; i < argc; i++)
		words[i + 1] = argv[i];
	(void)execv(path, words);
	(void)err_set(&e, -errno, "start %s", path);
	return cli_fail(cli, &e);
}
