/* SPDX-License-Identifier: Apache-2.0 */
/* hcl_json.c: writes values as JSON, in the way of Go's encoding/json. Runs in: cli, job-parser. */
#include <stdio.h>
#include <string.h>

#include "common/utf8.h"
#include "hcl/hcl_doc.h"
#include "hcl/hcl_number.h"
#include "lang/text.h"

static void append_json(struct text *t, const struct hcl_value *v);

/* <, > and & are escaped too, and so are U+2028 and U+2029, which end lines in JavaScript. */
static size_t
append_char(struct text *t, const char *s, size_t left)
{
	static const char names[] = "\"\"\\\\\nn\rr\tt\bb\ff";
	unsigned char c = (unsigned char)*s;
	size_t n = utf8_char_length(s, left);
	char buf[8];

	for (const char *x = names; *x; x += 2)
		if ((unsigned char)*x == c) {
			text_bytes(t, (char[]){ '\\', x[1] }, 2);
			return 1;
		}
	if (n == 3 && c == 0xe2 && (unsigned char)s[1] == 0x80 &&
	    ((unsigned char)s[2] & 0xfe) == 0xa8) {
		text_add(t, (unsigned char)s[2] == 0xa8 ? "\\u2028" : "\\u2029");
		return 3;
	}
	if (n == 0) {
		text_add(t, "\\ufffd");
		return 1;
	}
	if (n > 1 || (c >= 0x20 && c != '<' && c != '>' && c != '&')) {
		text_bytes(t, s, n);
		return n;
	}
	(void)snprintf(buf, sizeof buf, "\\u%04x", c);
	text_add(t, buf);
	return 1;
}

static void
append_string(struct text *t, const char *s, size_t len)
{
	text_add(t, "\"");
	for (size_t i = 0; i < len;)
		i += append_char(t, s + i, len - i);
	text_add(t, "\"");
}

static void
append_elements(struct text *t, const struct hcl_value *v)
{
	bool mapping = hcl_is_mapping(v);

	text_add(t, mapping ? "{" : "[");
	for (size_t i = 0; i < v->len; i++) {
		if (i > 0)
			text_add(t, ",");
		if (mapping) {
			append_string(t, v->members[i].key, v->members[i].key_len);
			text_add(t, ":");
		}
		append_json(t, mapping ? v->members[i].value : v->items[i]);
	}
	text_add(t, mapping ? "}" : "]");
}

static void
append_number(struct text *t, const struct hcl_number *n)
{
	const struct hcl_range nowhere = { 0 };

	if (mpfr_inf_p(n->v))
		hcl_fail(hcl_of_arena(t->arena), nowhere, "an infinite number cannot become JSON");
	text_add(t, hcl_number_text(hcl_of_arena(t->arena), n));
}

static void
append_json(struct text *t, const struct hcl_value *v)
{
	hcl_step(hcl_of_arena(t->arena), 1);
	if (v->state == HCL_NULL)
		text_add(t, "null");
	else if (v->kind == HCL_BOOL)
		text_add(t, v->boolean ? "true" : "false");
	else if (v->kind == HCL_NUMBER)
		append_number(t, v->number);
	else if (v->kind == HCL_STRING)
		append_string(t, v->string, v->len);
	else
		append_elements(t, v);
}

char *
hcl_to_json(struct hcl *h, const struct hcl_value *v, size_t *ret_len)
{
	const struct hcl_range nowhere = { 0 };
	struct text t = { .arena = hcl_arena(h) };

	if (!hcl_is_wholly_known(v))
		hcl_fail(h, nowhere, "a value that is not known yet cannot become JSON");
	append_json(&t, v);
	*ret_len = t.len;
	return t.text;
}
