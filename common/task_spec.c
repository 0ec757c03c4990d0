// SPDX-License-Identifier: Apache-2.0
/* task_spec.c: the strings of one start, written and read. Runs in: supervisor (writes), executor
 * (reads). */
#include "proto/task_spec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/fd.h"

static size_t
padded(size_t len)
{
	return (len + 1 + 3) & ~(size_t)3;
}

void
spec_add(struct spec_writer *w, enum spec_tag tag, const char *text, size_t len)
{
	uint32_t head[2] = { tag, (uint32_t)len };
	size_t need = sizeof head + padded(len);

	if (w->failed)
		return;
	if (len > SPEC_BYTES_MAX || w->len + need > SPEC_BYTES_MAX) {
		w->failed = -E2BIG;
		return;
	}
	if (w->len + need > w->size) {
		size_t size = (w->len + need) * 2;
		char *buf = realloc(w->buf, size);

		if (!buf) {
			w->failed = -ENOMEM;
			return;
		}
		w->buf = buf;
		w->size = size;
	}
	memcpy(w->buf + w->len, head, sizeof head);
	memset(w->buf + w->len + sizeof head, 0, padded(len));
	memcpy(w->buf + w->len + sizeof head, text, len);
	w->len += need;
}

void
spec_add_str(struct spec_writer *w, enum spec_tag tag, const char *text)
{
	spec_add(w, tag, text, strlen(text));
}

int
spec_finish(struct spec_writer *w)
{
	int r = w->failed;

	if (!r)
		r = fd_memfd_sealed("task-spec", w->buf, w->len);
	free(w->buf);
	*w = (struct spec_writer){ 0 };
	return r;
}

int
spec_next(const void *spec, size_t size, size_t *at, struct spec_entry *ret)
{
	const char *base = spec;
	uint32_t head[2];
	size_t need;

	if (*at == size)
		return 0;
	if (*at > size || size - *at < sizeof head)
		return -EBADMSG;
	memcpy(head, base + *at, sizeof head);
	if (head[0] < SPEC_COMMAND || head[0] > SPEC_SECRET_DATA || head[1] > SPEC_BYTES_MAX)
		return -EBADMSG;
	need = padded(head[1]);
	if (size - *at - sizeof head < need)
		return -EBADMSG;
	*ret =
	    (struct spec_entry){ .tag = head[0], .len = head[1], .text = base + *at + sizeof head };
	for (size_t i = head[1]; i < need; i++)
		if (ret->text[i] != '\0')
			return -EBADMSG;
	if (head[0] != SPEC_SECRET_DATA && memchr(ret->text, '\0', head[1]))
		return -EBADMSG;
	*at += sizeof head + need;
	return 1;
}
