/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcl_template.c: reads ${ } and %{ } in quoted texts and heredocs, and puts the parts of a
 * template (hcl_part.h) together as an expression. Runs in: cli, job-parser.
 */
#include <string.h>

#include "hcl/hcl_doc.h"
#include "hcl/hcl_normal.h"
#include "hcl/hcl_part.h"
#include "hcl/hcl_value.h"
#include "lang/text.h"

static void
read_for_part(struct hcl_reader *r, struct hcl_part *part)
{
	struct hcl_parser *p = r->p;

	part->kind = HCL_PART_FOR;
	hcl_scan(p);
	if (p->tok.kind != HCL_TOK_WORD)
		hcl_expected(p, "the name of a variable after \"for\"");
	part->value_name = hcl_token_text(p);
	hcl_scan(p);
	if (p->tok.kind == ',') {
		hcl_scan(p);
		if (p->tok.kind != HCL_TOK_WORD)
			hcl_expected(p, "the name of a variable after \",\"");
		part->key_name = part->value_name;
		part->value_name = hcl_token_text(p);
		hcl_scan(p);
	}
	if (!hcl_at_word(p, "in"))
		hcl_expected(p, "\"in\"");
	hcl_scan(p);
	part->expr = hcl_read_expr(p);
}

static void
read_directive(struct hcl_reader *r, struct hcl_part *part)
{
	static const struct {
		const char *word;
		enum hcl_part_kind kind;
	} plain[] = { { "else", HCL_PART_ELSE }, { "endif", HCL_PART_ENDIF },
		{ "endfor", HCL_PART_ENDFOR } };
	struct hcl_parser *p = r->p;

	if (hcl_at_word(p, "if")) {
		part->kind = HCL_PART_IF;
		hcl_scan(p);
		part->expr = hcl_read_expr(p);
		return;
	}
	if (hcl_at_word(p, "for")) {
		read_for_part(r, part);
		return;
	}
	for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++) {
		if (!hcl_at_word(p, plain[i].word))
			continue;
		part->kind = plain[i].kind;
		hcl_scan(p);
		return;
	}
	hcl_expected(p, "\"if\", \"else\", \"endif\", \"for\" or \"endfor\" after \"%{\"");
}

/* At ${ or %{. */
static void
read_sequence(struct hcl_reader *r)
{
	bool newlines = r->p->newlines, directive = hcl_reader_peek(r, 0) == '%',
	     strip = hcl_reader_peek(r, 2) == '~';
	struct hcl_range at = hcl_reader_here(r, 2);
	struct hcl_part *part;

	hcl_part_end_text(r);
	if (strip && r->previous && r->previous->kind == HCL_PART_TEXT)
		hcl_part_strip(r->previous);
	hcl_enter(r->p->h, at);
	r->p->newlines = false;
	hcl_scan_from(r->p, r->at + (strip ? 3 : 2));
	part = hcl_part_add(r, HCL_PART_VALUE, at);
	if (directive)
		read_directive(r, part);
	else
		part->expr = hcl_read_expr(r->p);
	if (r->p->tok.kind != '}' && r->p->tok.kind != HCL_TOK_STRIP_END)
		hcl_expected(r->p,
		    directive ? "\"}\" at the end of this %{ }" : "\"}\" at the end of this ${ }");
	r->strip_next = r->p->tok.kind == HCL_TOK_STRIP_END;
	r->at = r->p->next;
	part->at.to = r->at;
	r->p->newlines = newlines;
	r->text_from = r->at;
	hcl_exit(r->p->h);
}

static const struct hcl_expr *
text_expr(struct hcl *h, const char *text, size_t len, struct hcl_range at)
{
	struct hcl_expr *e = hcl_new_object(h, struct hcl_expr);

	e->kind = HCL_EXPR_LITERAL;
	e->at = at;
	e->value = hcl_normal_string(h, text, len);
	return e;
}

static const struct hcl_expr *build(
    struct hcl *h, struct hcl_part **at, struct hcl_range whole, bool inner);

static void
expect_part(struct hcl *h, const struct hcl_part *found, enum hcl_part_kind kind,
    const struct hcl_part *open, const char *what)
{
	if (found->kind != kind)
		hcl_fail(h, open->at, "this has no end: expected %%{ %s }", what);
}

