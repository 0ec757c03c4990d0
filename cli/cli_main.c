// SPDX-License-Identifier: Apache-2.0
/* cli_main.c: the command `drover`: finds the verb, prints help, runs it. Runs in: drover, as the
 * operator. */
#include <errno.h>
#include <jansson.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli_api.h"
#include "cli/cli_verbs.h"
#include "common/cleanup.h"
#include "common/mem.h"

static int show_help(struct cli *cli, int argc, char **argv);
static int show_version(struct cli *cli, int argc, char **argv);

static struct cli cli = { .timeout_ms = CLI_TIMEOUT_MS, .id_len = 8 };

static const struct cli_flag common_flags[] = {
	{ "address", CLI_FLAG_STRING, &cli.address, "unix:///PATH", "the agent's control socket" },
	{ "json", CLI_FLAG_BOOL, &cli.json, NULL, "print the API's answer as JSON" },
	{ "timeout", CLI_FLAG_DURATION, &cli.timeout_ms, "TIME", "timeout of one request (60s)" },
	{ "verbose", CLI_FLAG_BOOL, &cli.verbose, NULL, "show full ids and exact times" },
	{ 0 },
};

static const struct cli_verb verbs[] = {
	{ "action", NULL, cli_action, cli_action_flags, 1, 1, "[flags] ACTION",
	    "run a job's action inside one of its tasks" },
	{ "agent", NULL, cli_agent, cli_agent_flags, -1, -1,
	    "[-config PATH]... [-dev] [-data-dir DIR] [-socket PATH]",
	    "run the agent in the foreground" },
	{ "alloc", "checks", cli_alloc_checks, NULL, 1, 1, "[flags] ALLOC",
	    "show the latest results of an allocation's service checks" },
	{ "alloc", "exec", cli_alloc_exec, cli_alloc_exec_flags, 2, CLI_COMMAND,
	    "[flags] ALLOC COMMAND [ARGUMENT...]", "run a command inside a task" },
	{ "alloc", "fs", cli_alloc_fs, cli_alloc_fs_flags, 1, 2, "[flags] ALLOC [PATH]",
	    "list a directory of an allocation, or print a file" },
	{ "alloc", "logs", cli_alloc_logs, cli_alloc_logs_flags, 1, 2, "[flags] ALLOC [TASK]",
	    "print the output of a task" },
	{ "alloc", "restart", cli_alloc_restart, cli_alloc_restart_flags, 1, 2,
	    "[flags] ALLOC [TASK]", "restart an allocation's tasks, or one of them" },
	{ "alloc", "signal", cli_alloc_signal, cli_alloc_signal_flags, 1, 2, "[flags] ALLOC [TASK]",
	    "send a signal to an allocation's tasks, or to one of them" },
	{ "alloc", "stats", cli_alloc_stats, NULL, 1, 1, "[flags] ALLOC",
	    "show the resource usage of an allocation's tasks" },
	{ "alloc", "status", cli_alloc_status, NULL, 0, 1, "[flags] [ALLOC]",
	    "show one allocation and its events, or list all" },
	{ "alloc", "stop", cli_alloc_stop, cli_alloc_stop_flags, 1, 1, "[flags] ALLOC",
	    "stop an allocation; its job gets a replacement" },
	{ "alloc", "why", cli_alloc_explain, NULL, 1, 1, "[flags] ALLOC|EVALUATION|JOB",
	    "explain why an allocation stopped, restarted or waits, or why a job is not placed" },
	{ "deployment", "fail", cli_deployment_fail, NULL, 1, 1, "[flags] DEPLOYMENT",
	    "mark a deployment as failed" },
	{ "deployment", "list", cli_deployment_list, NULL, 0, 0, "[flags]",
	    "list the deployments" },
	{ "deployment", "pause", cli_deployment_pause, NULL, 1, 1, "[flags] DEPLOYMENT",
	    "pause a deployment: replace no further allocations" },
	{ "deployment", "promote", cli_deployment_promote, cli_deployment_promote_flags, 1, 1,
	    "[flags] DEPLOYMENT", "promote the canaries: they replace the older allocations" },
	{ "deployment", "resume", cli_deployment_resume, cli_deployment_resume_flags, 1, 1,
	    "[flags] DEPLOYMENT", "resume a paused deployment" },
	{ "deployment", "status", cli_deployment_status, NULL, 0, 1, "[flags] [DEPLOYMENT]",
	    "show one deployment, or list all" },
	{ "eval", "list", cli_eval_list, cli_eval_list_flags, 0, 0, "[flags]",
	    "list the evaluations: what triggered them and their results" },
	{ "eval", "status", cli_eval_status, NULL, 1, 1, "[flags] EVALUATION",
	    "show one evaluation and its placements" },
	{ "fmt", NULL, cli_fmt, cli_fmt_flags, 0, 1000, "[flags] [PATH...]|-",
	    "rewrite HCL files in the canonical format" },
	{ "help", NULL, show_help, NULL, 0, 2, "[COMMAND [VERB]]",
	    "show this help, or the help of one command" },
	{ "job", "action", cli_action, cli_action_flags, 1, 1, "[flags] ACTION",
	    "run a job's action inside one of its tasks" },
	{ "job", "dispatch", cli_job_dispatch, cli_job_dispatch_flags, 1, 2, "[flags] JOB [FILE|-]",
	    "dispatch a parameterized job, with the file as its payload" },
	{ "job", "eval", cli_job_eval, cli_job_eval_flags, 1, 1, "[flags] JOB",
	    "evaluate a job again and place missing allocations" },
	{ "job", "history", cli_job_history, NULL, 1, 1, "[flags] JOB",
	    "list the stored versions of a job" },
	{ "job", "init", cli_job_init, cli_job_init_flags, 0, 1, "[flags] [FILE]",
	    "write an example of a job file" },
	{ "job", "inspect", cli_job_inspect, NULL, 1, 1, "[flags] JOB",
	    "print a job as JSON that job run accepts" },
	{ "job", "periodic", cli_job_periodic, cli_job_change_flags, 2, 2, "force [flags] JOB",
	    "launch a periodic job now" },
	{ "job", "plan", cli_job_plan, cli_job_file_flags, 1, 1, "[flags] FILE|-",
	    "show what registering a job would change; exit code 1 if allocations would change" },
	{ "job", "revert", cli_job_revert, cli_job_change_flags, 2, 2, "[flags] JOB VERSION",
	    "roll a job back to an older version" },
	{ "job", "run", cli_job_run, cli_job_run_flags, 1, 1, "[flags] FILE|-",
	    "register a job and follow it until its allocations run" },
	{ "job", "scale", cli_job_scale, cli_job_change_flags, 2, 3, "[flags] JOB [GROUP] COUNT",
	    "change the count of a group" },
	{ "job", "status", cli_job_status, NULL, 0, 1, "[flags] [JOB]",
	    "show one job, or list all" },
	{ "job", "stop", cli_job_stop, cli_job_stop_flags, 1, 1, "[flags] JOB",
	    "stop a job and follow it until its allocations have ended" },
	{ "job", "validate", cli_job_validate, cli_job_file_flags, 1, 1, "[flags] FILE|-",
	    "check whether a job is valid" },
	{ "leaks", NULL, cli_leaks, NULL, 0, 0, "[flags]",
	    "list mounts, cgroups, files and processes without a record in the agent; exit code 1 "
	    "if there are any" },
	{ "monitor", NULL, cli_monitor, cli_monitor_flags, 0, 0, "[flags]",
	    "follow the log of the agent's processes" },
	{ "node", "drain", cli_node_drain, cli_node_drain_flags, 0, 1, "[flags] [NODE]",
	    "drain a node: stop its allocations and accept no new ones" },
	{ "node", "eligibility", cli_node_eligibility, cli_node_eligibility_flags, 0, 1,
	    "-enable|-disable [flags] [NODE]",
	    "let a node accept new allocations or not; running ones continue" },
	{ "node", "meta", cli_node_meta, cli_node_meta_flags, 1, 64,
	    "read [flags] | apply [flags] [KEY=VALUE...]",
	    "show or change a node's metadata, which constraints match against" },
	{ "node", "status", cli_node_status, cli_node_status_flags, 0, 1, "[flags] [NODE]",
	    "show one node, or list all" },
	{ "plugin", "status", cli_plugin_status, NULL, 0, 1, "[flags] [PLUGIN]",
	    "show one CSI plugin, or list all" },
	{ "service", "info", cli_service_info, NULL, 1, 1, "[flags] SERVICE",
	    "show the instances of a service and their addresses" },
	{ "service", "list", cli_service_list, NULL, 0, 0, "[flags]", "list the services" },
	{ "status", NULL, cli_status, NULL, 0, 0, "[flags]",
	    "show the node on one page, problems first" },
	{ "system", "gc", cli_system_gc, NULL, 0, 0, "[flags]",
	    "remove ended allocations and jobs that are stopped or complete" },
	{ "version", NULL, show_version, NULL, 0, 0, "[flags]",
	    "print the version of this command" },
	{ "volume", "create", cli_volume_create, NULL, 1, 1, "[flags] FILE.json|-",
	    "create a volume through its plugin" },
	{ "volume", "delete", cli_volume_delete, cli_volume_delete_flags, 1, 1, "[flags] VOLUME",
	    "delete a volume and its data through its plugin" },
	{ "volume", "deregister", cli_volume_deregister, cli_volume_deregister_flags, 1, 1,
	    "[flags] VOLUME", "deregister a volume; its data stays in the plugin" },
	{ "volume", "register", cli_volume_register, NULL, 1, 1, "[flags] FILE.json|-",
	    "register a volume that already exists in its plugin" },
	{ "volume", "snapshot", cli_volume_snapshot, cli_volume_snapshot_flags, 1, 3,
	    "[flags] create VOLUME [NAME] | delete PLUGIN SNAPSHOT | list -plugin PLUGIN",
	    "create, delete or list snapshots through a volume's plugin" },
	{ "volume", "status", cli_volume_status, NULL, 0, 1, "[flags] [VOLUME]",
	    "show one volume, or list all" },
};

