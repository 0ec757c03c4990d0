// SPDX-License-Identifier: Apache-2.0
/* cli_flags.c: the flags of a verb, written as Nomad's are: -name, --name, -name=value, -name
 * value. Runs in: cli. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "common/duration.h"
#include "model/engine/field.h"

const struct cli_flag *
cli_flag_find(const struct cli_flag *const *tables, size_t n, const char *name, size_t len)
{
	for (size_t i = 0; i < n; i++)
		for (const struct cli_flag *f = tables[i]; f && f->name; f++)
			if (strlen(f->name) == len && memcmp(f->name, name, len) == 0)
				return f;
	return NULL;
}

static int
set_bool(const struct cli_flag *f, const char *value, struct err *e)
{
	bool on = !value || strcmp(value, "true") == 0 || strcmp(value, "1") == 0;

	if (!on && strcmp(value, "false") != 0 && strcmp(value, "0") != 0)
		return err_say(e, -EINVAL, "-%s must be true or false, not \"%s\"", f->name, value);
	*(bool *)f->value = on;
	return 0;
}

int
cli_number(const char *what, const char *word, int64_t *ret, struct err *e)
{
	long long number;
	char *end;

	errno = 0;
	number = strtoll(word, &end, 10);
	if (errno || end == word || *end || number < 0)
		return err_say(
		    e, -EINVAL, "%s must be a number of 0 or more, not \"%s\"", what, word);
	*ret = number;
	return 0;
}

static int
set_flag(const struct cli_flag *f, char *value, struct err *e)
{
	char what[64];
	struct err why;
	int64_t ns;

	switch (f->kind) {
	case CLI_FLAG_STRINGS:
		strings_add(f->value, value);
		return 0;
	case CLI_FLAG_SECRETS:
		strings_add(f->value, value);
		memset(value, 'x', strlen(value)); /* as other users see it in /proc */
		return 0;
	case CLI_FLAG_STRING:
		*(const char **)f->value = value;
		return 0;
	case CLI_FLAG_NUMBER:
		(void)snprintf(what, sizeof what, "-%s", f->name);
		return cli_number(what, value, f->value, e);
	case CLI_FLAG_DURATION:
		if (duration_parse(value, &ns, &why) < 0 || ns < 0)
			return err_say(e, -EINVAL,
			    "-%s must be a time like 30s or 1h5m, not \"%s\"", f->name, value);
		*(uint64_t *)f->value = (uint64_t)(ns / NS_PER_MS);
		return 0;
	default:
		return set_bool(f, value, e);
	}
}

/* Sets several flags of one letter that were written as one: -it. Returns whether it did. */
static bool
set_letters(const struct cli_flag *const *tables, size_t n, const char *name)
{
	for (const char *at = name; *at; at++) {
		const struct cli_flag *f = cli_flag_find(tables, n, at, 1);

		if (!f || f->kind != CLI_FLAG_BOOL)
			return false;
	}
	for (; *name; name++)
		*(bool *)cli_flag_find(tables, n, name, 1)->value = true;
	return true;
}

static int
refuse_flag(const char *name, int len, struct err *e)
{
	return err_say(e, -EINVAL, "unknown flag -%.*s (add -help to see the flags)", len, name);
}

static int
parse_words(const struct cli_flag *const *tables, size_t n, bool command, int argc, char **argv,
    struct err *e)
{
	const struct cli_flag *f;
	char *equals, *value;
	const char *name;
	int n_words = 0, r;

	for (int i = 0; i < argc; i++) {
		if (strcmp(argv[i], "--") == 0 || (command && n_words > 0)) {
			i += strcmp(argv[i], "--") == 0;
			while (i < argc)
				argv[n_words++] = argv[i++];
			break;
		}
		if (argv[i][0] != '-' || argv[i][1] == '\0') {
			argv[n_words++] = argv[i];
			continue;
		}
		name = argv[i] + 1 + (argv[i][1] == '-');
		equals = strchrnul(name, '=');
		f = cli_flag_find(tables, n, name, (size_t)(equals - name));
		if (!f && argv[i][1] != '-' && set_letters(tables, n, name))
			continue;
		if (!f)
			return refuse_flag(name, (int)(equals - name), e);
		if (f->kind == CLI_FLAG_REFUSED)
			return err_say(e, -EINVAL, "-%s is not supported: %s", f->name, f->help);
		value = *equals ? equals + 1 : NULL;
		if (!value && f->kind != CLI_FLAG_BOOL) {
			if (i + 1 >= argc)
				return err_say(e, -EINVAL, "-%s needs a value: %s", f->name,
				    f->arg ?: "a value");
			value = argv[++i];
		}
		r = set_flag(f, value, e);
		if (r < 0)
			return r;
	}
	return n_words;
}

int
cli_flags_parse(
    const struct cli_flag *const *tables, size_t n, int argc, char **argv, struct err *e)
{
	return parse_words(tables, n, false, argc, argv, e);
}

int
cli_flags_parse_command(
    const struct cli_flag *const *tables, size_t n, int argc, char **argv, struct err *e)
{
	return parse_words(tables, n, true, argc, argv, e);
}
