// SPDX-License-Identifier: Apache-2.0
/* fuzz_cli_http.c: the command's HTTP parser, with any answer in pieces. Runs in: a fuzzer. */
#include <string.h>

#include "cli/cli_http.h"
#include "tests/fuzz/fuzz.h"

static uint8_t body[1 << 16];
static size_t body_len;

static int
take_body(void *arg, const void *data, size_t len, struct err *e)
{
	struct cli_http_parser *p = arg;

	(void)e;
	HOLDS(p->status >= 200 && len > 0);
	for (size_t i = 0; i < len && body_len < sizeof body; i++)
		body[body_len++] = ((const uint8_t *)data)[i];
	return 0;
}

/* The result for one answer that came in pieces of `step` bytes. */
struct outcome {
	int r, end, status;
	enum cli_http_state state;
	size_t body_len;
	uint8_t body[sizeof body];
};

static void
parse(const uint8_t *data, size_t size, size_t step, struct outcome *o)
{
	struct cli_http_parser p;
	struct err e = { 0 };

	body_len = 0;
	cli_http_parser_init(&p, take_body, &p);
	o->r = 0;
	for (size_t at = 0; at < size && o->r == 0; at += step)
		o->r = cli_http_parser_feed(&p, data + at, size - at < step ? size - at : step, &e);
	HOLDS(o->r == 0 || (e.code == o->r && e.msg[0] != '\0'));
	o->end = o->r == 0 ? cli_http_parser_end(&p, &e) : 0;
	o->status = p.status;
	o->state = p.state;
	o->body_len = body_len;
	memcpy(o->body, body, body_len);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct outcome whole, pieces;

	if (size < 1)
		return 0;
	/* The result does not depend on the size of the pieces. */
	parse(data + 1, size - 1, size, &whole);
	parse(data + 1, size - 1, data[0] % 16 + 1, &pieces);
	HOLDS(whole.r == pieces.r && whole.end == pieces.end);
	HOLDS(whole.status == pieces.status && whole.state == pieces.state);
	HOLDS(whole.body_len == pieces.body_len &&
	      memcmp(whole.body, pieces.body, whole.body_len) == 0);
	return 0;
}
