/* SPDX-License-Identifier: Apache-2.0 */
/* text.c: a text that grows in the arena. Runs in: cli, job-parser, template-renderer,
 * supervisor (ACL policies), the launcher's configuration child. */
#include "lang/text.h"

#include <string.h>

void
text_bytes(struct text *t, const char *bytes, size_t n)
{
	if (t->len + n + 1 > t->size) {
		size_t size = 2 * (t->len + n) + 32;
		char *grown = arena_alloc(t->arena, size);

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
text_add(struct text *t, const char *s)
{
	text_bytes(t, s, strlen(s));
}
