// SPDX-License-Identifier: Apache-2.0
/* http_answer.c: parses as much of an HTTP answer as a check needs. Runs in: supervisor,
 * check-helper. */
#include "common/http_answer.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

void
http_answer_init(struct http_answer *a, bool no_body)
{
	memset(a, 0, sizeof *a);
	a->no_body = no_body;
}

static int
bad(struct err *e, const char *what)
{
	return err_say(e, -EBADMSG, "malformed HTTP response: %s", what);
}

/* Parses "HTTP/1.1 200 OK", and the variants that old servers send. */
static int
take_status(struct http_answer *a, struct err *e)
{
	const char *at = a->line;

	if (strncmp(at, "HTTP/1.", 7) != 0 || !isdigit((unsigned char)at[7]) || at[8] != ' ')
		return bad(e, "it does not begin with HTTP/1.x and a status");
	at += 9;
	if (!isdigit((unsigned char)at[0]) || !isdigit((unsigned char)at[1]) ||
	    !isdigit((unsigned char)at[2]) || (at[3] && at[3] != ' '))
		return bad(e, "its status is not a number of three digits");
	a->status = (at[0] - '0') * 100 + (at[1] - '0') * 10 + (at[2] - '0');
	if (a->status < 100)
		return bad(e, "its status is below 100");
	a->state = HTTP_HEADERS;
	return 0;
}

static int
take_length(struct http_answer *a, const char *value, struct err *e)
{
	uint64_t n = 0;

	if (!*value)
		return bad(e, "Content-Length is empty");
	for (; *value; value++) {
		if (*value < '0' || *value > '9' || n > (UINT64_MAX - 9) / 10)
			return bad(e, "Content-Length is not a number");
		n = n * 10 + (uint64_t)(*value - '0');
	}
	if (a->has_length && a->left != n)
		return bad(e, "it has two lengths");
	a->has_length = true;
	a->left = n;
	return 0;
}

static int
take_header(struct http_answer *a, struct err *e)
{
	char *colon = strchr(a->line, ':'), *value, *end;

	if (!colon || colon == a->line)
		return bad(e, "a header has no name");
	*colon = '\0';
	value = colon + 1 + strspn(colon + 1, " \t");
	for (end = value + strlen(value); end > value && (end[-1] == ' ' || end[-1] == '\t');)
		*--end = '\0';
	if (strcasecmp(a->line, "Content-Length") == 0)
		return take_length(a, value, e);
	if (strcasecmp(a->line, "Transfer-Encoding") == 0) {
		if (strcasecmp(value, "chunked") != 0)
			return bad(e, "its transfer encoding is unknown");
		a->chunked = true;
	}
	if (strcasecmp(a->line, "Location") == 0 && strlen(value) < sizeof a->location)
		(void)strcpy(a->location, value);
	return 0;
}

static int
complete(struct http_answer *a)
{
	a->state = HTTP_COMPLETE;
	return 1;
}

/* Handles the empty line after the headers. */
static int
end_head(struct http_answer *a)
{
	bool redirect = a->status / 100 == 3 && a->location[0];

	if (a->status / 100 == 1 && a->status != 101) {
		a->state = HTTP_STATUS_LINE; /* an interim answer: the final one follows */
		a->location[0] = '\0';
		a->chunked = a->has_length = false;
		return 0;
	}
	if (a->no_body || redirect || a->status == 200 || a->status == 101 || a->status == 204 ||
	    a->status == 304)
		return complete(a);
	if (a->chunked)
		a->state = HTTP_CHUNK_SIZE;
	else if (a->has_length && a->left == 0)
		return complete(a);
	else
		a->state = HTTP_BODY;
	return 0;
}

