// SPDX-License-Identifier: Apache-2.0
/* jobspec.c: reads a job file: variables, locals, and the job. Runs in: cli, job-parser. */
#include "jobspec/jobspec.h"

#include <string.h>

#include "common/similar.h"
#include "hcl/hcl_functions.h"
#include "jobspec/job_block.h"

struct read_call {
	const struct job_input *in;
	const struct hcl_block *job;
	const struct job_given *given;
	const char *variables;
	json_t *json;
};

static bool
is_space(char c)
{
	return c == ' ';
}

/*
 * The value of a path whose root is no variable, such as ${attr.kernel.name} or ${NOMAD_PORT_http}:
 * its own text, to be replaced when the task starts. The text keeps the spaces that the file has
 * inside the braces. (Where the brace is not followed by the path's end, Nomad's parser adds what
 * it finds up to the next one; servers have stored such texts, so it is the same here.)
 */
static struct hcl_value *
keep_reference(struct hcl *h, void *arg, const struct hcl_expr *path)
{
	const struct hcl_source *s = path->at.source;
	uint32_t from = path->at.from, to = path->at.to, start = from;
	const char *inner, *tail = "";
	uint32_t i;

	(void)arg;
	while (start > 0 && is_space(s->text[start - 1]))
		start--;
	if (start < 2 || s->text[start - 1] != '{' || s->text[start - 2] != '$')
		return hcl_text(h, hcl_printf(h, "${%.*s}", (int)(to - from), s->text + from));
	inner = hcl_printf(h, "${%.*s", (int)(to - start), s->text + start);
	for (i = to + 1; i < s->len; i++) {
		if (s->text[i] == '}')
			tail = hcl_printf(h, "%s%.*s", tail, (int)(i - to), s->text + to);
		else if (!is_space(s->text[i]))
			return hcl_text(h, hcl_printf(h, "%s%s}", inner, tail));
	}
	return hcl_text(h, hcl_printf(h, "%s%s", inner, tail));
}

static void
check_top_level(struct hcl *h, const struct hcl_body *body, const struct hcl_block **ret_job)
{
	static const char *const names[] = { "job", "variable", "variables", "locals" };

	for (const struct hcl_attr *a = body->attrs; a; a = a->next)
		hcl_error(h, a->name_at,
		    "attribute \"%s\" is outside of the job: expected a block job, variable or "
		    "locals",
		    a->name);
	for (const struct hcl_block *b = body->blocks; b; b = b->next) {
		const char *similar = similar_name(b->type, names, 4);

		if (strcmp(b->type, "job") == 0) {
			if (*ret_job)
				hcl_error(h, b->type_at,
				    "a file has one job; the first is in line %u",
				    hcl_position(
					(*ret_job)->type_at.source, (*ret_job)->type_at.from)
					.line);
			*ret_job = *ret_job ? *ret_job : b;
			if (b->n_labels != 1)
				hcl_error(h, b->type_at,
				    "a job block needs one name: job \"name\" { … }");
		} else if (strcmp(b->type, "variables") == 0 || strcmp(b->type, "locals") == 0) {
			if (b->n_labels > 0)
				hcl_error(h, b->labels[0].at, "a %s block has no label", b->type);
		} else if (strcmp(b->type, "variable") != 0) {
			hcl_error(h, b->type_at, "unknown block \"%s\" outside of the job%s%s%s",
			    b->type, similar ? ": did you mean \"" : "", similar ? similar : "",
			    similar ? "\"?" : "");
		}
	}
}

static void
read_job(struct hcl *h, void *arg)
{
	struct read_call *c = arg;
	const struct hcl_body *body = hcl_parse_body(h, &c->in->file);
	struct hcl_files files = { c->in->base_dir, c->in->files };
	struct hcl_scope scope = {
		.functions = &hcl_job_functions, .missing = keep_reference, .arg = &files
	};
	struct hcl_variable names[2] = { { "var", NULL }, { "local", NULL } };
	struct job_names values;

	if (!body)
		return;
	check_top_level(h, body, &c->job);
	if (!c->job && hcl_error_count(h) == 0)
		hcl_fail(h, body->at, "there is no job in this file: expected job \"name\" { … }");
	if (hcl_error_count(h) > 0)
		return;
	job_read_names(h, c->in, body, &scope, &values);
	c->given = values.given;
	c->variables = job_source_variables(h, c->in, values.given);
	names[0].value = values.var;
	names[1].value = values.local;
	scope.variables = names;
	scope.n = 2;
	c->json = job_read_block(h, &job_block_job, c->job->body, &scope, NULL, c->job->type_at);
}

json_t *
jobspec_read(struct hcl *h, const struct job_input *in, json_t **ret_submission)
{
	struct read_call c = { .in = in };
	bool read = hcl_try(h, read_job, &c) && hcl_error_count(h) == 0;

	if (read)
		job_finish(h, c.json, c.job->labels[0].text);
	if (!read || hcl_error_count(h) > 0) {
		json_decref(c.json);
		return NULL;
	}
	if (ret_submission)
		*ret_submission = job_source(in, c.given, c.variables);
	return c.json;
}
