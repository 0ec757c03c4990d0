/* SPDX-License-Identifier: Apache-2.0 */
/* hcl_text.c: a text that grows in the arena. Runs in: cli, job-parser, supervisor (ACL policies),
 * the launcher's configuration child. */
#include "hcl/hcl_text.h"

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

struct hcl_value *
hcl_text_value(struct hcl_text *t)
{
	struct hcl_value *v = hcl_new_object(t->h, struct hcl_value);

	v->kind = HCL_STRING;
	v->string = t->text ? t->text : "";
	v->len = t->len;
	return v;
}
