/* SPDX-License-Identifier: Apache-2.0 */
/* cli_http.h: an HTTP/1.1 client over a unix socket, one request per connection. Runs in: drover.
 */
#ifndef DROVER_CLI_CLI_HTTP_H
#define DROVER_CLI_CLI_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

#define CLI_HTTP_LINE_MAX 4096

enum cli_http_state {
	CLI_HTTP_STATUS_LINE,
	CLI_HTTP_HEADERS,
	CLI_HTTP_BODY,       /* left bytes of it are to come */
	CLI_HTTP_BODY_EOF,   /* ends with the connection */
	CLI_HTTP_CHUNK_SIZE, /* the line before a chunk */
	CLI_HTTP_CHUNK,
	CLI_HTTP_CHUNK_END, /* the empty line after it */
	CLI_HTTP_TRAILERS,
	CLI_HTTP_DONE,
};

/* Takes a piece of the body; a negative return ends the parsing with it. */
typedef int cli_http_body_fn(void *arg, const void *data, size_t len, struct err *e);

struct cli_http_parser {
	enum cli_http_state state;
	int status; /* 0 until the headers are whole */
	int status_seen;
	bool chunked, has_length;
	uint64_t left;
	uint64_t length;
	unsigned n_headers;
	size_t line_len;
	char line[CLI_HTTP_LINE_MAX];
	cli_http_body_fn *on_body;
	void *arg;
};

void cli_http_parser_init(struct cli_http_parser *p, cli_http_body_fn *on_body, void *arg);
/* Takes the next bytes of the answer. 0, or -EPROTO with a sentence for what is no HTTP. What
 * follows the end is ignored. */
int cli_http_parser_feed(struct cli_http_parser *p, const void *data, size_t len, struct err *e);
/* The connection has ended. 0 when the answer is whole, else -ECONNRESET. */
int cli_http_parser_end(struct cli_http_parser *p, struct err *e);

/* Connects to the socket at path (of any length). Returns a descriptor or -errno with a sentence.
 */
int cli_http_connect(const char *path, struct err *e);
/* The header with the operator's token, with its end of line; "" without one. 0 with *ret, the
 * caller's to free; negative with *e. */
int cli_http_token(char **ret, struct err *e);
/*
 * Sends one request; body may be NULL. deadline_ms is of cli_now_ms(). 0, or -errno: -EPIPE and
 * -ECONNRESET when the agent went away, -ETIMEDOUT.
 */
int cli_http_send(int fd, const char *method, const char *target, const char *body, size_t len,
    uint64_t deadline_ms, struct err *e);
/*
 * Waits for bytes until deadline_ms (UINT64_MAX: for ever) and feeds them. 1 when the answer is
 * whole, 0 when more is to come, or -errno.
 */
int cli_http_recv(int fd, struct cli_http_parser *p, uint64_t deadline_ms, struct err *e);

uint64_t cli_now_ms(void);

#endif
