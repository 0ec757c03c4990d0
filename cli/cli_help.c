// SPDX-License-Identifier: Apache-2.0
/* cli_help.c: drover help, and the help of each command. Runs in: cli. */
#include <stdio.h>
#include <string.h>

#include "cli/cli_verbs.h"

static void
print_flags(const struct cli_flag *flags)
{
	char left[64];

	for (const struct cli_flag *f = flags; f && f->name; f++) {
		(void)snprintf(left, sizeof left, "-%s %s", f->name, f->arg ?: "");
		(void)printf("  %-24s %s\n", left, f->help);
	}
}

static void
print_aliases(void)
{
	const char *sep = "\nShort forms: ";

	for (const struct cli_alias *a = cli_aliases; a->word; a++, sep = ", ")
		(void)printf("%s%s (%s %s)", sep, a->word, a->noun, a->verb);
	(void)printf(".\n");
}

/* Prints the commands whose names begin with these words. */
static void
print_verbs(int argc, char **argv)
{
	char left[64];

	(void)printf("Usage: drover");
	for (int i = 0; i < argc; i++)
		(void)printf(" %s", argv[i]);
	(void)printf(
	    " %s\n\nCommands:\n", argc ? "[flags] [words]" : "COMMAND [VERB] [flags] [words]");
	for (const struct cli_verb *v = cli_verbs; v->noun; v++) {
		if (!cli_verb_begins(v, argc, argv))
			continue;
		(void)snprintf(left, sizeof left, "%s %s", v->noun, v->verb ?: "");
		(void)printf("  %-22s %s\n", left, v->help);
	}
	if (argc == 0)
		print_aliases();
	(void)printf(
	    "\nEvery command takes -help. An id may be shortened to a unique "
	    "prefix.\nDROVER_ADDR=unix:///PATH is the address of the agent (" CLI_ADDRESS_DEFAULT
	    ").\nDROVER_TOKEN=… is the ACL token, if the agent requires one.\n"
	    "DROVER_NAMESPACE=NAME is the namespace, as with -namespace.\n");
}

void
cli_help_print(const struct cli_verb *v)
{
	const char *space = v->verb ? " " : "";

	(void)printf(
	    "Usage: drover %s%s%s %s\n\n  %s\n", v->noun, space, v->verb ?: "", v->usage, v->help);
	if (v->flags->name) {
		(void)printf("\nFlags:\n");
		print_flags(v->flags);
	}
	if (v->max_args >= 0) {
		(void)printf("\nFlags of every command:\n");
		print_flags(cli_common_flags);
	}
}

/* Returns how many of the words begin the name of a command. */
static int
count_known(int argc, char **argv)
{
	int n = 0;

	for (const struct cli_verb *v = cli_verbs; v->noun; v++)
		while (n < argc && cli_verb_begins(v, n + 1, argv))
			n++;
	return n;
}

bool
cli_is_help(const char *word)
{
	return strcmp(word, "-h") == 0 || strcmp(word, "-help") == 0 ||
	       strcmp(word, "--help") == 0 || strcmp(word, "--h") == 0;
}

int
cli_help_unknown(int argc, char **argv)
{
	int known = count_known(argc, argv);

	if (known == argc || cli_is_help(argv[known])) {
		print_verbs(known, argv);
		return CLI_OK;
	}
	(void)fprintf(stderr, "drover: unknown command \"");
	for (int i = 0; i <= known; i++)
		(void)fprintf(stderr, "%s%s", i ? " " : "", argv[i]);
	(void)fprintf(stderr, "\": see drover help");
	for (int i = 0; i < known; i++)
		(void)fprintf(stderr, " %s", argv[i]);
	(void)fprintf(stderr, "\n");
	return CLI_FAILED;
}

int
cli_help(struct cli *cli, int argc, char **argv)
{
	const struct cli_verb *v;
	int words;

	(void)cli;
	v = cli_verb_find(argc, argv, &words);
	if (!v)
		return cli_help_unknown(argc, argv);
	cli_help_print(v);
	return CLI_OK;
}
