/* SPDX-License-Identifier: Apache-2.0 */
/* hcl_text.c: a text that grows in the arena. Runs in: all users of hcl/ that evaluate. */
#include "hcl/hcl_text.h"

#include <stdio.h>
#include <string.h>

void
hcl_text_bytes(struct hcl_text *t, const char *bytes, size_t n)
{
	if (t->len + n + 1 > t->size) {
		size_t size = 2 * (t->len + n) + 32;
		char *grown = hcl_alloc(t->h, size);

		if (t->len > 0)
			memcpy(grown, t->text, t->len);
		t->text = grown;
		t->size = size;
	}
	if (n > 0)
		memcpy(t->text + t->len, bytes, n);
	t->len += n;
	t->text[t->len] = '\0';
}

void
hcl_text_add(struct hcl_text *t, const char *s)
{
	hcl_text_bytes(t, s, strlen(s));
}

void
hcl_text_quote(struct hcl_text *t, const char *s, size_t len)
{
	char escape[8];

	hcl_text_add(t, "\"");
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)s[i];

		if (c == '"' || c == '\\')
			(void)snprintf(escape, sizeof escape, "\\%c", c);
		else if (c < 0x20 || c == 0x7f)
			(void)snprintf(escape, sizeof escape, "\\x%02x", c);
		else
			(void)snprintf(escape, sizeof escape, "%c", c);
		hcl_text_add(t, escape);
	}
	hcl_text_add(t, "\"");
}

struct hcl_value *
hcl_text_value(struct hcl_text *t)
{
	struct hcl_value *v = hcl_new_object(t->h, struct hcl_value);

	v->kind = HCL_STRING;
	v->string = t->text ? t->text : "";
	v->len = t->len;
	return v;
}
