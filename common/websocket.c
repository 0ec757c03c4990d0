// SPDX-License-Identifier: Apache-2.0
/* websocket.c: writes and parses frames of RFC 6455. Runs in: supervisor, cli. */
#include "common/websocket.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base64.h"
#include "common/cleanup.h"
#include "common/sha1.h"

#define FIN         0x80
#define RESERVED    0x70
#define OPCODE      0x0f
#define MASKED      0x80
#define LENGTH      0x7f
#define LENGTH_16   126
#define LENGTH_64   127
#define CONTROL_BIT 8
#define ACCEPT_GUID "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

size_t
ws_head(uint8_t head[WS_HEAD_MAX], enum ws_opcode op, size_t len, const uint8_t *mask)
{
	size_t n = 2, bytes = len < LENGTH_16 ? 0 : len < 65536 ? 2 : 8;

	head[0] = (uint8_t)(FIN | op);
	head[1] = (uint8_t)(bytes == 0 ? len : bytes == 2 ? LENGTH_16 : LENGTH_64);
	for (size_t i = bytes; i-- > 0;)
		head[n++] = (uint8_t)((uint64_t)len >> 8 * i);
	if (mask) {
		head[1] |= MASKED;
		memcpy(head + n, mask, 4);
		n += 4;
	}
	return n;
}

void
ws_mask(void *data, size_t len, const uint8_t mask[4], size_t at)
{
	uint8_t *b = data;

	for (size_t i = 0; i < len; i++)
		b[i] ^= mask[(at + i) & 3];
}

/* Returns the size of the head according to its first two bytes; 2 before they have arrived. */
static size_t
head_size(const struct ws_reader *r)
{
	uint8_t n = r->head[1] & LENGTH;

	if (r->head_len < 2)
		return 2;
	return 2u + (n == LENGTH_16 ? 2 : n == LENGTH_64 ? 8 : 0) + (r->head[1] & MASKED ? 4 : 0);
}

static bool
is_control(enum ws_opcode op)
{
	return op & CONTROL_BIT;
}

/* Parses a complete head and checks that the frame is allowed here. */
static int
take_head(struct ws_reader *r)
{
	size_t size = head_size(r), at = 2;
	uint64_t len = r->head[1] & LENGTH;
	bool masked = r->head[1] & MASKED;

	if (len >= LENGTH_16)
		for (len = 0; at < size - (masked ? 4 : 0); at++)
			len = len << 8 | r->head[at];
	r->last = r->head[0] & FIN;
	r->frame_op = (enum ws_opcode)(r->head[0] & OPCODE);
	if ((r->head[0] & RESERVED) || masked != r->masked || len > INT64_MAX)
		return -EPROTO;
	switch (r->frame_op) {
	case WS_CLOSE:
	case WS_PING:
	case WS_PONG:
		if (!r->last || len > WS_CONTROL_MAX)
			return -EPROTO;
		break;
	case WS_TEXT:
	case WS_BINARY:
		if (r->in_message)
			return -EPROTO;
		r->message_op = r->frame_op;
		r->message_len = 0;
		break;
	case WS_CONTINUATION:
		if (!r->in_message)
			return -EPROTO;
		break;
	default:
		return -EPROTO;
	}
	if (!is_control(r->frame_op) && len > r->max - r->message_len)
		return -EMSGSIZE;
	if (masked)
		memcpy(r->mask, r->head + size - 4, 4);
	r->body_len = len;
	r->at = 0;
	r->in_body = true;
	return 0;
}

/* Makes sure that n more bytes and a NUL fit. Grows with the bytes that arrived, not with the
 * announced length. */
static int
reserve(struct ws_reader *r, size_t n)
{
	size_t need = r->message_len + n + 1, size = need + need / 2;
	char *grown;

	if (need <= r->message_size)
		return 0;
	grown = realloc(r->message, size);
	if (!grown)
		return -ENOMEM;
	r->message = grown;
	r->message_size = size;
	return 0;
}

static int
take_body(struct ws_reader *r, const uint8_t *data, size_t n)
{
	char *to;

	if (is_control(r->frame_op)) {
		to = r->control + r->at;
	} else {
		if (reserve(r, n) < 0)
			return -ENOMEM;
		to = r->message + r->message_len;
		r->message_len += n;
	}
	if (n > 0)
		memcpy(to, data, n);
	if (r->masked)
		ws_mask(to, n, r->mask, r->at);
	to[n] = '\0';
	r->at += n;
	return 0;
}

/* Returns whether the frame was the last of a message. */
static bool
end_frame(struct ws_reader *r, struct ws_message *ret)
{
	r->in_body = false;
	r->head_len = 0;
	if (is_control(r->frame_op)) {
		*ret = (struct ws_message){ r->frame_op, r->control, r->at };
		return true;
	}
	r->in_message = !r->last;
	if (r->last)
		*ret = (struct ws_message){ r->message_op, r->message, r->message_len };
	return r->last;
}

ssize_t
ws_read(struct ws_reader *r, const void *data, size_t len, struct ws_message *ret)
{
	const uint8_t *b = data;
	size_t used = 0, n;
	int err;

	*ret = (struct ws_message){ 0 };
	while (used < len) {
		if (!r->in_body) {
			r->head[r->head_len++] = b[used++];
			if (r->head_len < 2 || r->head_len < head_size(r))
				continue;
			if ((err = take_head(r)) < 0)
				return err;
		}
		n = r->body_len - r->at < len - used ? (size_t)(r->body_len - r->at) : len - used;
		if ((err = take_body(r, b + used, n)) < 0)
			return err;
		used += n;
		if (r->at == r->body_len && end_frame(r, ret))
			break;
	}
	return (ssize_t)used;
}

void
ws_reader_done(struct ws_reader *r)
{
	free_p(&r->message);
	r->message_size = r->message_len = 0;
}

void
ws_accept(const char *key, char ret[WS_ACCEPT_SIZE])
{
	uint8_t digest[SHA1_SIZE];
	struct sha1 s;

	sha1_init(&s);
	sha1_add(&s, key, strlen(key));
	sha1_add(&s, ACCEPT_GUID, sizeof ACCEPT_GUID - 1);
	sha1_end(&s, digest);
	ret[base64_encode(digest, sizeof digest, ret)] = '\0';
}
