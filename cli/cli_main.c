// SPDX-License-Identifier: Apache-2.0
/* cli_main.c: the command `drover`: finds the verb and runs it. Runs in: cli, as the operator. */
#include <errno.h>
#include <jansson.h>
#include <locale.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli_api.h"
#include "cli/cli_complete.h"
#include "cli/cli_namespace.h"
#include "cli/cli_print.h"
#include "cli/cli_screen.h"
#include "cli/cli_tcp.h"
#include "cli/cli_verbs.h"
#include "cli/cli_template.h"
#include "common/cleanup.h"
#include "common/mem.h"

static struct cli cli = { .timeout_ms = CLI_TIMEOUT_MS, .id_len = 8 };

static struct {
	bool no_color;
	const char *token, *template;
} options;

const struct cli_flag cli_common_flags[] = {
	{ "address", CLI_FLAG_STRING, &cli.address, "ADDRESS",
	    "the agent: unix:///PATH of its control socket, or https://HOST:PORT" },
	{ "ca-cert", CLI_FLAG_STRING, &cli_tls.ca_cert, "FILE",
	    "over https, the authority of the agent's certificate, as with DROVER_CACERT" },
	{ "client-cert", CLI_FLAG_STRING, &cli_tls.client_cert, "FILE",
	    "over https, the client's certificate, as with DROVER_CLIENT_CERT" },
	{ "client-key", CLI_FLAG_STRING, &cli_tls.client_key, "FILE",
	    "over https, the client's key, as with DROVER_CLIENT_KEY" },
	{ "json", CLI_FLAG_BOOL, &cli.json, NULL, "print the API's answer as JSON" },
	{ "namespace", CLI_FLAG_STRING, &cli.namespace, "NAMESPACE",
	    "the namespace; * or none: all, and \"default\" for a new job" },
	{ "no-color", CLI_FLAG_BOOL, &options.no_color, NULL, "no colours, as with NO_COLOR" },
	{ "t", CLI_FLAG_STRING, &options.template, "TEMPLATE",
	    "print the API's answer with a template of Go's text/template" },
	{ "timeout", CLI_FLAG_DURATION, &cli.timeout_ms, "TIME", "timeout of one request (60s)" },
	{ "tls-server-name", CLI_FLAG_STRING, &cli_tls.server_name, "NAME",
	    "over https, the name in the agent's certificate, as with DROVER_TLS_SERVER_NAME" },
	{ "token", CLI_FLAG_STRING, &options.token, "TOKEN",
	    "the ACL token, as with DROVER_TOKEN" },
	{ "verbose", CLI_FLAG_BOOL, &cli.verbose, NULL, "show full ids and exact times" },
	{ "ca-path", CLI_FLAG_REFUSED, NULL, NULL, "-ca-cert takes a file with all certificates" },
	{ "force-color", CLI_FLAG_REFUSED, NULL, NULL, "only a terminal gets colours" },
	{ "region", CLI_FLAG_REFUSED, NULL, NULL, "requests are for the region of the agent" },
	{ "tls-skip-verify", CLI_FLAG_REFUSED, NULL, NULL,
	    "the agent's certificate is always verified: see -ca-cert and -tls-server-name" },
	{ 0 },
};

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

/* A failure to write the output, for example to a full disk, is a failure of the command. */
static int
flush_output(int code)
{
	cli_progress_clear();
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
	const struct cli_flag *const tables[] = { v->flags, cli_common_flags };
	struct err e = { 0 };
	int n = argc, r;

	for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
		if (v->max_args == CLI_COMMAND && argv[i][0] != '-')
			break;
		if (cli_is_help(argv[i])) {
			cli_help_print(v);
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
	if (options.template) {
		cli.json = true;
		cli_template_use("-t", options.template);
	}
	if (options.no_color)
		(void)setenv("NO_COLOR", "1", 1);
	if (options.token)
		(void)setenv("DROVER_TOKEN", options.token, 1);
	cli_namespace_init(&cli);
	r = cli_api_choose(&cli, &e);
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
	if (argc > 0 && strcmp(argv[0], "__complete") == 0)
		return flush_output(cli_complete(&cli, argc - 1, argv + 1));
	v = cli_verb_find(argc, argv, &words);
	if (!v) {
		bool asked = argc > 0 && cli_is_help(argv[argc - 1]);
		int r = cli_help_unknown(&cli, argc, argv);

		/* `drover` and `drover job` alone print the help and fail, so that scripts notice.
		 */
		return flush_output(r == CLI_OK && !asked ? CLI_FAILED : r);
	}
	return flush_output(run_verb(v, argc - words, argv + words));
}
