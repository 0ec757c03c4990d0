// SPDX-License-Identifier: Apache-2.0
/* causes.c: a list of causes. Runs in: supervisor. */
#include "supervisor/alloc/causes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

#define TEXT_MAX 2048

void
causes_add(struct causes *c, int64_t time_ns, const char *task, const char *fmt, ...)
{
	char text[TEXT_MAX + 2];
	va_list ap;
	size_t len;

	va_start(ap, fmt);
	(void)vsnprintf(text, TEXT_MAX, fmt, ap);
	va_end(ap);
	len = strlen(text);
	while (len > 0 && (text[len - 1] == '.' || text[len - 1] == '\n'))
		len--;
	(void)memcpy(text + len, ".", 2);
	c->v = mem_resize(c->v, c->n + 1, sizeof *c->v);
	c->v[c->n++] = (struct cause){ .time_ns = time_ns, .task = task, .text = mem_strdup(text) };
}

void
causes_sort(struct causes *c)
{
	for (size_t i = 1; i < c->n; i++) {
		struct cause moved = c->v[i];
		size_t at = i;

		for (; at > 0 && c->v[at - 1].time_ns != 0 &&
		       (moved.time_ns == 0 || c->v[at - 1].time_ns < moved.time_ns);
		     at--)
			c->v[at] = c->v[at - 1];
		c->v[at] = moved;
	}
}

void
causes_done(struct causes *c)
{
	for (size_t i = 0; i < c->n; i++)
		free(c->v[i].text);
	free(c->v);
	*c = (struct causes){ 0 };
}
