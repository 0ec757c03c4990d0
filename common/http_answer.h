/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_answer.h: reads as much of an HTTP answer as a check needs: its status, where it redirects
 * to, and the beginning of its body. Whatever comes, it takes no more memory than this struct.
 * Runs in: supervisor, check-helper.
 */
#ifndef DROVER_COMMON_HTTP_ANSWER_H
#define DROVER_COMMON_HTTP_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

#define HTTP_LINE_MAX   8192
#define HTTP_HEAD_MAX   65536 /* all lines before the body together */
#define HTTP_TARGET_MAX 2048
#define HTTP_BODY_KEPT  3072

enum http_answer_state {
	HTTP_STATUS_LINE,
	HTTP_HEADERS,
	HTTP_BODY,       /* of a known length, or until the end of the connection */
	HTTP_CHUNK_SIZE, /* a line */
	HTTP_CHUNK,
	HTTP_CHUNK_END, /* the line break behind it */
	HTTP_COMPLETE,
};

struct http_answer {
	enum http_answer_state state;
	bool no_body; /* it answers HEAD */
	bool chunked, has_length;
	uint64_t left; /* of the body or the chunk */
	size_t head_len, line_len, body_len;
	int status;
	char location[HTTP_TARGET_MAX]; /* "": none, or longer than this */
	char line[HTTP_LINE_MAX];
	char body[HTTP_BODY_KEPT + 1]; /* text: NUL bytes are spaces */
};

/* no_body: the request was HEAD. */
void http_answer_init(struct http_answer *a, bool no_body);
/* 1: nothing more of it is needed (200, a redirect, or a body of HTTP_BODY_KEPT); 0: more; -EBADMSG
 * with the sentence. */
int http_answer_feed(struct http_answer *a, const char *data, size_t len, struct err *e);
/* The connection has ended: 1, or -EBADMSG when something is missing. */
int http_answer_end(struct http_answer *a, struct err *e);

#endif
