/* SPDX-License-Identifier: Apache-2.0 */
/* hcl_parse.c: parses bodies: attributes and blocks. Runs in: cli, job-parser. */
#include <stdio.h>
#include <string.h>

#include "hcl/hcl_doc.h"
#include "hcl/hcl_scan.h"

static const struct hcl_body *read_body(struct hcl_parser *p, int end, struct hcl_range from);

const struct hcl_attr *
hcl_body_attr(const struct hcl_body *body, const char *name)
{
	for (const struct hcl_attr *a = body->attrs; a; a = a->next)
		if (strcmp(a->name, name) == 0)
			return a;
	return NULL;
}

static void
end_item(struct hcl_parser *p, const char *after)
{
	if (p->tok.kind == HCL_TOK_NEWLINE)
		hcl_scan(p);
	else if (p->tok.kind != HCL_TOK_END)
		hcl_expected(p, hcl_printf(p->h, "a new line after %s", after));
}

static struct hcl_attr *
read_attr(struct hcl_parser *p, const struct hcl_body *body, const char *name, struct hcl_range at)
{
	struct hcl_attr *a = hcl_new_object(p->h, struct hcl_attr);
	const struct hcl_attr *before = hcl_body_attr(body, name);

	if (before)
		hcl_error(p->h, at, "attribute \"%s\" is set twice; the first time in line %u",
		    name, hcl_position(before->name_at.source, before->name_at.from).line);
	a->name = name;
	a->name_at = at;
	hcl_scan(p);
	a->expr = hcl_read_expr(p);
	return a;
}

/* A block of one line, such as `network { mode = "host" }`, has at most one attribute. */
static const struct hcl_body *
read_line_body(struct hcl_parser *p, struct hcl_range open)
{
	struct hcl_body *body = hcl_new_object(p->h, struct hcl_body);

	if (p->tok.kind == HCL_TOK_WORD) {
		char *name = hcl_token_text(p);
		struct hcl_range at = p->tok.at;

		hcl_scan(p);
		if (p->tok.kind != '=')
			hcl_expected(
			    p, "\"=\": a block on one line has one attribute and no blocks");
		body->attrs = read_attr(p, body, name, at);
	}
	if (p->tok.kind != '}')
		hcl_expected(p, "\"}\": a block on one line has one attribute and no blocks");
	hcl_scan(p);
	body->at = hcl_range_since(p, open);
	return body;
}

static const struct hcl_body *
read_block_body(struct hcl_parser *p)
{
	struct hcl_range open = p->tok.at;
	const struct hcl_body *body;

	hcl_enter(p->h, open);
	hcl_scan(p);
	if (p->tok.kind == HCL_TOK_NEWLINE) {
		hcl_scan(p);
		body = read_body(p, '}', open);
	} else {
		body = read_line_body(p, open);
	}
	hcl_exit(p->h);
	return body;
}

static struct hcl_label
read_label(struct hcl_parser *p)
{
	struct hcl_label label = { .at = p->tok.at };

	if (p->tok.kind == HCL_TOK_WORD) {
		label.text = hcl_token_text(p);
		hcl_scan(p);
	} else {
		label.text = hcl_read_quoted_text(p, "a label");
		label.at = hcl_range_since(p, label.at);
	}
	return label;
}

static struct hcl_block *
read_block(struct hcl_parser *p, const char *type, struct hcl_range at)
{
	struct hcl_block *b = hcl_new_object(p->h, struct hcl_block);
	struct hcl_label labels[8];

	b->type = type;
	b->type_at = at;
	while (p->tok.kind == HCL_TOK_QUOTE || p->tok.kind == HCL_TOK_WORD) {
		if (b->n_labels == sizeof labels / sizeof labels[0])
			hcl_fail(p->h, p->tok.at, "a block has at most %zu labels",
			    sizeof labels / sizeof labels[0]);
		labels[b->n_labels++] = read_label(p);
	}
	b->labels = memcpy(hcl_alloc(p->h, b->n_labels * sizeof labels[0]), labels,
	    b->n_labels * sizeof labels[0]);
	if (p->tok.kind != '{')
		hcl_expected(p, b->n_labels > 0
				    ? "\"{\" or another label of the block"
				    : "\"=\" for an attribute, or a label or \"{\" for a block");
	b->body = read_block_body(p);
	return b;
}

