// SPDX-License-Identifier: Apache-2.0
/* fuzz_websocket.c: frames of a websocket, in pieces, from a client and from a server. Runs in: a
 * fuzzer. */
#include <string.h>

#include "common/websocket.h"
#include "tests/fuzz/fuzz.h"

#define MESSAGE_MAX 4096

/* The result for these bytes. */
struct outcome {
	ssize_t r;
	unsigned n;
	uint64_t sum;
};

static void
note(struct outcome *o, const struct ws_message *m)
{
	HOLDS(m->op != WS_CONTINUATION && m->data[m->len] == '\0');
	HOLDS(m->len <= (m->op >= WS_CLOSE ? WS_CONTROL_MAX : MESSAGE_MAX));
	o->n++;
	o->sum = o->sum * 31 + (unsigned)m->op;
	for (size_t i = 0; i < m->len; i++)
		o->sum = o->sum * 31 + (uint8_t)m->data[i];
}

static void
read_all(const uint8_t *data, size_t size, size_t step, bool masked, struct outcome *o)
{
	struct ws_reader r = { .masked = masked, .max = MESSAGE_MAX };
	struct ws_message m;

	*o = (struct outcome){ 0 };
	for (size_t at = 0; at < size && o->r >= 0;) {
		size_t len = size - at < step ? size - at : step;

		o->r = ws_read(&r, data + at, len, &m);
		HOLDS(o->r <= (ssize_t)len && (m.data || o->r < 0 || (size_t)o->r == len));
		if (m.data)
			note(o, &m);
		at += o->r > 0 ? (size_t)o->r : 0;
	}
	o->r = o->r < 0 ? o->r : 0;
	ws_reader_done(&r);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct outcome whole, pieces;

	if (size < 1)
		return 0;
	for (int masked = 0; masked < 2; masked++) {
		/* The result does not depend on the size of the pieces. */
		read_all(data + 1, size - 1, size, masked, &whole);
		read_all(data + 1, size - 1, data[0] % 16 + 1, masked, &pieces);
		HOLDS(whole.r == pieces.r && whole.n == pieces.n && whole.sum == pieces.sum);
	}
	return 0;
}
