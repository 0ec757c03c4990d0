/* SPDX-License-Identifier: Apache-2.0 */
/* template.c: parses a template once, and renders it. Runs in: template-renderer. */
#include "template/template.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "template/go_json.h"
#include "template/tpl_parse.h"
#include "template/tpl_run.h"

const struct template_limits template_default_limits = {
	.memory_bytes = (size_t)96 * 1024 * 1024,
	.output_bytes = (size_t)16 * 1024 * 1024,
	.steps = 20 * 1000 * 1000,
	.depth = 500,
};

struct template
{
	struct template_limits limits;
	bool missing_key_fails;
	struct arena parsed;   /* the tree */
	struct arena rendered; /* the last result */
	struct tpl_text text;
	struct template_result result;
};

static struct arena
new_arena(const struct template *t)
{
	return (struct arena){ .memory_max = t->limits.memory_bytes,
		.steps_max = t->limits.steps,
		.depth_max = t->limits.depth };
}

static const char *
limit_sentence(struct arena *a)
{
	return arena_printf(a, "the template needs too %s", a->exhausted);
}

static void
parse(void *parser)
{
	tpl_parse(parser);
}

struct template *
template_parse(
    const char *text, size_t len, const struct template_options *options, char **ret_problem)
{
	struct template *t = mem_new(struct template);
	struct tpl_parser p = { .arena = &t->parsed,
		.text = &t->text,
		.denied = options->denied ? options->denied : "" };

	t->limits = options->limits ? *options->limits : template_default_limits;
	t->missing_key_fails = options->missing_key_fails;
	t->parsed = new_arena(t);
	t->text = (struct tpl_text){ .text = text,
		.len = len,
		.left = options->left && *options->left ? options->left : "{{",
		.right = options->right && *options->right ? options->right : "}}" };
	if (len < UINT32_MAX && arena_try(&t->parsed, parse, &p))
		return t;
	*ret_problem = mem_printf("parse: %s", t->parsed.exhausted ? limit_sentence(&t->parsed)
					       : p.problem         ? p.problem
								   : "the template is too large");
	template_free(t);
	return NULL;
}

void
template_free(struct template *t)
{
	if (!t)
		return;
	arena_done(&t->parsed);
	arena_done(&t->rendered);
	free(t);
}

static void
execute(void *run)
{
	struct tpl_run *r = run;
	struct go_value dot = go_nothing;

	if (r->data->dot)
		dot = go_try_json_integers(r->arena, go_text(r->data->dot), &r->problem);
	if (r->problem) {
		r->problem = tpl_hide_values(r, r->problem);
		arena_leave(r->arena);
	}
	r->scratch = go_map(r->arena, &go_type_dict);
	tpl_execute(r, tpl_find_tree(r->text, "", 0), dot);
}

/* The sentence without the values of variables, which the template itself may have. */
static const char *
redacted(struct tpl_run *run, const char *sentence)
{
	struct text out = { .arena = run->arena };
	const struct tpl_secret *s;

	while (*sentence) {
		STAILQ_FOREACH (s, &run->secrets, entry)
			if (*s->text && strncmp(sentence, s->text, strlen(s->text)) == 0)
				break;
		if (s) {
			text_add(&out, "[redacted]");
			sentence += strlen(s->text);
		} else {
			text_bytes(&out, sentence++, 1);
		}
	}
	return out.text ? out.text : "";
}

static void
collect_needs(struct tpl_run *run, struct template_result *ret)
{
	struct template_need *needs = arena_alloc(run->arena, run->n_needs * sizeof *needs);
	const struct tpl_need *n;

	STAILQ_FOREACH (n, &run->needs, entry) {
		needs[ret->n_needs++] = n->need;
		ret->n_missing += n->need.missing;
	}
	ret->needs = needs;
}

const struct template_result *
template_render(struct template *t, const struct template_data *data)
{
	struct text out = { .arena = &t->rendered };
	struct tpl_run run = { .arena = &t->rendered,
		.text = &t->text,
		.data = data,
		.missing_key_fails = t->missing_key_fails,
		.out = &out,
		.output_max = t->limits.output_bytes };

	arena_done(&t->rendered);
	t->rendered = new_arena(t);
	STAILQ_INIT(&run.needs);
	STAILQ_INIT(&run.secrets);
	t->result = (struct template_result){ 0 };
	if (!arena_try(&t->rendered, execute, &run))
		t->result.problem = arena_printf(&t->rendered, "execute: %s",
		    t->rendered.exhausted ? limit_sentence(&t->rendered)
					  : redacted(&run, run.problem));
	collect_needs(&run, &t->result);
	t->result.output = out.text ? out.text : "";
	t->result.len = out.len;
	return &t->result;
}
