/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_answer.h: parses as much of an HTTP answer as a check needs: its status, where it redirects
 * to, and the beginning of its body. It never uses more memory than this struct. Runs in:
 * supervisor, check-helper.
 */
#ifndef DROVER_COMMON_HTTP_ANSWER_H
#define DROVER_COMMON_HTTP_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

#define HTTP_LINE_MAX   8192
#define HTTP_HEAD_MAX   65536 /* bytes of all lines before the body */
#define HTTP_TARGET_MAX 2048
#define HTTP_BODY_KEPT  3072

enum http_answer_state {
	HTTP_STATUS_LINE,
	HTTP_HEADERS,
	HTTP_BODY,       /* of a known length, or up to the end of the connection */
	HTTP_CHUNK_SIZE, /* the line with a chunk's size */
	HTTP_CHUNK,
	HTTP_CHUNK_END, /* the line break after a chunk */
	HTTP_COMPLETE,
};

struct http_answer {
	enum http_answer_state state;
	bool no_body; /* the answer is to a HEAD request */
	bool chunked, has_length;
	uint64_t left; /* remaining bytes of the body or the chunk */
	size_t head_len, line_len, body_len;
	int status;
	char location[HTTP_TARGET_MAX]; /* "" if there is none or it is too long */
	char line[HTTP_LINE_MAX];
	char body[HTTP_BODY_KEPT + 1]; /* text: NUL bytes are spaces */
};

/* Prepares a for one answer. no_body: the request was HEAD. */
void http_answer_init(struct http_answer *a, bool no_body);
/* Parses len bytes. Returns 1 if nothing more is needed (200, a redirect, or a body of
 * HTTP_BODY_KEPT), 0 if more is, or -EBADMSG with *e. */
int http_answer_feed(struct http_answer *a, const char *data, size_t len, struct err *e);
/* Handles the end of the connection. Returns 1, or -EBADMSG with *e if the answer is incomplete. */
int http_answer_end(struct http_answer *a, struct err *e);

#endif