static const struct hcl_expr *
build_if(struct hcl *h, struct hcl_part **at)
{
	struct hcl_expr *e = hcl_new_object(h, struct hcl_expr);
	const struct hcl_part *open = *at;

	e->kind = HCL_EXPR_CONDITIONAL;
	e->at = open->at;
	e->one = open->expr;
	*at = (*at)->next;
	e->two = build(h, at, open->at, true);
	if ((*at)->kind == HCL_PART_ELSE) {
		*at = (*at)->next;
		e->three = build(h, at, open->at, true);
	} else {
		e->three = text_expr(h, "", 0, open->at);
	}
	expect_part(h, *at, HCL_PART_ENDIF, open, "endif");
	*at = (*at)->next;
	return e;
}

static const struct hcl_expr *
build_for(struct hcl *h, struct hcl_part **at)
{
	struct hcl_expr *e = hcl_new_object(h, struct hcl_expr),
			*join = hcl_new_object(h, struct hcl_expr);
	struct hcl_for *loop = hcl_new_object(h, struct hcl_for);
	const struct hcl_part *open = *at;

	loop->key_name = open->key_name;
	loop->value_name = open->value_name;
	loop->source = open->expr;
	*at = (*at)->next;
	loop->value = build(h, at, open->at, true);
	expect_part(h, *at, HCL_PART_ENDFOR, open, "endfor");
	*at = (*at)->next;
	e->kind = HCL_EXPR_FOR;
	e->at = open->at;
	e->loop = loop;
	join->kind = HCL_EXPR_JOIN;
	join->at = open->at;
	join->one = e;
	return join;
}

static const struct hcl_expr *
build_part(struct hcl *h, struct hcl_part **at)
{
	const struct hcl_part *part = *at;

	switch (part->kind) {
	case HCL_PART_IF:
		return build_if(h, at);
	case HCL_PART_FOR:
		return build_for(h, at);
	case HCL_PART_TEXT:
		*at = part->next;
		return text_expr(h, part->text, part->len, part->at);
	default:
		*at = part->next;
		return part->expr;
	}
}

static bool
ends_template(const struct hcl_part *part)
{
	return part->kind == HCL_PART_END || part->kind == HCL_PART_ELSE ||
	       part->kind == HCL_PART_ENDIF || part->kind == HCL_PART_ENDFOR;
}

/* Makes the expression of the parts up to the end, or (inner) to the end of a directive. */
static const struct hcl_expr *
build(struct hcl *h, struct hcl_part **at, struct hcl_range whole, bool inner)
{
	struct hcl_expr *e = hcl_new_object(h, struct hcl_expr);
	struct hcl_item *items;
	size_t n = 0, size = 0;
	bool wraps = !inner && (*at)->kind == HCL_PART_VALUE && (*at)->next->kind == HCL_PART_END;

	for (const struct hcl_part *x = *at; x; x = x->next)
		size++;
	items = hcl_alloc(h, size * sizeof *items);
	hcl_enter(h, whole);
	while (!ends_template(*at))
		items[n++].value = build_part(h, at);
	hcl_exit(h);
	if (!inner && (*at)->kind != HCL_PART_END)
		hcl_fail(h, (*at)->at,
		    "this directive closes nothing: there is no %%{ if } or %%{ for } before it");
	e->at = whole;
	e->items = items;
	e->n = n;
	e->kind = wraps ? HCL_EXPR_WRAP : HCL_EXPR_TEMPLATE;
	if (wraps)
		e->one = items[0].value;
	if (n == 0)
		return text_expr(h, "", 0, whole);
	if (n == 1 && items[0].value->kind == HCL_EXPR_LITERAL && items[0].value->value && !wraps) {
		((struct hcl_expr *)items[0].value)->at = whole;
		return items[0].value;
	}
	return e;
}

const struct hcl_expr *
hcl_read_template(struct hcl_parser *p)
{
	struct hcl_reader r = { .p = p, .read_sequence = read_sequence, .last = &r.first };
	struct hcl_range open = p->tok.at;
	struct hcl_part *at;

	hcl_read_parts(&r);
	hcl_scan_from(p, r.at);
	at = r.first;
	return build(p->h, &at, (struct hcl_range){ p->source, open.from, r.at }, false);
}

const struct hcl_expr *
hcl_read_whole_template(struct hcl_parser *p, uint32_t from)
{
	struct hcl_reader r = {
		.p = p, .read_sequence = read_sequence, .last = &r.first, .at = from
	};
	struct hcl_part *at;

	hcl_read_all_parts(&r);
	at = r.first;
	return build(p->h, &at, (struct hcl_range){ p->source, from, r.at }, false);
}