static void
read_item(
    struct hcl_parser *p, struct hcl_body *body, struct hcl_attr ***attr, struct hcl_block ***block)
{
	struct hcl_range at = p->tok.at;
	char *name;

	if (p->tok.kind != HCL_TOK_WORD)
		hcl_expected(p, "an attribute or a block");
	name = hcl_token_text(p);
	hcl_scan(p);
	if (p->tok.kind == '=') {
		**attr = read_attr(p, body, name, at);
		*attr = &(**attr)->next;
		end_item(p, "the value");
	} else {
		**block = read_block(p, name, at);
		*block = &(**block)->next;
		end_item(p, "the block");
	}
}

static const struct hcl_body *
read_body(struct hcl_parser *p, int end, struct hcl_range from)
{
	struct hcl_body *body = hcl_new_object(p->h, struct hcl_body);
	struct hcl_attr **attr = &body->attrs;
	struct hcl_block **block = &body->blocks;

	for (;;) {
		if (p->tok.kind == HCL_TOK_NEWLINE) {
			hcl_scan(p);
			continue;
		}
		if (p->tok.kind == end)
			break;
		if (p->tok.kind == HCL_TOK_END)
			hcl_fail(p->h, from,
			    "this block has no end: expected \"}\" before the end of the file");
		read_item(p, body, &attr, &block);
	}
	hcl_scan(p);
	body->at = hcl_range_since(p, from);
	return body;
}

enum source_kind { SOURCE_BODY, SOURCE_EXPR, SOURCE_TEMPLATE };

struct parse_call {
	const struct hcl_source *source;
	enum source_kind kind;
	const struct hcl_body *body;
	const struct hcl_expr *expr;
};

static void
check_source(struct hcl *h, const struct hcl_source *source)
{
	struct hcl_range at = { 0 };

	if (source->len > h->limits.source_bytes)
		hcl_fail(h, at, "%s: %zu bytes are more than the %zu that a file may have",
		    source->name, source->len, h->limits.source_bytes);
	hcl_check_utf8(h, source);
}

static uint32_t
skip_mark(const struct hcl_source *source)
{
	return source->len >= 3 && memcmp(source->text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

static void
parse(struct hcl *h, void *arg)
{
	struct parse_call *c = arg;
	struct hcl_parser p = { .h = h, .source = c->source, .newlines = c->kind == SOURCE_BODY };

	check_source(h, c->source);
	if (c->kind == SOURCE_TEMPLATE) {
		c->expr = hcl_read_whole_template(&p, skip_mark(c->source));
		return;
	}
	hcl_scan_from(&p, skip_mark(c->source));
	if (c->kind == SOURCE_BODY) {
		c->body = read_body(&p, HCL_TOK_END, p.tok.at);
		return;
	}
	c->expr = hcl_read_expr(&p);
	if (p.tok.kind != HCL_TOK_END)
		hcl_expected(&p, "the end of the expression");
}

/* Returns whether there were no errors. */
static bool
parse_as(
    struct hcl *h, enum source_kind kind, const struct hcl_source *source, struct parse_call *ret)
{
	unsigned errors = h->n_errors;

	*ret = (struct parse_call){ .source = source, .kind = kind };
	return hcl_try(h, parse, ret) && h->n_errors == errors;
}

const struct hcl_body *
hcl_parse_body(struct hcl *h, const struct hcl_source *source)
{
	struct parse_call c;

	return parse_as(h, SOURCE_BODY, source, &c) ? c.body : NULL;
}

const struct hcl_expr *
hcl_parse_expr(struct hcl *h, const struct hcl_source *source)
{
	struct parse_call c;

	return parse_as(h, SOURCE_EXPR, source, &c) ? c.expr : NULL;
}

const struct hcl_expr *
hcl_parse_template(struct hcl *h, const struct hcl_source *source)
{
	struct parse_call c;

	return parse_as(h, SOURCE_TEMPLATE, source, &c) ? c.expr : NULL;
}
