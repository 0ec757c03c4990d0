// SPDX-License-Identifier: Apache-2.0
/* cli_complete.c: completes commands and flags, and finds what the incomplete word is. Runs in:
 * cli. */
#include "cli/cli_complete.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli_api.h"
#include "cli/cli_namespace.h"
#include "cli/cli_pick.h"
#include "cli/cli_print.h"
#include "cli/cli_verbs.h"
#include "common/mem.h"

#define TIMEOUT_MS 2000 /* of a request: an operator waits at the prompt */
#define NAME_SIZE  64

/* A line ends at a control character, and a terminal obeys it. */
static bool
is_printable(const char *value)
{
	for (const char *c = value; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			return false;
	return *value != '\0';
}

void
cli_offer(const struct cli_line *line, const char *value, const char *about)
{
	cleanup_free char *text = NULL;

	if (strncmp(value, line->word, strlen(line->word)) != 0 || !is_printable(value))
		return;
	text = mem_printf("%.*s%s%s%s", line->begun, line->whole, value, *about ? "\t" : "", about);
	for (char *c = text + strcspn(text, "\t") + 1; *about && *c; c++)
		if (*c == '\t')
			*c = ' ';
	if (*about)
		cli_clean(strchr(text, '\t') + 1);
	(void)printf("%s\n", text);
}

/* Offers the next word of each command that the words before begin. */
static void
complete_command(const struct cli_line *line, int argc, char **argv)
{
	char next[NAME_SIZE], last[NAME_SIZE] = "";

	for (const struct cli_verb *v = cli_verbs; v->noun; v++) {
		cleanup_free char *name =
		    mem_printf("%s%s%s", v->noun, v->verb ? " " : "", v->verb ?: "");
		const char *at = name;

		if (!cli_verb_begins(v, argc, argv))
			continue;
		for (int i = 0; i < argc; i++) {
			at += strcspn(at, " ");
			at += *at == ' ';
		}
		if (!*at) /* the words name the whole command */
			continue;
		(void)snprintf(next, sizeof next, "%.*s", (int)strcspn(at, " "), at);
		if (strcmp(next, last) != 0)
			cli_offer(line, next, at[strlen(next)] == '\0' ? v->help : "");
		(void)strcpy(last, next);
	}
	for (const struct cli_alias *a = cli_aliases; argc == 0 && a->word; a++) {
		cleanup_free char *about = mem_printf("drover %s %s", a->noun, a->verb);

		cli_offer(line, a->word, about);
	}
}

static const struct cli_flag *
find_flag(const struct cli_verb *v, const char *name, size_t len)
{
	const struct cli_flag *const tables[] = { v->flags, cli_common_flags };

	return cli_flag_find(tables, v->max_args < 0 ? 1 : ELEMENTSOF(tables), name, len);
}

/* Finds the flag of a word that begins with '-'; *ret_value is what follows '=', or NULL. */
static const struct cli_flag *
flag_of(const struct cli_verb *v, const char *word, const char **ret_value)
{
	const char *name = word + 1 + (word[1] == '-'), *equals = strchrnul(name, '=');

	*ret_value = *equals ? equals + 1 : NULL;
	return find_flag(v, name, (size_t)(equals - name));
}

/* Stores the words before the incomplete one as words, or as values of flags. */
static void
read_words(struct cli_line *line, int argc, char **argv)
{
	for (int i = 0;
	     i < argc && line->n_words < CLI_LINE_WORDS && line->n_flags < CLI_LINE_WORDS; i++) {
		const char *value = NULL;
		const struct cli_flag *flag;
		bool command = line->verb->max_args == CLI_COMMAND && line->n_words > 0;

		if (argv[i][0] != '-' || argv[i][1] == '\0' || command) {
			line->words[line->n_words++] = argv[i];
			continue;
		}
		flag = flag_of(line->verb, argv[i], &value);
		line->of_job |= flag && flag->value == &cli_pick_options.job;
		if (!flag || flag->kind == CLI_FLAG_BOOL)
			continue;
		if (!value && i + 1 == argc)
			line->flag = flag;
		if (!value && i + 1 < argc)
			value = argv[++i];
		line->flags[line->n_flags].flag = flag;
		line->flags[line->n_flags++].value = value;
	}
}

/* The line's "-flag=val": the value is completed. */
static void
split_word(struct cli_line *line)
{
	const char *value = NULL;
	const struct cli_flag *flag;

	if (line->word[0] != '-' || line->flag ||
	    (line->verb->max_args == CLI_COMMAND && line->n_words > 0))
		return;
	flag = flag_of(line->verb, line->word, &value);
	if (!flag || !value)
		return;
	line->flag = flag;
	line->begun = (int)(value - line->word);
	line->word = value;
}

/* Copies the name of the word that begins at *at, "[PATH...]|-" as "PATH|-"; advances *at. Returns
 * false at the end. */
static bool
next_name(const char **at, char ret[NAME_SIZE])
{
	size_t n = 0;

	*at += strspn(*at, " ");
	if (**at == '\0')
		return false;
	for (; **at && **at != ' '; (*at)++)
		if (!strchr("[].", **at) || ((*at)[0] == '.' && isalnum((unsigned char)(*at)[1])))
			if (n + 1 < NAME_SIZE)
				ret[n++] = **at;
	ret[n] = '\0';
	return true;
}

/* Writes the name of the i-th word in the usage of a verb. The last one may be repeated. */
static bool
usage_name(const struct cli_verb *v, size_t i, char ret[NAME_SIZE])
{
	const char *at = v->usage, *ignored;
	bool repeated = strstr(v->usage, "...") != NULL, some = false;
	char name[NAME_SIZE];
	size_t n = 0;

	while (next_name(&at, name)) {
		const struct cli_flag *flag;

		if (strcmp(name, "flags") == 0)
			continue;
		if (name[0] == '-' && name[1]) {
			flag = flag_of(v, name, &ignored);
			if (flag && flag->kind != CLI_FLAG_BOOL)
				(void)next_name(&at, name);
			continue;
		}
		(void)strcpy(ret, name);
		some = true;
		if (n++ == i)
			return true;
	}
	return some && repeated;
}

/* Returns whether a name of the usage, such as "JOB|ALLOC", has this one. */
static bool
has_alternative(const char *names, const char *name)
{
	size_t len = strlen(name);

	for (; strncmp(names, name, len) != 0 || (names[len] && names[len] != '|'); names++)
		if (!(names = strchr(names, '|')))
			return false;
	return true;
}

/* As usage_name(), for the words of a line. */
static bool
line_name(const struct cli_line *line, size_t i, char ret[NAME_SIZE])
{
	if (!usage_name(line->verb, i, ret))
		return false;
	if (line->of_job && has_alternative(ret, "ALLOC"))
		(void)strcpy(ret, "JOB");
	return true;
}

const char *
cli_line_value(const struct cli_line *line, const char *name)
{
	char found[NAME_SIZE];

	for (size_t i = 0; i < line->n_flags; i++)
		if (strcmp(line->flags[i].flag->arg ?: "", name) == 0)
			return line->flags[i].value;
	for (size_t i = 0; i < line->n_words && line_name(line, i, found); i++)
		if (has_alternative(found, name))
			return line->words[i];
	return NULL;
}

/* Returns whether a word of the usage stands for itself. */
static bool
is_literal(const char *name)
{
	return islower((unsigned char)name[0]) &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz-") == strlen(name);
}

/* Offers the values of a word by its name: each alternative is literal, as "ask", or names objects,
 * as "JOB". */
static void
complete_values(const struct cli_line *line, const char *names)
{
	char name[NAME_SIZE];
	size_t len;

	for (; *names; names += len + (names[len] == '|')) {
		len = strcspn(names, "|");
		(void)snprintf(name, sizeof name, "%.*s", (int)len, names);
		if (!cli_complete_value(line, name) && is_literal(name))
			cli_offer(line, name, "");
	}
}

static void
offer_flags(const struct cli_line *line, const struct cli_flag *flags)
{
	const char *dashes = strncmp(line->word, "--", 2) == 0 ? "--" : "-";

	for (const struct cli_flag *f = flags; f->name; f++) {
		cleanup_free char *name = mem_printf("%s%s", dashes, f->name);

		if (f->kind != CLI_FLAG_REFUSED)
			cli_offer(line, name, f->help);
	}
}

static void
complete_word(const struct cli_line *line)
{
	bool command = line->verb->max_args == CLI_COMMAND && line->n_words > 0;
	char name[NAME_SIZE];

	if (line->flag) {
		complete_values(line, line->flag->kind == CLI_FLAG_BOOL ? "true|false" : line->flag->arg ?: "");
	} else if (line->word[0] == '-' && !command) {
		offer_flags(line, line->verb->flags);
		if (line->verb->max_args >= 0)
			offer_flags(line, cli_common_flags);
	} else if (line_name(line, line->n_words, name)) {
		complete_values(line, name);
	}
}

/* Takes over the settings that the flags on the line make, so that the right agent is asked. */
static int
apply_flags(const struct cli_line *line, struct err *e)
{
	struct cli *cli = line->cli;

	for (size_t i = 0; i < line->n_flags; i++) {
		const struct cli_flag *f = line->flags[i].flag;

		if (f->value == &cli->address || f->value == &cli->namespace)
			*(const char **)f->value = line->flags[i].value;
	}
	cli->timeout_ms = TIMEOUT_MS;
	cli_namespace_init(cli);
	return cli_api_choose(cli, e);
}

int
cli_complete(struct cli *cli, int argc, char **argv)
{
	struct cli_line line = { .cli = cli, .word = argc > 0 ? argv[argc - 1] : "" };
	struct err ignored;
	int n = argc > 0 ? argc - 1 : 0, words;

	line.whole = line.word;
	line.verb = cli_verb_find(n, argv, &words);
	if (line.verb && line.verb->run == cli_help) {
		complete_command(&line, n - words, argv + words);
	} else if (!line.verb) {
		complete_command(&line, n, argv);
	} else {
		read_words(&line, n - words, argv + words);
		split_word(&line);
		if (apply_flags(&line, &ignored) == 0)
			complete_word(&line);
	}
	return CLI_OK;
}
