// SPDX-License-Identifier: Apache-2.0
/* cli_help.c: drover help, and the help of each command. Runs in: cli. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli_print.h"
#include "cli/cli_screen.h"
#include "cli/cli_verbs.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "model/engine/field.h"
#include "model/engine/text.h"

#define VERB_WIDTH 29 /* that of the longest command and a blank */

static void print_help(int width, const char *help, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Prints what the help is about, and the help beside it. */
static void
print_help(int width, const char *help, const char *fmt, ...)
{
	cleanup_free char *left = NULL, *line = NULL;
	va_list ap;

	va_start(ap, fmt);
	left = mem_vprintf(fmt, ap);
	va_end(ap);
	line = mem_printf("  %-*s %s", width, left, help);
	cli_put(stdout, (size_t)width + 3, line);
}

static void
print_flags(const char *head, const struct cli_flag *flags)
{
	cli_head("%s", head);
	for (const struct cli_flag *f = flags; f && f->name; f++)
		if (f->kind != CLI_FLAG_REFUSED)
			print_help(24, f->help, "-%s %s", f->name, f->arg ?: "");
}

static void
print_aliases(void)
{
	struct text line = { 0 };
	const char *sep = "Short forms: ";

	for (const struct cli_alias *a = cli_aliases; a->word; a++, sep = ", ")
		text_printf(&line, "%s%s (%s %s)", sep, a->word, a->noun, a->verb);
	(void)putchar('\n');
	cli_line("%s.", line.text);
	text_done(&line);
}

/* Appends the words, each after a blank. */
static void
append_words(struct text *t, int argc, char **argv)
{
	for (int i = 0; i < argc; i++)
		text_printf(t, " %s", argv[i]);
}

/* Prints the commands whose names begin with these words. */
static void
print_verbs(int argc, char **argv)
{
	struct text usage = { 0 };

	append_words(&usage, argc, argv);
	cli_line("Usage: drover%s %s", str(usage.text),
	    argc ? "[flags] [words]" : "COMMAND [VERB] [flags] [words]");
	text_done(&usage);
	cli_head("Commands:");
	for (const struct cli_verb *v = cli_verbs; v->noun; v++)
		if (cli_verb_begins(v, argc, argv))
			print_help(VERB_WIDTH, v->help, "%s %s", v->noun, v->verb ?: "");
	if (argc == 0)
		print_aliases();
	(void)putchar('\n');
	cli_put(stdout, 0,
	    "Every command takes -help. An id may be shortened to a unique prefix.\n"
	    "DROVER_ADDR=unix:///PATH is the address of the agent (" CLI_ADDRESS_DEFAULT "),\n"
	    "over TCP https://HOST:PORT, with DROVER_CACERT, DROVER_CLIENT_CERT, "
	    "DROVER_CLIENT_KEY.\n"
	    "DROVER_TOKEN=… is the ACL token, if the agent requires one.\n"
	    "DROVER_NAMESPACE=NAME is the namespace, as with -namespace.");
}

void
cli_help_print(const struct cli_verb *v)
{
	const char *space = v->verb ? " " : "";

	cli_line("Usage: drover %s%s%s %s", v->noun, space, v->verb ?: "", v->usage);
	(void)putchar('\n');
	cli_line("  %s", v->help);
	if (v->flags->name)
		print_flags("Flags:", v->flags);
	if (v->max_args >= 0)
		print_flags("Flags of every command:", cli_common_flags);
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
cli_help_unknown(struct cli *cli, int argc, char **argv)
{
	struct text unknown = { 0 }, nouns = { 0 };
	int known = count_known(argc, argv);
	struct err e = { 0 };

	if (known == argc || cli_is_help(argv[known])) {
		print_verbs(known, argv);
		return CLI_OK;
	}
	append_words(&unknown, known + 1, argv);
	append_words(&nouns, known, argv);
	(void)err_say(&e, -EINVAL, "unknown command \"%s\": see drover help%s", unknown.text + 1,
	    str(nouns.text));
	text_done(&unknown);
	text_done(&nouns);
	return cli_fail(cli, &e);
}

int
cli_help(struct cli *cli, int argc, char **argv)
{
	const struct cli_verb *v;
	int words;

	v = cli_verb_find(argc, argv, &words);
	if (!v)
		return cli_help_unknown(cli, argc, argv);
	cli_help_print(v);
	return CLI_OK;
}
