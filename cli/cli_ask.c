// SPDX-License-Identifier: Apache-2.0
/* cli_ask.c: questions to the operator, and the sentence when something went wrong. Runs in: cli.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/cli_print.h"
#include "common/cleanup.h"
#include "common/mem.h"

/* The message may contain names from a job or from the agent, so control characters are replaced.
 */
static void
print_error(const struct err *e)
{
	struct err clean = *e;

	cli_clean_lines(clean.msg);
	(void)fprintf(stderr, "drover: %s\n", clean.msg);
}

int
cli_fail(struct cli *cli, const struct err *e)
{
	(void)fflush(stdout);
	/* If the agent refused the request, prints its full text; other errors fit in a struct err.
	 */
	if (cli->refusal && (e->code == -ENOENT || e->code == -EREMOTEIO) &&
	    strncmp(e->msg, cli->refusal, sizeof e->msg - 1) == 0)
		(void)fprintf(stderr, "%s\n", cli->refusal);
	else
		print_error(e);
	return CLI_FAILED;
}

int
cli_ask_text(const char *question, const char *choices, char **ret)
{
	cleanup_free char *line = NULL;
	size_t size = 0;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return -ENOTTY;
	(void)printf("%s %s ", question, choices);
	(void)fflush(stdout);
	if (getline(&line, &size, stdin) < 0)
		return -ENODATA;
	line[strcspn(line, "\n")] = '\0';
	*ret = steal_ptr(&line);
	return 0;
}

int
cli_ask(const char *question)
{
	cleanup_free char *answer = NULL;
	int r = cli_ask_text(question, "[y/N]", &answer);

	if (r < 0)
		return r == -ENODATA ? 0 : r;
	return strcasecmp(answer, "y") == 0 || strcasecmp(answer, "yes") == 0;
}

int
cli_confirm_prefix(const char *kind, const char *wanted, const char *found, bool yes, struct err *e)
{
	cleanup_free char *question = NULL;
	int r;

	if (yes || strcmp(wanted, found) == 0)
		return 0;
	question = mem_printf("\"%s\" matches %s \"%s\". Continue?", wanted, kind, found);
	cli_clean(question);
	r = cli_ask(question);
	if (r < 0)
		return err_say(e, -EINVAL,
		    "\"%s\" is a prefix of %s \"%s\": give the full name, or add -yes", wanted,
		    kind, found);
	return r ? 0 : err_say(e, -ECANCELED, "cancelled: nothing was changed");
}
