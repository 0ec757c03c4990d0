// SPDX-License-Identifier: Apache-2.0
/* lis_answer.c: reads an answer of the supervisor. Its head has a form that libmicrohttpd makes;
 * what is sent to the client is only its status, the type and the body. Runs in: listener. */
#include "listener/lis_answer.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define HELD_MAX (128u * 1024 * 1024) /* bytes of all answers; not of small ones */
#define SMALL    (64u * 1024)

static size_t held;

struct lis_answer *
lis_answer_ref(struct lis_answer *a)
{
	a->refs++;
	return a;
}

void
lis_answer_unref(struct lis_answer *a)
{
	if (!a || --a->refs > 0)
		return;
	held -= a->size;
	free(a);
}

size_t
lis_answers_held(void)
{
	return held;
}

/* Returns the value of a header, whose length is *ret_len; NULL if there is none. head begins after
 * the first line and ends with an empty line. */
static const char *
find_header(const char *head, const char *name, size_t *ret_len)
{
	for (const char *at = head; *at && *at != '\r'; at = strstr(at, "\r\n") + 2) {
		size_t n = strlen(name);

		if (strncasecmp(at, name, n) != 0 || at[n] != ':')
			continue;
		at += n + 1;
		at += strspn(at, " ");
		*ret_len = strcspn(at, "\r");
		return at;
	}
	return NULL;
}

/* Returns whether the head, which has a NUL at its end, has only printable ASCII and CR LF. */
static bool
is_text(const char *head, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (head[i] == '\r' && head[i + 1] == '\n')
			i++;
		else if (head[i] < ' ' || head[i] > '~')
			return false;
	}
	return true;
}

static int
read_length(struct lis_reader *r, const char *lines, struct err *e)
{
	size_t len = 0, n = 0;
	const char *value = find_header(lines, "Transfer-Encoding", &len);

	r->chunked = value && len == 7 && memcmp(value, "chunked", 7) == 0;
	if (r->chunked)
		return 0;
	value = find_header(lines, "Content-Length", &len);
	if (!value || len == 0 || len > 12 || strspn(value, "0123456789") != len)
		return err_say(e, -EBADMSG, "an answer has no valid length");
	for (size_t i = 0; i < len; i++)
		n = n * 10 + (size_t)(value[i] - '0');
	r->left = n;
	return n > LIS_ANSWER_MAX ? err_say(e, -EFBIG, "an answer is larger than 64 MiB") : 0;
}

/* Makes memory for a body of this size. */
static int
resize(struct lis_reader *r, size_t size, struct err *e)
{
	size_t before = r->answer ? r->answer->size : 0;
	struct lis_answer *a;

	if (size > LIS_ANSWER_MAX)
		return err_say(e, -EFBIG, "an answer is larger than 64 MiB");
	if (size > SMALL && held - before + size > HELD_MAX)
		return err_say(e, -ENOMEM, "the answers that clients read take too much memory");
	a = realloc(r->answer, sizeof *a + size);
	if (!a)
		return err_set(e, -ENOMEM, "keep an answer of %zu bytes", size);
	if (!r->answer)
		*a = (struct lis_answer){ .refs = 1 };
	held += size - before;
	a->size = size;
	r->answer = a;
	return 0;
}

/* The head is complete, ends with an empty line and a NUL. */
static int
read_head(struct lis_reader *r, struct err *e)
{
	const char *lines = strstr(r->head, "\r\n") + 2, *type;
	size_t type_len = 0;
	int status;

	if (strncmp(r->head, "HTTP/1.1 ", 9) != 0 || strspn(r->head + 9, "0123456789") != 3)
		return err_say(e, -EBADMSG, "an answer has no status");
	status = atoi(r->head + 9);
	if (status < 200 || status > 599)
		return err_say(e, -EBADMSG, "an answer has status %d", status);
	if (read_length(r, lines, e) < 0 || resize(r, r->chunked ? SMALL : r->left, e) < 0)
		return e->code;
	r->answer->status = status;
	type = find_header(lines, "Content-Type", &type_len);
	if (type && type_len < sizeof r->answer->type)
		memcpy(r->answer->type, type, type_len);
	return 0;
}

