// SPDX-License-Identifier: Apache-2.0
/* cli_job_children.c: drover job dispatch and periodic force; what `job status` shows of
 * parameterized and periodic jobs. Runs in: cli. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/cli_api.h"
#include "cli/cli_job.h"
#include "cli/cli_print.h"
#include "cli/cli_verbs.h"
#include "common/base64.h"
#include "common/duration.h"
#include "common/mem.h"
#include "common/utf8.h"
#include "model/job.h"
#include "model/payload.h"

static struct {
	bool detach;
	struct strings meta;
	const char *prefix, *token;
} options;

const struct cli_flag cli_job_dispatch_flags[] = {
	{ "detach", CLI_FLAG_BOOL, &options.detach, NULL,
	    "return as soon as the request is accepted" },
	{ "id-prefix-template", CLI_FLAG_STRING, &options.prefix, "TEXT",
	    "text in the new job's id, before its timestamp" },
	{ "idempotency-token", CLI_FLAG_STRING, &options.token, "TEXT",
	    "dispatch only if no job was dispatched with this token" },
	{ "meta", CLI_FLAG_STRINGS, &options.meta, "KEY=VALUE", "repeat for each key" },
	{ 0 },
};

/* Dispatch. */

static int
put_meta(json_t *request, struct err *e)
{
	json_t *meta = json_object();

	(void)json_object_set_new(request, "Meta", meta);
	for (size_t i = 0; i < options.meta.n; i++) {
		char *key = options.meta.v[i], *equals = strchr(key, '=');

		if (!equals || equals == key)
			return err_say(e, -EINVAL, "-meta must be KEY=VALUE, not \"%s\"", key);
		*equals = '\0';
		if (!utf8_is_text(key, strlen(key)))
			return err_say(e, -EINVAL, "a key of -meta is not UTF-8");
		if (json_object_set_new(meta, key, json_string(equals + 1)) < 0)
			return err_say(e, -EINVAL, "-meta %s: its value is not UTF-8", key);
	}
	return 0;
}

static int
put_prefix(json_t *request, struct err *e)
{
	if (options.prefix &&
	    json_object_set_new(request, "IdPrefixTemplate", json_string(options.prefix)) < 0)
		return err_say(e, -EINVAL, "-id-prefix-template is not UTF-8");
	return 0;
}

/* Reads the whole file, or one byte more than a payload may have. */
static int
read_payload(const char *path, char data[PAYLOAD_MAX + 1], size_t *ret_len, struct err *e)
{
	bool input = strcmp(path, "-") == 0;
	cleanup_file FILE *f = input ? NULL : fopen(path, "re");
	FILE *from = input ? stdin : f;

	if (!from)
		return err_set(e, -errno, "open %s", path);
	*ret_len = fread(data, 1, PAYLOAD_MAX + 1, from);
	if (ferror(from))
		return err_set(e, -errno, "read %s", path);
	return *ret_len <= PAYLOAD_MAX
		   ? 0
		   : err_say(e, -EFBIG, "%s is larger than %d bytes, the limit of a payload",
			 input ? "the standard input" : path, PAYLOAD_MAX);
}

static int
put_payload(json_t *request, const char *path, struct err *e)
{
	static char data[PAYLOAD_MAX + 1], text[BASE64_SIZE(PAYLOAD_MAX)];
	size_t len = 0;
	int r = read_payload(path, data, &len, e);

	if (r < 0)
		return r;
	(void)base64_encode(data, len, text);
	(void)json_object_set_new(request, "Payload", json_string(text));
	return 0;
}

static int
dispatch_job(struct cli *cli, const char *id, const json_t *request, struct err *e)
{
	cleanup_free char *target =
	    cli_target("/v1/job/%s/dispatch?idempotency_token=%s", id, options.token ?: "");
	cleanup_json json_t *answer = NULL;
	const char *child;
	int r = cli_api_send(cli, "POST", target, request, &answer, e);

	if (r < 0)
		return r;
	child = cli_json_str(answer, "DispatchedJobID");
	cli_say(cli, "Dispatched job %s", child);
	return cli_job_follow(cli, child, answer, options.detach, e);
}

int
cli_job_dispatch(struct cli *cli, int argc, char **argv)
{
	cleanup_json json_t *request = json_object();
	cleanup_free char *id = NULL;
	struct err e = { 0 };
	int r;

	r = put_meta(request, &e);
	if (r == 0)
		r = put_prefix(request, &e);
	if (r == 0 && argc == 2)
		r = put_payload(request, argv[1], &e);
	if (r == 0)
		r = cli_id_resolve(cli, &cli_kind_job, argv[0], &id, &e);
	if (r == 0)
		r = dispatch_job(cli, id, request, &e);
	strings_done(&options.meta);
	return r < 0 ? cli_fail(cli, &e) : r;
}

