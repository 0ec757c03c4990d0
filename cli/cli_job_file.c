// SPDX-License-Identifier: Apache-2.0
/* cli_job_file.c: reads job files, in HCL or as JSON. Runs in: cli. */
#include <ctype.h>
#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli_api.h"
#include "cli/cli_file.h"
#include "cli/cli_job.h"
#include "cli/cli_verbs.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "jobspec/jobspec.h"

struct cli_job_input cli_job_input = { .strict = true };

const struct cli_flag cli_job_file_flags[] = { CLI_JOB_FILE_FLAGS, { 0 } };

DEFINE_CLEANUP(struct hcl *, hcl_free);

/* Accepts {"Job": {…}} or a bare job, which it wraps. Leaves a new reference in *ret. */
static int
wrap_job(json_t *file, const char *name, json_t **ret, struct err *e)
{
	json_t *job = json_object_get(file, "Job");

	if (json_is_object(job))
		*ret = json_incref(file);
	else if (json_object_get(file, "TaskGroups") || json_object_get(file, "ID"))
		*ret = json_pack("{s:O}", "Job", file);
	else
		return err_say(e, -EINVAL,
		    "%s holds no job: expected {\"Job\": {…}} or an object with ID and TaskGroups",
		    name);
	return 0;
}

static int
read_json(const struct cli_file *file, json_t **ret, json_t **ret_submission, struct err *e)
{
	cleanup_json json_t *value = NULL;
	int r;

	if (cli_job_input.vars.n + cli_job_input.var_files.n > 0)
		return err_say(
		    e, -EINVAL, "%s is JSON: -var and -var-file are for HCL", file->name);
	r = cli_file_json(file, &value, e);
	if (r == 0)
		r = wrap_job(value, file->name, ret, e);
	if (r == 0 && ret_submission)
		*ret_submission = json_pack(
		    "{s:o, s:s}", "Source", json_stringn(file->text, file->len), "Format", "json");
	return r;
}

static int
read_var_files(struct cli_file **ret, struct err *e)
{
	size_t n = cli_job_input.var_files.n;
	struct cli_file *files = mem_zeroed(n, sizeof *files);
	int r = 0;

	*ret = files;
	for (size_t i = 0; i < n && r == 0; i++)
		r = cli_file_open(cli_job_input.var_files.v[i], &files[i], e);
	return r;
}

static int
read_hcl(const struct cli_file *file, json_t **ret, json_t **ret_submission, struct err *e)
{
	cleanup_with(hcl_free) struct hcl *h = hcl_new(&hcl_job_limits);
	cleanup_free char *path = mem_strdup(file->name);
	cleanup_free struct hcl_source *sources =
	    mem_zeroed(cli_job_input.var_files.n, sizeof *sources);
	struct cli_file *files;
	struct job_input in = {
		.file = { file->name, file->text, file->len },
		.var_files = sources,
		.n_var_files = cli_job_input.var_files.n,
		.vars = (const char *const *)cli_job_input.vars.v,
		.n_vars = cli_job_input.vars.n,
		.env = (const char *const *)environ,
		.files = true,
		.strict = cli_job_input.strict,
	};
	json_t *job = NULL;
	int problems, r = read_var_files(&files, e);

	in.base_dir = file->is_stdin ? "." : dirname(path);
	for (size_t i = 0; i < in.n_var_files && r == 0; i++)
		sources[i] = (struct hcl_source){ files[i].name, files[i].text, files[i].len };
	if (r == 0)
		job = jobspec_read(h, &in, ret_submission);
	problems = cli_file_problems(file, h, e);
	for (size_t i = 0; i < in.n_var_files; i++)
		cli_file_done(&files[i]);
	free(files);
	if (r == 0)
		r = problems;
	if (r < 0)
		return r;
	*ret = json_pack("{s:o}", "Job", job);
	return 0;
}

int
cli_job_read(const char *path, json_t **ret, json_t **ret_submission, struct err *e)
{
	struct cli_file file = { 0 };
	int r = cli_file_open_filled(path, &file, e);

	if (r == 0)
		r = (cli_file_is_json(&file) ? read_json : read_hcl)(&file, ret, ret_submission, e);
	cli_file_done(&file);
	return r;
}