/* Adds bytes up to the end of the head. Returns how many were used, or -errno. */
static ssize_t
feed_head(struct lis_reader *r, const char *data, size_t len, struct err *e)
{
	size_t room = sizeof r->head - 1 - r->head_len, before = r->head_len;
	const char *end;

	if (len > room)
		len = room;
	memcpy(r->head + before, data, len);
	r->head_len += len;
	r->head[r->head_len] = '\0';
	end = memmem(r->head, r->head_len, "\r\n\r\n", 4);
	if (!end && r->head_len == sizeof r->head - 1)
		return err_say(e, -EBADMSG, "the head of an answer is too long");
	if (!end)
		return (ssize_t)len;
	r->head_len = (size_t)(end + 4 - r->head);
	r->head[r->head_len] = '\0';
	if (!is_text(r->head, r->head_len))
		return err_say(e, -EBADMSG, "the head of an answer is not text");
	return read_head(r, e) < 0 ? e->code : (ssize_t)(r->head_len - before);
}

/* Adds bytes of the body, of which at most r->left come. */
static int
feed_body(struct lis_reader *r, const char *data, size_t len, struct err *e)
{
	size_t need = r->answer->len + len;

	if (need > r->answer->size) {
		size_t size = 2 * r->answer->size;

		if (size > LIS_ANSWER_MAX)
			size = LIS_ANSWER_MAX;
		if (resize(r, size < need ? need : size, e) < 0)
			return e->code;
	}
	memcpy(r->answer->body + r->answer->len, data, len);
	r->answer->len += len;
	r->left -= len;
	return 0;
}

static int
hex_value(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = c ? strchr(digits, c | (c >= 'A' && c <= 'F' ? 0x20 : 0)) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* Handles one byte between chunks. Returns 1 at the end of the answer, 0, or -errno. */
static int
feed_between(struct lis_reader *r, char c, struct err *e)
{
	int digit = r->part == LIS_CHUNK_SIZE && !r->has_cr ? hex_value(c) : -1;

	if (digit >= 0 && r->digits < 8) {
		r->left = r->left << 4 | (size_t)digit;
		r->digits++;
		return 0;
	}
	if (!r->has_cr && c == '\r' && (r->part != LIS_CHUNK_SIZE || r->digits > 0)) {
		r->has_cr = true;
		return 0;
	}
	if (!r->has_cr || c != '\n')
		return err_say(e, -EBADMSG, "an answer has an invalid chunk");
	r->has_cr = false;
	r->digits = 0;
	if (r->part == LIS_TRAILER)
		return 1;
	r->part = r->part == LIS_CHUNK_END ? LIS_CHUNK_SIZE : r->left > 0 ? LIS_CHUNK : LIS_TRAILER;
	return 0;
}

static int
feed_chunks(struct lis_reader *r, const char *data, size_t len, struct err *e)
{
	int status = 0;

	for (size_t at = 0; at < len && status >= 0;) {
		size_t n = len - at < r->left ? len - at : r->left;

		if (status == 1)
			return err_say(e, -EBADMSG, "an answer is longer than it says");
		if (r->part != LIS_CHUNK) {
			status = feed_between(r, data[at++], e);
			continue;
		}
		status = feed_body(r, data + at, n, e);
		at += n;
		if (r->left == 0)
			r->part = LIS_CHUNK_END;
	}
	return status;
}

int
lis_reader_feed(struct lis_reader *r, const char *data, size_t len, struct err *e)
{
	if (!r->answer) {
		ssize_t used = feed_head(r, data, len, e);

		if (used < 0 || !r->answer)
			return used < 0 ? (int)used : 0;
		data += used;
		len -= (size_t)used;
	}
	if (r->chunked)
		return feed_chunks(r, data, len, e);
	if (len > r->left)
		return err_say(e, -EBADMSG, "an answer is longer than it says");
	return feed_body(r, data, len, e) < 0 ? e->code : r->left == 0;
}

struct lis_answer *
lis_reader_take(struct lis_reader *r)
{
	struct lis_answer *a = r->answer;

	r->answer = NULL;
	lis_reader_done(r);
	return a;
}

void
lis_reader_done(struct lis_reader *r)
{
	lis_answer_unref(r->answer);
	*r = (struct lis_reader){ 0 };
}