static int
take_chunk_size(struct http_answer *a, struct err *e)
{
	const char *at = a->line;
	uint64_t n = 0;

	if (!isxdigit((unsigned char)*at))
		return bad(e, "a chunk has no size");
	for (; isxdigit((unsigned char)*at); at++) {
		if (n >> 60)
			return bad(e, "a chunk's size is out of range");
		n = n << 4 |
		    (uint64_t)(isdigit((unsigned char)*at) ? *at - '0' : (*at | 0x20) - 'a' + 10);
	}
	at += strspn(at, " \t");
	if (*at && *at != ';')
		return bad(e, "a chunk's size is not a number");
	if (n == 0)
		return complete(a);
	a->left = n;
	a->state = HTTP_CHUNK;
	return 0;
}

static int
take_line(struct http_answer *a, struct err *e)
{
	switch (a->state) {
	case HTTP_STATUS_LINE:
		return take_status(a, e);
	case HTTP_HEADERS:
		return a->line[0] ? take_header(a, e) : end_head(a);
	case HTTP_CHUNK_SIZE:
		return take_chunk_size(a, e);
	case HTTP_CHUNK_END:
		if (a->line[0])
			return bad(e, "a chunk is longer than its size");
		a->state = HTTP_CHUNK_SIZE;
		return 0;
	default:
		return bad(e, "a line is where none can be");
	}
}

/* Consumes bytes up to the end of the line, at most len; sets *ret_used to their number. */
static int
feed_line(struct http_answer *a, const char *data, size_t len, size_t *ret_used, struct err *e)
{
	const char *end = memchr(data, '\n', len);
	size_t n = end ? (size_t)(end - data) : len;
	int r;

	*ret_used = end ? n + 1 : n;
	a->head_len += *ret_used;
	if (a->line_len + n >= sizeof a->line || a->head_len > HTTP_HEAD_MAX)
		return bad(e, "its headers are too long");
	memcpy(a->line + a->line_len, data, n);
	a->line_len += n;
	if (!end)
		return 0;
	if (a->line_len > 0 && a->line[a->line_len - 1] == '\r')
		a->line_len--;
	a->line[a->line_len] = '\0';
	if (strlen(a->line) != a->line_len)
		return bad(e, "a line has a NUL");
	a->line_len = 0;
	r = take_line(a, e);
	/* HTTP_HEAD_MAX does not apply to chunk lines; HTTP_BODY_KEPT ends a body of many small
	 * chunks. */
	if (a->state == HTTP_CHUNK)
		a->head_len = 0;
	return r;
}

static size_t
feed_body(struct http_answer *a, const char *data, size_t len)
{
	bool bounded = a->state == HTTP_CHUNK || a->has_length;
	size_t n = bounded && a->left < len ? (size_t)a->left : len;
	size_t room = HTTP_BODY_KEPT - a->body_len, kept = n < room ? n : room;

	for (size_t i = 0; i < kept; i++)
		a->body[a->body_len++] = data[i] ? data[i] : ' ';
	if (bounded)
		a->left -= n;
	if (a->body_len == HTTP_BODY_KEPT || (a->state == HTTP_BODY && bounded && a->left == 0))
		a->state = HTTP_COMPLETE;
	else if (a->state == HTTP_CHUNK && a->left == 0)
		a->state = HTTP_CHUNK_END;
	return n;
}

int
http_answer_feed(struct http_answer *a, const char *data, size_t len, struct err *e)
{
	size_t used;
	int r;

	while (len > 0 && a->state != HTTP_COMPLETE) {
		if (a->state == HTTP_BODY || a->state == HTTP_CHUNK) {
			used = feed_body(a, data, len);
		} else {
			r = feed_line(a, data, len, &used, e);
			if (r < 0)
				return r;
		}
		data += used;
		len -= used;
	}
	return a->state == HTTP_COMPLETE;
}

int
http_answer_end(struct http_answer *a, struct err *e)
{
	if (a->state == HTTP_COMPLETE || (a->state == HTTP_BODY && !a->has_length))
		return complete(a);
	if (a->state == HTTP_STATUS_LINE && a->head_len == 0)
		return err_say(e, -EBADMSG, "EOF");
	return err_say(e, -EBADMSG, "unexpected EOF");
}
