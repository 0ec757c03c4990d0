/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcl_func_csv.c: reads comma-separated values (RFC 4180), as Go's encoding/csv does: lines may end
 * with CR LF, empty lines are left out, quotes are refused where they are no field's first and last
 * character or doubled. Runs in: cli, job-parser.
 */
#include "hcl/hcl_func.h"
#include "hcl/hcl_normal.h"
#include "lang/text.h"

struct reader {
	struct hcl_call *c;
	const char *s;
	size_t at, len;
};

/* The length of the line's end here: LF, CR LF, the end of the text, or CR before that; -1 if none
 * is here. */
static int
line_end(const struct reader *r)
{
	if (r->at == r->len)
		return 0;
	if (r->s[r->at] == '\n')
		return 1;
	if (r->s[r->at] != '\r')
		return -1;
	if (r->at + 1 == r->len)
		return 1;
	return r->s[r->at + 1] == '\n' ? 2 : -1;
}

/* Reads a field after its first quote, with the quote at its end. */
static void
read_quoted(struct reader *r, struct text *t)
{
	for (;; r->at++) {
		if (r->at == r->len)
			hcl_refuse_argument(r->c, 0, "a quote has no end");
		if (r->s[r->at] == '\r' && line_end(r) > 0) {
			text_bytes(t, "\n", r->at + 1 < r->len);
			r->at = r->at + 1 < r->len ? r->at + 1 : r->at;
			continue;
		}
		if (r->s[r->at] != '"') {
			text_bytes(t, r->s + r->at, 1);
			continue;
		}
		r->at++;
		if (r->at == r->len || r->s[r->at] != '"')
			return;
		text_add(t, "\"");
	}
}

static void
read_plain(struct reader *r, struct text *t)
{
	size_t from = r->at;

	for (; line_end(r) < 0 && r->s[r->at] != ','; r->at++)
		if (r->s[r->at] == '"')
			hcl_refuse_argument(r->c, 0, "a quote is inside a field without quotes");
	text_bytes(t, r->s + from, r->at - from);
}

/* Returns false at the end of the text. */
static bool
read_record(struct reader *r, struct hcl_items *ret)
{
	*ret = (struct hcl_items){ .h = r->c->h };
	while (r->at < r->len && line_end(r) > 0)
		r->at += (size_t)line_end(r);
	if (r->at == r->len)
		return false;
	for (;;) {
		struct text t = { .arena = hcl_arena(r->c->h) };

		if (r->at < r->len && r->s[r->at] == '"') {
			r->at++;
			read_quoted(r, &t);
		} else {
			read_plain(r, &t);
		}
		hcl_items_add(ret, hcl_text_value(&t));
		if (line_end(r) >= 0)
			break;
		if (r->s[r->at] != ',')
			hcl_refuse_argument(r->c, 0, "text follows a quoted field");
		r->at++;
	}
	r->at += (size_t)line_end(r);
	return true;
}

static struct hcl_value *
make_row(struct reader *r, const struct hcl_items *header, const struct hcl_items *row)
{
	struct hcl_member *members = hcl_alloc(r->c->h, header->n * sizeof *members);

	if (row->n != header->n)
		hcl_refuse_argument(
		    r->c, 0, "a row has %zu fields, the header %zu", row->n, header->n);
	for (size_t i = 0; i < header->n; i++)
		members[i] =
		    (struct hcl_member){ header->v[i]->string, header->v[i]->len, row->v[i] };
	return hcl_object(r->c->h, members, header->n);
}

struct hcl_value *
hcl_fn_csvdecode(struct hcl_call *c)
{
	struct reader r = { .c = c, .s = c->args[0]->string, .len = c->args[0]->len };
	struct hcl_items header, row, rows = { .h = c->h };
	const struct hcl_type *type;
	struct hcl_value *model;

	hcl_count_bytes(c->h, r.len);
	if (!read_record(&r, &header))
		hcl_refuse_argument(c, 0, "the line with the names of the columns is missing");
	model = make_row(&r, &header, &header);
	if (model->len != header.n)
		hcl_refuse_argument(c, 0, "two columns have the same name");
	type = hcl_type_of(c->h, model);
	while (read_record(&r, &row))
		hcl_items_add(&rows, make_row(&r, &header, &row));
	return hcl_list(c->h, type, rows.v, rows.n);
}