/* Periodic force. */

static int
follow_launch(struct cli *cli, const json_t *answer, struct err *e)
{
	cleanup_free char *target = cli_target("/v1/evaluation/%s", cli_json_str(answer, "EvalID"));
	cleanup_json json_t *eval = NULL;
	int r = cli_api_get(cli, target, &eval, e);

	return r < 0 ? r : cli_job_follow_change(cli, cli_json_str(eval, "JobID"), answer, e);
}

int
cli_job_periodic(struct cli *cli, int argc, char **argv)
{
	cleanup_json json_t *answer = NULL;
	cleanup_free char *id = NULL, *target = NULL;
	struct err e = { 0 };
	int r;

	(void)argc;
	r = cli_id_resolve(cli, &cli_kind_job, argv[0], &id, &e);
	if (r == 0) {
		target = cli_target("/v1/job/%s/periodic/force", id);
		r = cli_api_send(cli, "POST", target, NULL, &answer, &e);
	}
	if (r == 0)
		r = follow_launch(cli, answer, &e);
	return r < 0 ? cli_fail(cli, &e) : r;
}

/* Status. */

const char *
cli_job_infix(const json_t *job)
{
	bool parameterized = json_is_object(cli_json_get(job, "ParameterizedJob")) &&
			     !cli_json_true(job, "Dispatched");

	if (parameterized)
		return job_dispatch_infix;
	return json_is_object(cli_json_get(job, "Periodic")) ? job_periodic_infix : NULL;
}

static void
print_next_launch(const struct cli *cli, const json_t *json)
{
	cleanup_done(job) struct job job;
	char text[CLI_TIME_SIZE], in[DURATION_SIZE];
	int64_t now = (int64_t)time(NULL), at;
	struct err e = { 0 };
	struct tm tm;
	time_t when;

	job_init(&job);
	if (model_from_json(&job_type, json, &job, &e) < 0 || !job_has_launches(&job))
		return;
	at = job_next_launch(&job, now);
	when = (time_t)at;
	if (at < 0 || !gmtime_r(&when, &tm) ||
	    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
		return;
	duration_format((at - now) * NS_PER_S, in);
	cli_field("Next launch", "%s (in %s)", text, in);
	(void)cli;
}

static void
print_keys(const char *name, const json_t *keys)
{
	char text[1024] = "";
	const json_t *key;
	size_t i, len = 0;

	json_array_foreach (keys, i, key)
		if (len < sizeof text - 1)
			len += (size_t)snprintf(text + len, sizeof text - len, "%s%s",
			    i ? ", " : "", json_string_value(key) ?: "");
	cli_clean(text);
	cli_field(name, "%s", text);
}

int
cli_job_print_parent(struct cli *cli, const json_t *job, struct err *e)
{
	const char *infix = cli_job_infix(job), *id = cli_json_str(job, "ID");
	cleanup_json json_t *list = NULL;
	cleanup_free char *prefix = NULL, *target = NULL;
	const json_t *child;
	struct cli_table *t;
	char when[CLI_TIME_SIZE];
	size_t i;
	int r;

	prefix = mem_printf("%s%s", id, infix);
	target =
	    cli_target("/v1/jobs?prefix=%s&namespace=%s", prefix, cli_json_str(job, "Namespace"));
	r = cli_api_get(cli, target, &list, e);
	if (r < 0)
		return r;
	if (infix == job_dispatch_infix) {
		cli_field("Payload", "%s", cli_json_str(job, "ParameterizedJob/Payload"));
		print_keys("Meta required", cli_json_get(job, "ParameterizedJob/MetaRequired"));
		print_keys("Meta optional", cli_json_get(job, "ParameterizedJob/MetaOptional"));
	} else {
		print_next_launch(cli, job);
	}
	if (json_array_size(list) == 0)
		return 0;
	cli_head("Children");
	t = CLI_TABLE("ID", "Status", "Submitted");
	json_array_foreach (list, i, child) {
		if (strcmp(cli_json_str(child, "ParentID"), id) != 0)
			continue;
		cli_table_row(t);
		cli_cell(t, "%s", cli_json_str(child, "ID"));
		cli_cell(t, "%s", cli_json_str(child, "Status"));
		cli_cell(t, "%s", cli_time(cli, cli_json_time_ns(child, "SubmitTime"), when));
	}
	cli_table_print(t);
	return 0;
}
