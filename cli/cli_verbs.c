// SPDX-License-Identifier: Apache-2.0
/* cli_verbs.c: the table of all verbs, and how words name one of them. Runs in: cli. */
#include "cli/cli_verbs.h"

#include <string.h>

const struct cli_flag cli_no_flags[] = { { 0 } };

const struct cli_verb cli_verbs[] = {
#define VERB(noun, verb, run, flags, min, max, usage, help)                                        \
	{ noun, verb, run, flags, min, max, usage, help },
#define ALIAS(word, noun, verb)
#include "cli/cli_verbs.def"
	{ 0 },
};

const struct cli_alias cli_aliases[] = {
#define VERB(...)
#define ALIAS(word, noun, verb) { word, noun, verb },
#include "cli/cli_verbs.def"
	{ 0 },
};

/* Returns how many of the words are, one after the other, those of the name ("tag apply"). */
static int
count_same(const char *name, int argc, char **argv)
{
	int n = 0;

	for (; name && *name && n < argc; n++) {
		size_t len = strcspn(name, " ");

		if (strlen(argv[n]) != len || memcmp(name, argv[n], len) != 0)
			break;
		name += len + (name[len] == ' ');
	}
	return n;
}

static int
count_words(const char *name)
{
	int n = name != NULL;

	for (; name && *name; name++)
		n += *name == ' ';
	return n;
}

/* As count_same(), for the noun and the verb. */
static int
count_named(const struct cli_verb *v, int argc, char **argv)
{
	return argc > 0 && strcmp(v->noun, argv[0]) == 0
		   ? 1 + count_same(v->verb, argc - 1, argv + 1)
		   : 0;
}

bool
cli_verb_begins(const struct cli_verb *v, int argc, char **argv)
{
	return count_named(v, argc, argv) == argc;
}

static const struct cli_verb *
find_alias(const char *word)
{
	for (const struct cli_alias *a = cli_aliases; a->word; a++)
		for (const struct cli_verb *v = cli_verbs; v->noun && strcmp(a->word, word) == 0;
		     v++)
			if (strcmp(v->noun, a->noun) == 0 && v->verb &&
			    strcmp(v->verb, a->verb) == 0)
				return v;
	return NULL;
}

const struct cli_verb *
cli_verb_find(int argc, char **argv, int *ret_words)
{
	for (const struct cli_verb *v = cli_verbs; v->noun; v++) {
		*ret_words = 1 + count_words(v->verb);
		if (count_named(v, argc, argv) == *ret_words)
			return v;
	}
	*ret_words = 1;
	return argc > 0 ? find_alias(argv[0]) : NULL;
}
