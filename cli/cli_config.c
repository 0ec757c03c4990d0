// SPDX-License-Identifier: Apache-2.0
/* cli_config.c: drover config validate: checks an agent's configuration as the agent would. Runs
 * in: cli. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/cli_file.h"
#include "cli/cli_print.h"
#include "cli/cli_screen.h"
#include "cli/cli_verbs.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/utf8.h"
#include "config/config.h"

/* The configuration that results from the files which were read so far, and their problems. */
struct checked {
	struct agent_config config;
	struct agent_policy policy;
	struct config_sink sink;
};

static void
print_problem(void *arg, bool is_error, const char *text)
{
	char line[2 * ERR_MSG_SIZE];

	(void)arg;
	for (bool first = true; *text; first = false) {
		size_t n = strcspn(text, "\n");
		cleanup_free char *sentence = NULL;

		(void)utf8_sanitize(line, sizeof line, text, n);
		sentence = mem_printf("drover: %s%s", is_error ? "" : "warning: ", line);
		if (first)
			cli_put(stderr, 4, sentence);
		else
			(void)fprintf(stderr, "%s\n", line);
		text += n + (text[n] == '\n');
	}
}

static int
check_file(struct checked *c, const char *path, struct err *e)
{
	struct cli_file file = { 0 };
	int r = cli_file_open(path, &file, e);

	if (r == 0)
		(void)config_parse(
		    file.text, file.len, file.name, &c->config, &c->policy, &c->sink);
	cli_file_done(&file);
	return r;
}

static int
check_dir(struct checked *c, const char *path, struct err *e)
{
	struct dirent **entries;
	int n = scandir(path, &entries, config_is_name, config_compare_names), r = 0;

	if (n < 0)
		return err_set(e, -errno, "list configuration directory %s", path);
	for (int i = 0; i < n; i++) {
		cleanup_free char *below = mem_printf("%s/%s", path, entries[i]->d_name);

		if (r == 0)
			r = check_file(c, below, e);
		free(entries[i]);
	}
	free(entries);
	return r;
}

int
cli_config_validate(struct cli *cli, int argc, char **argv)
{
	static struct checked c = { .sink = { .problem = print_problem } };
	struct err e = { 0 };
	struct stat st;
	int r = 0;

	config_defaults(&c.config, &c.policy, false);
	for (int i = 0; i < argc && r == 0; i++)
		r = stat(argv[i], &st) == 0 && S_ISDIR(st.st_mode) ? check_dir(&c, argv[i], &e)
								   : check_file(&c, argv[i], &e);
	if (r < 0)
		return cli_fail(cli, &e);
	(void)config_check(&c.config, &c.policy, &c.sink);
	if (c.sink.n_errors > 0) {
		(void)err_say(&e, -EINVAL, "the configuration has %u error%s", c.sink.n_errors,
		    c.sink.n_errors == 1 ? "" : "s");
		return cli_fail(cli, &e);
	}
	cli_say(cli, "The configuration is valid (%u warning%s)", c.sink.n_problems,
	    c.sink.n_problems == 1 ? "" : "s");
	return CLI_OK;
}
