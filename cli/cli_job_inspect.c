// SPDX-License-Identifier: Apache-2.0
/* cli_job_inspect.c: drover job inspect: prints a job or its source. Runs in: cli. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli_api.h"
#include "cli/cli_job.h"
#include "cli/cli_print.h"
#include "cli/cli_verbs.h"
#include "common/mem.h"

static struct {
	bool hcl, with_vars;
	int64_t version; /* -1: the newest */
} options = { .version = -1 };

const struct cli_flag cli_job_inspect_flags[] = {
	{ "hcl", CLI_FLAG_BOOL, &options.hcl, NULL,
	    "print the source that the job was registered with" },
	{ "version", CLI_FLAG_NUMBER, &options.version, "VERSION",
	    "of this version (default: the newest)" },
	{ "with-vars", CLI_FLAG_BOOL, &options.with_vars, NULL,
	    "with -hcl: print also the values of its variables, on stderr" },
	CLI_JOB_FILE_FLAGS,
	{ 0 },
};

/* Returns the wanted version of the job in *ret, a new reference. */
static int
get_job(struct cli *cli, const char *id, json_t **ret, struct err *e)
{
	cleanup_free char *newest = cli_target("/v1/job/%s", id);
	cleanup_free char *versions = cli_target("/v1/job/%s/versions", id);
	cleanup_json json_t *answer = NULL;
	json_t *job;
	size_t i;
	int r;

	if (options.version < 0)
		return cli_api_get(cli, newest, ret, e);
	r = cli_api_get(cli, versions, &answer, e);
	if (r < 0)
		return r;
	json_array_foreach (cli_json_get(answer, "Versions"), i, job) {
		if (cli_json_int(job, "Version") == options.version) {
			*ret = json_incref(job);
			return 0;
		}
	}
	return err_say(e, -ENOENT,
	    "job \"%s\" has no version %" PRId64 ": drover job history %s lists them", id,
	    options.version, id);
}

static int
print_job(struct cli *cli, const char *id, struct err *e)
{
	cleanup_json json_t *job = NULL, *whole = NULL;
	int r = get_job(cli, id, &job, e);

	if (r < 0)
		return r;
	whole = json_pack("{s:O}", "Job", job);
	return cli_json_print(cli->json ? job : whole, e);
}

/* Prints the command that registers the source again with the same values. */
static void
print_values(const char *id, json_int_t version, const json_t *submission)
{
	const char *files = cli_json_str(submission, "Variables"), *name;
	json_t *flags = cli_json_get(submission, "VariableFlags"), *value;
	struct text line = { 0 };

	text_printf(&line, "  drover job inspect -hcl -version %" JSON_INTEGER_FORMAT, version);
	cli_add_word(&line, id);
	text_printf(&line, " | drover job run");
	json_object_foreach (flags, name, value) {
		cleanup_free char *word = mem_printf("%s=%s", name, json_string_value(value) ?: "");

		text_printf(&line, " -var");
		cli_add_word(&line, word);
	}
	text_printf(&line, *files ? " -var-file VALUES -\nVALUES is a file with:\n" : " -\n");
	(void)fprintf(stderr, "To register this source with the values that it had:\n%s%s%s",
	    line.text, files, *files && files[strlen(files) - 1] != '\n' ? "\n" : "");
	text_done(&line);
}

static int
print_source(struct cli *cli, const char *id, struct err *e)
{
	cleanup_json json_t *job = NULL, *submission = NULL;
	cleanup_free char *number = NULL, *target = NULL;
	json_int_t version;
	int r = get_job(cli, id, &job, e);

	if (r < 0)
		return r;
	version = cli_json_int(job, "Version");
	number = mem_printf("%" JSON_INTEGER_FORMAT, version);
	target = cli_target("/v1/job/%s/submission?version=%s", id, number);
	r = cli_api_get(cli, target, &submission, e);
	if (r == -ENOENT)
		return err_say(e, r,
		    "version %s of job \"%s\" was registered without its source: without -hcl, "
		    "the job itself is printed",
		    number, id);
	if (r < 0)
		return r;
	(void)fputs(cli_json_str(submission, "Source"), stdout);
	if (options.with_vars)
		print_values(id, version, submission);
	return CLI_OK;
}

/* Returns whether the word is stdin or an existing job file, and not a job's id. */
static bool
is_job_file(const char *word)
{
	const char *suffix = strrchr(word, '.') ?: "";

	if (strcmp(word, "-") == 0)
		return true;
	return (strcmp(suffix, ".hcl") == 0 || strcmp(suffix, ".nomad") == 0 ||
		   strcmp(suffix, ".json") == 0) &&
	       access(word, F_OK) == 0;
}

static int
print_file(struct cli *cli, const char *path, struct err *e)
{
	cleanup_json json_t *request = NULL;
	int r = cli_job_read(path, &request, NULL, e);

	return r < 0 ? r : cli_json_print(cli->json ? json_object_get(request, "Job") : request, e);
}

int
cli_job_inspect(struct cli *cli, int argc, char **argv)
{
	struct err e = { 0 };

	(void)argc;
	if (is_job_file(argv[0]) && (options.hcl || options.version >= 0))
		(void)err_say(
		    &e, -EINVAL, "-hcl and -version are for registered jobs, not for files");
	else if (is_job_file(argv[0]))
		return print_file(cli, argv[0], &e) < 0 ? cli_fail(cli, &e) : CLI_OK;
	else if (options.hcl && cli->json)
		(void)err_say(&e, -EINVAL, "-hcl and -json exclude each other");
	else if (options.with_vars && !options.hcl)
		(void)err_say(&e, -EINVAL, "-with-vars needs -hcl");
	else
		return cli_with_id(
		    cli, &cli_kind_job, argv[0], options.hcl ? print_source : print_job);
	return cli_fail(cli, &e);
}