static void
print_flags(const struct cli_flag *flags)
{
	char left[64];

	for (const struct cli_flag *f = flags; f && f->name; f++) {
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
	    ").\nDROVER_TOKEN=… is the ACL token, if the agent requires one.\n");
}

static void
print_verb_help(const struct cli_verb *v)
{
	const char *space = v->verb ? " " : "";

	(void)printf(
	    "Usage: drover %s%s%s %s\n\n  %s\n", v->noun, space, v->verb ?: "", v->usage, v->help);
	if (v->flags) {
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

static int
show_help(struct cli *c, int argc, char **argv)
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

static int
show_version(struct cli *c, int argc, char **argv)
{
	cleanup_json json_t *answer = NULL;
	struct err e = { 0 };
	int r;

	if (!c->json) {
		(void)printf("drover %s\n", DROVER_VERSION);
		return CLI_OK;
	}
	answer = json_pack("{s:s}", "Version", DROVER_VERSION);
	r = answer ? cli_json_print(answer, &e) : err_set(&e, -ENOMEM, "print the version");
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
refuse(const struct cli_verb *v, const struct err *e)
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
		return refuse(v, &e);
	if (cli.verbose)
		cli.id_len = 128;
	r = choose_socket(&e);
	return r < 0 ? refuse(v, &e) : v->run(&cli, n, argv);
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
		return flush_output(show_version(&cli, 0, NULL));
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
