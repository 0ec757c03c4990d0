// SPDX-License-Identifier: Apache-2.0
/* cli_var_put.c: drover var put. Runs in: cli. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli_print.h"
#include "cli/cli_var.h"
#include "cli/cli_verbs.h"
#include "common/mem.h"

static struct {
	const char *out, *template, *in, *check_index;
	bool force;
} options;

const struct cli_flag cli_var_put_flags[] = {
	{ "check-index", CLI_FLAG_STRING, &options.check_index, "INDEX",
	    "write it only if it has this index (0: only if there is none)" },
	{ "force", CLI_FLAG_BOOL, &options.force, NULL, "write it whatever index it has" },
	{ "in", CLI_FLAG_STRING, &options.in, "json|hcl",
	    "the format of a specification on standard input, or in a file whose name does not say "
	    "it (json)" },
	{ "out", CLI_FLAG_STRING, &options.out, "none|table|json|hcl|go-template",
	    "print the variable; by default nothing on a terminal, else JSON" },
	CLI_VAR_TEMPLATE_FLAG(&options.template),
	{ "ui", CLI_FLAG_REFUSED, NULL, NULL, "drover has no web interface" },
	{ 0 },
};

static int
read_in(enum cli_var_in *ret, struct err *e)
{
	*ret = CLI_VAR_IN_JSON;
	if (!options.in || strcmp(options.in, "json") == 0)
		return 0;
	*ret = CLI_VAR_IN_HCL;
	if (strcmp(options.in, "hcl") == 0)
		return 0;
	return err_say(e, -EINVAL, "-in must be one of: json hcl");
}

static bool
is_spec(const char *word)
{
	return strcmp(word, "-") == 0 || cli_var_is_file(word);
}

/* Reads the words: a specification, or a path and perhaps a specification, then items. */
static int
read_words(struct cli *cli, int argc, char **argv, struct variable *var, struct err *e)
{
	cleanup_free char *path = is_spec(argv[0]) ? NULL : cli_var_path(argv[0]);
	int at = path != NULL, r;
	enum cli_var_in in;

	if (path && argc == 1)
		return err_say(e, -EINVAL,
		    "there is nothing to write: add KEY=VALUE, @FILE, or - for standard input");
	r = read_in(&in, e);
	if (r == 0)
		r = cli_var_check_namespace(cli, e);
	if (r == 0 && is_spec(argv[at]))
		r = cli_var_read_spec(argv[at++], in, var, e);
	if (r == 0)
		r = cli_var_add_words(argc - at, argv + at, var, e);
	cli_var_rename(var, cli->namespace, path);
	if (r == 0 && !var->path)
		r = err_say(e, -EINVAL, "the specification has no Path, and the command line none");
	return r;
}

/* Templates write .key for a key that is a word; for others they need index. */
static void
warn_keys(const struct variable *var)
{
	for (size_t i = 0; i < var->items.n; i++) {
		const unsigned char *key = (const unsigned char *)str(var->items.v[i].key),
				    *c = key;

		while (*c >= 0x80 || isalnum(*c) || *c == '_')
			c++;
		if (*c)
			(void)fprintf(stderr,
			    "drover: warning: templates reach the key \"%s\" only with the "
			    "function index\n",
			    key);
	}
}

static int
write_variable(struct cli *cli, struct variable *var, struct err *e)
{
	cleanup_free char *target = NULL, *query = NULL;
	int64_t index = (int64_t)var->modify_index;
	int r = cli_var_check_index(options.check_index, &index, e);

	if (r < 0)
		return r;
	query = options.force ? NULL : mem_printf("cas=%lld", (long long)index);
	target = cli_var_target(var, query);
	r = cli_var_send(cli, "PUT", target, var, var, e);
	return r == -EEXIST ? cli_var_say_conflict(cli, index, var, e) : r;
}

int
cli_var_put(struct cli *cli, int argc, char **argv)
{
	cleanup_done(variable) struct variable var;
	struct err e = { 0 };
	int r;

	variable_init(&var);
	r = cli_var_check_out(
	    cli, "none table json hcl go-template", options.template, &options.out, &e);
	if (r == 0)
		r = read_words(cli, argc, argv, &var, &e);
	if (r == 0)
		r = write_variable(cli, &var, &e);
	if (r == 0) {
		warn_keys(&var);
		if (strcmp(options.out, "none") == 0)
			cli_say(cli, "The variable \"%s\" is written with index %llu",
			    str(var.path), (unsigned long long)var.modify_index);
		r = cli_var_show(cli, options.out, &var, &e);
	}
	return r < 0 ? cli_fail(cli, &e) : CLI_OK;
}
