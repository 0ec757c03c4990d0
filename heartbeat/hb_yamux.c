// SPDX-License-Identifier: Apache-2.0
/* hb_yamux.c: the client side of yamux. Runs in: heartbeat. */
#include "heartbeat/hb_yamux.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

#define OUT_MAX   (256u * 1024)
#define FRAME_MAX 16384u /* of our Data frames, so that an urgent frame waits for at most one */
#define ID_MAX    0xfffffff0u

enum frame_type { FRAME_DATA, FRAME_WINDOW, FRAME_PING, FRAME_GO_AWAY };
enum frame_flag { FLAG_SYN = 1, FLAG_ACK = 2, FLAG_FIN = 4, FLAG_RST = 8 };

struct frame {
	unsigned type, flags;
	uint32_t id, length;
};

static void
put_frame(struct hb_yamux *y, struct frame f, const void *data)
{
	uint16_t flags = htobe16((uint16_t)f.flags);
	uint32_t id = htobe32(f.id), length = htobe32(f.length);
	uint8_t head[12] = { 0, (uint8_t)f.type };

	memcpy(head + 2, &flags, sizeof flags);
	memcpy(head + 4, &id, sizeof id);
	memcpy(head + 8, &length, sizeof length);
	hb_buf_add(&y->out, head, sizeof head);
	if (data)
		hb_buf_add(&y->out, data, f.length);
}

static struct frame
get_frame(const uint8_t head[12])
{
	uint16_t flags;
	uint32_t id, length;

	memcpy(&flags, head + 2, sizeof flags);
	memcpy(&id, head + 4, sizeof id);
	memcpy(&length, head + 8, sizeof length);
	return (struct frame){ head[1], be16toh(flags), be32toh(id), be32toh(length) };
}

static struct hb_stream *
find_stream(struct hb_yamux *y, uint32_t id)
{
	struct hb_stream *s;

	LIST_FOREACH (s, &y->streams, link)
		if (s->id == id)
			return s;
	return NULL;
}

static struct hb_stream *
add_stream(struct hb_yamux *y, uint32_t id, void *user)
{
	struct hb_stream *s = mem_new(struct hb_stream);

	*s = (struct hb_stream){ .session = y,
		.user = user,
		.id = id,
		.send_window = HB_YAMUX_WINDOW,
		.recv_window = HB_YAMUX_WINDOW };
	LIST_INSERT_HEAD(&y->streams, s, link);
	return s;
}

static bool
is_inbound(const struct hb_stream *s)
{
	return s->id % 2 == 0;
}

static void
free_stream(struct hb_stream *s)
{
	struct hb_yamux *y = s->session;

	LIST_REMOVE(s, link);
	if (is_inbound(s))
		y->n_inbound--;
	else if (!s->acked)
		y->n_unacked--;
	free(s);
}

/* --- input --- */

/* Handles the peer's SYN. If there are too many streams, the new one is reset. */
static int
on_syn(struct hb_yamux *y, uint32_t id, struct err *e)
{
	struct hb_stream *s;

	if (id == 0 || id % 2 != 0 || find_stream(y, id))
		return err_say(
		    e, -EPROTO, "the server opened stream %u, which has an invalid number", id);
	if (y->n_inbound == HB_YAMUX_INBOUND_MAX) {
		put_frame(y, (struct frame){ FRAME_WINDOW, FLAG_RST, id, 0 }, NULL);
		return 0;
	}
	s = add_stream(y, id, NULL);
	s->opened = true;
	y->n_inbound++;
	if (!y->ops->on_open(s)) {
		hb_stream_reset(s);
		return 0;
	}
	put_frame(y, (struct frame){ FRAME_WINDOW, FLAG_ACK, id, 0 }, NULL);
	return 0;
}

static void
on_fin(struct hb_yamux *y, uint32_t id)
{
	struct hb_stream *s = find_stream(y, id);

	if (!s || s->ended)
		return;
	s->ended = true;
	y->ops->on_fin(s);
}

static void
on_rst(struct hb_yamux *y, uint32_t id)
{
	struct hb_stream *s = find_stream(y, id);

	if (!s)
		return;
	y->ops->on_reset(s);
	if (find_stream(y, id) == s)
		free_stream(s);
}

static int
on_data_head(struct hb_yamux *y, const struct frame *f, struct err *e)
{
	struct hb_stream *s = find_stream(y, f->id);

	if (s && f->length > s->recv_window)
		return err_say(e, -EPROTO, "the server sent %u bytes on stream %u, %u were allowed",
		    f->length, f->id, s->recv_window);
	if (s)
		s->recv_window -= f->length;
	y->data_id = f->id;
	y->data_left = f->length;
	y->data_fin = f->flags & FLAG_FIN;
	return 0;
}

static int
on_window(struct hb_yamux *y, const struct frame *f, struct err *e)
{
	struct hb_stream *s = find_stream(y, f->id);

	if (!s || f->length == 0)
		return 0;
	if (f->length > UINT32_MAX - s->send_window)
		return err_say(e, -EPROTO, "the server's window on stream %u overflows", f->id);
	s->send_window += f->length;
	y->ops->on_window(s);
	return 0;
}

/* Any frame for a stream of ours shows that the peer has accepted it. */
static void
note_ack(struct hb_yamux *y, uint32_t id)
{
	struct hb_stream *s = find_stream(y, id);

	if (!s || s->acked || is_inbound(s))
		return;
	s->acked = true;
	y->n_unacked--;
}

