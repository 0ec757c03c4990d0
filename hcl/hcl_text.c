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
