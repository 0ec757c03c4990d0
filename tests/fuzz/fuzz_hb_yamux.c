// SPDX-License-Identifier: Apache-2.0
/*
 * fuzz_hb_yamux.c: yamux from a hostile server, in pieces of any size, while both sides use
 * streams. The first byte chooses how. Runs in: a fuzzer.
 */
#include <string.h>

#include "heartbeat/hb_yamux.h"
#include "tests/fuzz/fuzz.h"

#define OURS 4

static struct {
	struct hb_stream *ours[OURS];
	unsigned manners; /* bits: reject, accept, answer, close */
} peer;

static void
forget(const struct hb_stream *s)
{
	for (int i = 0; i < OURS; i++)
		if (peer.ours[i] == s)
			peer.ours[i] = NULL;
}

static bool
on_open(struct hb_stream *s)
{
	HOLDS(s->id % 2 == 0 && s->session->n_inbound <= HB_YAMUX_INBOUND_MAX);
	return !(peer.manners & 1);
}

static void
on_data(struct hb_stream *s, const uint8_t *data, size_t len)
{
	HOLDS(len > 0 && len <= HB_YAMUX_WINDOW && !s->ended);
	HOLDS(s->recv_window <= HB_YAMUX_WINDOW);
	if (peer.manners & 2)
		hb_stream_took(s, len);
	if (peer.manners & 4)
		(void)hb_stream_write(s, data, len);
	if ((peer.manners & 8) && data[0] == 0xff) {
		forget(s);
		hb_stream_close(s);
	}
}

static void
on_fin(struct hb_stream *s)
{
	HOLDS(s->ended);
	if (peer.manners & 8) {
		forget(s);
		hb_stream_close(s);
	}
}

static void
on_reset(struct hb_stream *s)
{
	forget(s);
}

static void
on_window(struct hb_stream *s)
{
	(void)hb_stream_write(s, "window", 6);
}

static void
on_pong(struct hb_yamux *y, uint32_t value)
{
	(void)value;
	HOLDS(y->user == &peer);
}

static void
on_go_away(struct hb_yamux *y, uint32_t code)
{
	(void)code;
	HOLDS(hb_stream_open(y, NULL) == NULL);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct hb_yamux_ops ops = { on_open, on_data, on_fin, on_reset, on_window,
		on_pong, on_go_away };
	struct err e = { 0 };
	struct hb_yamux y;
	size_t piece;

	if (size < 1)
		return 0;
	memset(&peer, 0, sizeof peer);
	peer.manners = data[0];
	piece = 1 + (data[0] >> 4) * 7u;
	hb_yamux_init(&y, &ops, &peer);
	for (int i = 0; i < OURS; i++) {
		peer.ours[i] = hb_stream_open(&y, NULL);
		HOLDS(peer.ours[i] && hb_stream_write(peer.ours[i], "\1", 1) == 1);
	}
	for (size_t at = 1, n; at < size; at += n) {
		n = size - at < piece ? size - at : piece;
		/* The reader limits the memory: it reads nothing while the output is full. */
		if (hb_yamux_is_full(&y))
			hb_buf_drop(&y.out, y.out.len);
		if (hb_yamux_input(&y, data + at, n, &e) < 0) {
			HOLDS(e.code < 0 && e.msg[0]);
			break;
		}
		HOLDS(y.n_inbound <= HB_YAMUX_INBOUND_MAX);
	}
	for (int i = 0; i < OURS; i++)
		if (peer.ours[i])
			hb_stream_close(peer.ours[i]);
	HOLDS(y.n_unacked == 0);
	hb_yamux_done(&y);
	return 0;
}
