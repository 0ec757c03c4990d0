/* SPDX-License-Identifier: Apache-2.0 */
/* cli_http.h: an HTTP/1.1 client over a unix socket, one request per connection. Runs in: cli. */
#ifndef DROVER_CLI_CLI_HTTP_H
#define DROVER_CLI_CLI_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

#define CLI_HTTP_LINE_MAX  4096
#define CLI_HTTP_TOKEN_MAX 512

enum cli_http_state {
	CLI_HTTP_STATUS_LINE,
	CLI_HTTP_HEADERS,
	CLI_HTTP_BODY,       /* `left` bytes of the body are still to come */
	CLI_HTTP_BODY_EOF,   /* the body ends with the connection */
	CLI_HTTP_CHUNK_SIZE, /* the size line before a chunk */
	CLI_HTTP_CHUNK,
	CLI_HTTP_CHUNK_END, /* the empty line after it */
	CLI_HTTP_TRAILERS,
	CLI_HTTP_DONE,
};

/* Gets a piece of the body; a negative return ends the parsing with that error. */
typedef int cli_http_body_fn(void *arg, const void *data, size_t len, struct err *e);

struct cli_http_parser {
	enum cli_http_state state;
	int status; /* 0 until the headers are complete */
	int status_seen;
	bool chunked, has_length;
	uint64_t left;
	uint64_t length;
	char next_token[CLI_HTTP_TOKEN_MAX]; /* X-Nomad-NextToken; "": none, or it was too long */
	unsigned n_headers;
	size_t line_len;
	char line[CLI_HTTP_LINE_MAX];
	cli_http_body_fn *on_body;
	void *arg;
};

void cli_http_parser_init(struct cli_http_parser *p, cli_http_body_fn *on_body, void *arg);
/* Parses the next bytes of the answer. Returns 0, or -EPROTO with a sentence if they are not HTTP.
 * Bytes after the end are ignored. */
int cli_http_parser_feed(struct cli_http_parser *p, const void *data, size_t len, struct err *e);
/* To be called at the end of the connection. Returns 0 if the answer is complete, else -ECONNRESET.
 */
int cli_http_parser_end(struct cli_http_parser *p, struct err *e);

/* Connects to the socket at path (of any length). Returns a descriptor or -errno with a sentence.
 */
int cli_http_connect(const char *path, struct err *e);
/* Formats the header with the operator's token and its end of line, "" without a token. Returns 0
 * with *ret, which the caller frees; negative with *e. */
int cli_http_token(char **ret, struct err *e);
/*
 * Sends one request; headers (lines with their ends) and body may be NULL. deadline_ms is of
 * clock_ms(). 0, or -errno: -EPIPE and -ECONNRESET when the agent went away, -ETIMEDOUT.
 */
int cli_http_send(int fd, const char *method, const char *target, const char *headers,
    const char *body, size_t len, uint64_t deadline_ms, struct err *e);
/* Waits for bytes until deadline_ms (UINT64_MAX: no deadline) and parses them. Returns 1 if the
 * answer is complete, 0 if more is to come, or -errno. */
int cli_http_recv(int fd, struct cli_http_parser *p, uint64_t deadline_ms, struct err *e);

#endif
