// SPDX-License-Identifier: Apache-2.0
/* cli_main.c: the command `drover`: finds the verb, prints help, runs it. Runs in: cli, as the
 * operator. */
#include <errno.h>
#include <jansson.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli_api.h"
#include "cli/cli_namespace.h"
#include "cli/cli_verbs.h"
#include "common/cleanup.h"
#include "common/mem.h"

static struct cli cli = { .timeout_ms = CLI_TIMEOUT_MS, .id_len = 8 };

static const struct cli_flag common_flags[] = {
	{ "address", CLI_FLAG_STRING, &cli.address, "unix:///PATH", "the agent's control socket" },
	{ "json", CLI_FLAG_BOOL, &cli.json, NULL, "print the API's answer as JSON" },
	{ "namespace", CLI_FLAG_STRING, &cli.namespace, "NAME",
	    "the namespace; * or none: all, and \"default\" for a new job" },
	{ "timeout", CLI_FLAG_DURATION, &cli.timeout_ms, "TIME", "timeout of one request (60s)" },
	{ "verbose", CLI_FLAG_BOOL, &cli.verbose, NULL, "show full ids and exact times" },
	{ 0 },
};

const struct cli_flag cli_no_flags[] = { { 0 } };

static const struct cli_verb verbs[] = {
#define VERB(noun, verb, run, flags, min, max, usage, help)                                        \
	{ noun, verb, run, flags, min, max, usage, help },
#include "cli/cli_verbs.def"
};

static void
print_flags(const struct cli_flag *flags)
{
	char left[64];

	for (const struct cli_flag *f = flags; f && f->name; f++) {
		if (f->kind == CLI_FLAG_REFUSED)
			continue;
		(void)snprintf(left, sizeof left, "-%s %s", f->name, f->arg ?: "");
		(void)printf("  %-24s %s\n", left, f->help);
	}
}

static bool
has_noun(const struct cli_verb *v, const char *noun)
{
	return !noun || strcmp(v->noun, noun) == 0;
}

/* Prints all commands, or those of one noun. */
static void
print_verbs(const char *noun)
{
	char left[64];

	(void)printf(
	    "Usage: drover %s [flags] [words]\n\nCommands:\n", noun ? noun : "COMMAND [VERB]");
	for (size_t i = 0; i < ELEMENTSOF(verbs); i++) {
		if (!has_noun(&verbs[i], noun))
			continue;
		(void)snprintf(left, sizeof left, "%s %s", verbs[i].noun, verbs[i].verb ?: "");
		(void)printf("  %-18s %s\n", left, verbs[i].help);
	}
	(void)printf(
	    "\nEvery command takes -help. An id may be shortened to a unique "
	    "prefix.\nDROVER_ADDR=unix:///PATH is the address of the agent (" CLI_ADDRESS_DEFAULT
	    ").\nDROVER_TOKEN=… is the ACL token, if the agent requires one.\n"
	    "DROVER_NAMESPACE=NAME is the namespace, as with -namespace.\n");
}

static void
print_verb_help(const struct cli_verb *v)
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
		print_flags(common_flags);
	}
}

/* Finds the verb that the words name, and how many words that took. NULL if there is none. */
static const struct cli_verb *
find_verb(int argc, char **argv, int *ret_words)
{
	for (size_t i = 0; argc > 0 && i < ELEMENTSOF(verbs); i++) {
		const struct cli_verb *v = &verbs[i];

		if (strcmp(v->noun, argv[0]) != 0)
			continue;
		if (v->verb && (argc < 2 || strcmp(v->verb, argv[1]) != 0))
			continue;
		*ret_words = v->verb ? 2 : 1;
		return v;
	}
	return NULL;
}

static bool
is_noun(const char *word)
{
	for (size_t i = 0; i < ELEMENTSOF(verbs); i++)
		if (strcmp(verbs[i].noun, word) == 0)
			return true;
	return false;
}

static bool
is_help(const char *word)
{
	return strcmp(word, "-h") == 0 || strcmp(word, "-help") == 0 ||
	       strcmp(word, "--help") == 0 || strcmp(word, "--h") == 0;
}

/* For an unknown command: prints the help of its noun if the noun exists, else one sentence. */
static int
refuse_words(int argc, char **argv)
{
	if (argc == 0 || is_help(argv[0])) {
		print_verbs(NULL);
		return CLI_OK;
	}
	if (!is_noun(argv[0])) {
		(void)fprintf(stderr, "drover: unknown command \"%s\": see drover help\n", argv[0]);
		return CLI_FAILED;
	}
	if (argc > 1 && !is_help(argv[1])) {
		(void)fprintf(stderr, "drover: unknown command \"%s %s\": see drover help %s\n",
		    argv[0], argv[1], argv[0]);
		return CLI_FAILED;
	}
	print_verbs(argv[0]);
	return CLI_OK;
}