static int
on_stream_frame(struct hb_yamux *y, const struct frame *f, struct err *e)
{
	int r = f->flags & FLAG_SYN ? on_syn(y, f->id, e) : 0;

	if (!(f->flags & FLAG_RST))
		note_ack(y, f->id);
	if (r == 0)
		r = f->type == FRAME_DATA ? on_data_head(y, f, e) : on_window(y, f, e);
	if (r == 0 && (f->flags & FLAG_RST))
		on_rst(y, f->id);
	else if (r == 0 && (f->flags & FLAG_FIN) && f->length == 0)
		on_fin(y, f->id);
	else if (r == 0 && (f->flags & FLAG_FIN) && f->type == FRAME_WINDOW)
		on_fin(y, f->id);
	return r;
}

static int
on_frame(struct hb_yamux *y, const struct frame *f, struct err *e)
{
	switch (f->type) {
	case FRAME_DATA:
	case FRAME_WINDOW:
		return on_stream_frame(y, f, e);
	case FRAME_PING:
		if (f->flags & FLAG_SYN)
			put_frame(y, (struct frame){ FRAME_PING, FLAG_ACK, 0, f->length }, NULL);
		else if (f->flags & FLAG_ACK)
			y->ops->on_pong(y, f->length);
		return 0;
	case FRAME_GO_AWAY:
		y->gone_away = true;
		y->ops->on_go_away(y, f->length);
		return 0;
	default:
		return err_say(e, -EPROTO, "the server sent a frame of type %u", f->type);
	}
}

/* Passes payload to its stream, if that still exists. */
static void
on_payload(struct hb_yamux *y, const uint8_t *data, size_t len)
{
	struct hb_stream *s = find_stream(y, y->data_id);

	y->data_left -= (uint32_t)len;
	if (s && !s->ended)
		y->ops->on_data(s, data, len);
	if (y->data_left == 0 && y->data_fin)
		on_fin(y, y->data_id);
}

int
hb_yamux_input(struct hb_yamux *y, const uint8_t *data, size_t len, struct err *e)
{
	while (len > 0) {
		size_t n;

		if (y->data_left > 0) {
			n = len < y->data_left ? len : y->data_left;
			on_payload(y, data, n);
		} else {
			struct frame f;
			int r = 0;

			n = sizeof y->head - y->n_head;
			n = len < n ? len : n;
			memcpy(y->head + y->n_head, data, n);
			y->n_head += n;
			if (y->n_head == sizeof y->head) {
				y->n_head = 0;
				f = get_frame(y->head);
				r = y->head[0] == 0
					? on_frame(y, &f, e)
					: err_say(e, -EPROTO,
					      "the server uses version %u of yamux, not 0",
					      y->head[0]);
			}
			if (r < 0)
				return r;
		}
		data += n;
		len -= n;
	}
	return 0;
}

/* --- exported --- */

void
hb_yamux_init(struct hb_yamux *y, const struct hb_yamux_ops *ops, void *user)
{
	*y = (struct hb_yamux){ .ops = ops, .user = user, .next_id = 1 };
}

void
hb_yamux_done(struct hb_yamux *y)
{
	while (!LIST_EMPTY(&y->streams))
		free_stream(LIST_FIRST(&y->streams));
	hb_buf_done(&y->out);
}

bool
hb_yamux_is_full(const struct hb_yamux *y)
{
	return y->out.len >= OUT_MAX;
}

uint32_t
hb_yamux_ping(struct hb_yamux *y)
{
	put_frame(y, (struct frame){ FRAME_PING, FLAG_SYN, 0, y->next_ping }, NULL);
	return y->next_ping++;
}

struct hb_stream *
hb_stream_open(struct hb_yamux *y, void *user)
{
	struct hb_stream *s;

	if (y->gone_away || y->next_id >= ID_MAX || y->n_unacked >= HB_YAMUX_UNACKED_MAX)
		return NULL;
	s = add_stream(y, y->next_id, user);
	y->next_id += 2;
	y->n_unacked++;
	return s;
}

size_t
hb_stream_write(struct hb_stream *s, const void *data, size_t len)
{
	struct hb_yamux *y = s->session;
	const uint8_t *at = data;
	size_t done = 0;

	while (done < len && s->send_window > 0 && !hb_yamux_is_full(y)) {
		size_t n = len - done;

		if (n > FRAME_MAX)
			n = FRAME_MAX;
		if (n > s->send_window)
			n = s->send_window;
		put_frame(y,
		    (struct frame){ FRAME_DATA, s->opened ? 0 : FLAG_SYN, s->id, (uint32_t)n },
		    at + done);
		s->opened = true;
		s->send_window -= (uint32_t)n;
		done += n;
	}
	return done;
}

void
hb_stream_took(struct hb_stream *s, size_t len)
{
	s->taken += (uint32_t)len;
	if (s->taken < HB_YAMUX_WINDOW / 2 || s->ended)
		return;
	put_frame(s->session, (struct frame){ FRAME_WINDOW, 0, s->id, s->taken }, NULL);
	s->recv_window += s->taken;
	s->taken = 0;
}

void
hb_stream_close(struct hb_stream *s)
{
	if (s->opened)
		put_frame(s->session, (struct frame){ FRAME_WINDOW, FLAG_FIN, s->id, 0 }, NULL);
	free_stream(s);
}

void
hb_stream_reset(struct hb_stream *s)
{
	if (s->opened)
		put_frame(s->session, (struct frame){ FRAME_WINDOW, FLAG_RST, s->id, 0 }, NULL);
	free_stream(s);
}
