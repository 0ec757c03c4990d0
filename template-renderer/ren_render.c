// SPDX-License-Identifier: Apache-2.0
/* ren_render.c: renders one template. Runs in: a worker of template-renderer. Asked by: supervisor.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "common/utf8.h"
#include "template-renderer/ren.h"

#define SENTENCE_MAX 4096

DEFINE_CLEANUP(struct template *, template_free);
DEFINE_CLEANUP(json_t *, json_decref);

/* template_default_limits twice (a tree and a rendering), the values and the answer. */
static const struct worker_limits limits = {
	.memory_bytes = (size_t)384 << 20, .cpu_seconds = 5, .texts_bytes = REN_TEXT_MAX
};

/* Returns NULL for a need with a text that is no UTF-8, which JSON cannot have. */
static json_t *
describe_need(const struct template_need *n)
{
	const struct template_query *q = &n->query;
	json_t *o = json_pack("{s:s, s:b, s:i, s:s?, s:s?, s:s?, s:s?}", "need", n->name, "missing",
	    n->missing, "kind", (int)q->kind, "name", q->name, "namespace", q->ns, "region",
	    q->region, "tag", q->tag);

	if (!o || !q->key)
		return o;
	if (json_object_set_new(o, "key", json_string(q->key)) == 0 &&
	    json_object_set_new(o, "count", json_integer(q->count)) == 0)
		return o;
	json_decref(o);
	return NULL;
}

/* *ret_wrong: a need cannot be described. */
static json_t *
describe_needs(const struct template_result *r, bool *ret_wrong)
{
	json_t *all = json_array(), *one;

	*ret_wrong = false;
	for (size_t i = 0; i < r->n_needs; i++) {
		one = describe_need(&r->needs[i]);
		if (one)
			(void)json_array_append_new(all, one);
		else
			*ret_wrong = true;
	}
	return all;
}

/* The answer: a line of JSON, and the output after it. */
static int
answer(json_t *head, const char *output, size_t len, struct worker_result *ret, struct err *e)
{
	cleanup_free char *line = json_dumps(head, JSON_COMPACT), *all = NULL;
	size_t line_len;

	json_decref(head);
	if (!line)
		return err_say(e, -EINVAL, "the result of a template cannot be passed on");
	line_len = strlen(line);
	all = mem_alloc(line_len + 1 + len + 1);
	memcpy(all, line, line_len);
	all[line_len] = '\n';
	if (len > 0)
		memcpy(all + line_len + 1, output, len);
	return worker_texts_end(all, line_len + 1 + len, REN_RESULT_MAX, ret, e);
}

static int
answer_problem(json_t *needs, const char *problem, struct worker_result *ret, struct err *e)
{
	char sentence[SENTENCE_MAX];

	(void)utf8_sanitize(sentence, sizeof sentence, problem, strlen(problem));
	return answer(
	    json_pack("{s:o, s:s}", "needs", needs, "problem", sentence), NULL, 0, ret, e);
}

static int
render(struct ren_values *v, const struct worker_texts *texts, struct worker_result *ret,
    struct err *e)
{
	const struct template_options options = {
		.left = json_string_value(json_object_get(v->json, "left_delimiter")),
		.right = json_string_value(json_object_get(v->json, "right_delimiter")),
		.denied = json_string_value(json_object_get(v->json, "denied")),
		.missing_key_fails = json_is_true(json_object_get(v->json, "error_on_missing_key")),
	};
	cleanup_free char *problem = NULL;
	cleanup_with(template_free) struct template *t =
	    template_parse(texts->second, texts->second_len, &options, &problem);
	const struct template_result *r;
	json_t *needs;
	bool wrong;

	if (!t)
		return answer_problem(json_array(), problem, ret, e);
	r = template_render(t, &v->data);
	needs = describe_needs(r, &wrong);
	if (r->problem || wrong)
		return answer_problem(needs,
		    r->problem ? r->problem : "it asks for a name that is not UTF-8", ret, e);
	ret->flag = r->n_missing == 0;
	return answer(
	    json_pack("{s:o}", "needs", needs), r->output, ret->flag ? r->len : 0, ret, e);
}

int
ren_render(int fd, const void *arg, struct worker_result *ret, struct err *e)
{
	const struct ren_render_req *req = arg;
	struct worker_texts texts = { .first_len = req->values_bytes,
		.second_len = req->template_bytes };
	cleanup_with(json_decref) json_t *json = NULL;
	struct ren_values values;
	int r;

	r = worker_texts_begin(&limits, fd, &texts, e);
	if (r < 0)
		return r;
	json_set_alloc_funcs(mem_alloc, free);
	json = json_loadb(texts.first, texts.first_len, JSON_REJECT_DUPLICATES, NULL);
	r = ren_values_read(&values, json, e);
	if (r < 0)
		return r;
	r = render(&values, &texts, ret, e);
	ren_values_done(&values);
	return r;
}