int
cli_help(struct cli *c, int argc, char **argv)
{
	const struct cli_verb *v;
	int words;

	(void)c;
	v = find_verb(argc, argv, &words);
	if (!v)
		return refuse_words(argc, argv);
	print_verb_help(v);
	return CLI_OK;
}

int
cli_version(struct cli *c, int argc, char **argv)
{
	cleanup_json json_t *answer = json_pack("{s:s}", "Version", DROVER_VERSION);
	struct err e = { 0 };
	int r;

	if (!c->json) {
		(void)printf("drover %s\n", DROVER_VERSION);
		return CLI_OK;
	}
	r = cli_json_print(answer, &e);
	return r < 0 ? cli_fail(c, &e) : CLI_OK;
}

/* Uses DROVER_ADDR, or NOMAD_ADDR if that is a unix socket, so that scripts written for Nomad keep
 * working. */
static int
choose_socket(struct err *e)
{
	const char *nomad = getenv("NOMAD_ADDR");

	if (!cli.address)
		cli.address = getenv("DROVER_ADDR");
	if ((!cli.address || !*cli.address) && nomad && strncmp(nomad, "unix://", 7) == 0)
		cli.address = nomad;
	if (!cli.address || !*cli.address)
		cli.address = CLI_ADDRESS_DEFAULT;
	if (strncmp(cli.address, "unix://", 7) != 0 || cli.address[7] == '\0')
		return err_say(e, -EINVAL,
		    "the address \"%s\" is not of the form unix:///path/of/the/socket",
		    cli.address);
	cli.socket_path = cli.address + 7;
	return 0;
}

/* A failure to write the output, for example to a full disk, is a failure of the command. */
static int
flush_output(int code)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return code;
	(void)fprintf(stderr, "drover: write the output: %s\n", strerror(errno));
	return code == CLI_OK ? CLI_FAILED : code;
}

/* Exit code for a command line that does not parse; `job plan` uses 1 for "there are changes". */
static int
refuse_line(const struct cli_verb *v, const struct err *e)
{
	(void)cli_fail(&cli, e);
	return v->run == cli_job_plan ? CLI_PLAN_FAILED : CLI_FAILED;
}

static int
run_verb(const struct cli_verb *v, int argc, char **argv)
{
	const struct cli_flag *const tables[] = { v->flags, common_flags };
	struct err e = { 0 };
	int n = argc, r;

	for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
		if (v->max_args == CLI_COMMAND && argv[i][0] != '-')
			break;
		if (is_help(argv[i])) {
			print_verb_help(v);
			return CLI_OK;
		}
	}
	if (v->max_args < 0)
		return v->run(&cli, argc, argv);
	n = (v->max_args == CLI_COMMAND ? cli_flags_parse_command : cli_flags_parse)(
	    tables, ELEMENTSOF(tables), argc, argv, &e);
	if (n >= 0 && (n < v->min_args || n > v->max_args))
		n = err_say(&e, -EINVAL, "usage: drover %s%s%s %s", v->noun, v->verb ? " " : "",
		    v->verb ?: "", v->usage);
	if (n < 0)
		return refuse_line(v, &e);
	if (cli.verbose)
		cli.id_len = 128;
	cli_namespace_init(&cli);
	r = choose_socket(&e);
	return r < 0 ? refuse_line(v, &e) : v->run(&cli, n, argv);
}

int
main(int argc, char **argv)
{
	const struct cli_verb *v;
	int words = 0;

	/* SIGPIPE is reset to its default so that `drover … | head` ends quietly. */
	(void)signal(SIGPIPE, SIG_DFL);
	(void)setlocale(LC_CTYPE, "");
	json_set_alloc_funcs(mem_alloc, free);
	argc--;
	argv++;
	if (argc > 0 && (strcmp(argv[0], "-version") == 0 || strcmp(argv[0], "--version") == 0 ||
			    strcmp(argv[0], "-v") == 0))
		return flush_output(cli_version(&cli, 0, NULL));
	v = find_verb(argc, argv, &words);
	if (!v) {
		bool asked = argc > 1 || (argc == 1 && is_help(argv[0]));
		int r = refuse_words(argc, argv);

		/* `drover` and `drover job` alone print the help and fail, so that scripts notice.
		 */
		return flush_output(r == CLI_OK && !asked ? CLI_FAILED : r);
	}
	return flush_output(run_verb(v, argc - words, argv + words));
}
