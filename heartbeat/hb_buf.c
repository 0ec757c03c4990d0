// SPDX-License-Identifier: Apache-2.0
/* hb_buf.c: a byte queue. Runs in: heartbeat. */
#include "heartbeat/hb_buf.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

#define SIZE_MIN 512

void
hb_buf_add(struct hb_buf *b, const void *data, size_t len)
{
	size_t before = b->data ? (size_t)(b->data - b->memory) : 0;
	uint8_t *memory;
	size_t size;

	if (len == 0)
		return;
	if (len > b->size - before - b->len) {
		size = b->len + len + b->len / 2;
		if (size < SIZE_MIN)
			size = SIZE_MIN;
		memory = mem_alloc(size);
		if (b->len)
			memcpy(memory, b->data, b->len);
		free(b->memory);
		b->memory = b->data = memory;
		b->size = size;
	}
	memcpy(b->data + b->len, data, len);
	b->len += len;
}

void
hb_buf_drop(struct hb_buf *b, size_t n)
{
	b->len -= n;
	b->data += n;
	if (b->len == 0)
		hb_buf_done(b);
}

void
hb_buf_done(struct hb_buf *b)
{
	free(b->memory);
	*b = (struct hb_buf){ 0 };
}
