// SPDX-License-Identifier: Apache-2.0
/* test_hb_yamux.c: the client side of yamux against bytes of servers. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "heartbeat/hb_yamux.h"
#include "tests/unit/unit.h"

static struct {
	unsigned opened, fins, resets, windows, pongs, go_aways;
	uint32_t pong, code;
	bool refuse, take;
	uint8_t data[1 << 20];
	size_t len;
	struct hb_stream *last;
} seen;

static bool
on_open(struct hb_stream *s)
{
	seen.opened++;
	seen.last = s;
	return !seen.refuse;
}

static void
on_data(struct hb_stream *s, const uint8_t *data, size_t len)
{
	ck_assert_uint_le(seen.len + len, sizeof seen.data);
	memcpy(seen.data + seen.len, data, len);
	seen.len += len;
	if (seen.take)
		hb_stream_took(s, len);
}

static void
on_fin(struct hb_stream *s)
{
	seen.fins++;
}

static void
on_reset(struct hb_stream *s)
{
	seen.resets++;
}

static void
on_window(struct hb_stream *s)
{
	seen.windows++;
}

static void
on_pong(struct hb_yamux *y, uint32_t value)
{
	seen.pongs++;
	seen.pong = value;
}

static void
on_go_away(struct hb_yamux *y, uint32_t code)
{
	seen.go_aways++;
	seen.code = code;
}

static const struct hb_yamux_ops ops = { on_open, on_data, on_fin, on_reset, on_window, on_pong,
	on_go_away };
static struct hb_yamux y;

static void
begin(void)
{
	memset(&seen, 0, sizeof seen);
	hb_yamux_init(&y, &ops, NULL);
}

static void
end(void)
{
	hb_yamux_done(&y);
}

static size_t
unhex(const char *text, uint8_t *ret)
{
	size_t n = 0;

	for (unsigned byte; sscanf(text, " %2x", &byte) == 1; n++) {
		ret[n] = (uint8_t)byte;
		text += strspn(text, " ") + 2;
	}
	return n;
}

/* Passes bytes from the server, whole or byte by byte. */
static int
says(const char *text)
{
	uint8_t bytes[4096];
	size_t n = unhex(text, bytes);

	return hb_yamux_input(&y, bytes, n, NULL);
}

static void
expect(const char *text)
{
	uint8_t bytes[4096];
	size_t n = unhex(text, bytes);

	ck_assert_uint_eq(y.out.len, n);
	ck_assert_mem_eq(y.out.data, bytes, n);
	hb_buf_drop(&y.out, n);
}

START_TEST(a_stream_begins_with_its_first_bytes)
{
	struct hb_stream *s = hb_stream_open(&y, NULL);

	ck_assert_uint_eq(y.out.len, 0);
	ck_assert_uint_eq(hb_stream_write(s,
			      "\x01"
			      "ab",
			      3),
	    3);
	expect("00 00 0001 00000001 00000003 01 61 62");
	ck_assert_uint_eq(hb_stream_write(s, "c", 1), 1);
	expect("00 00 0000 00000001 00000001 63");
	ck_assert_int_eq(says("00 01 0002 00000001 00000000"), 0);
	ck_assert_int_eq(says("00 00 0000 00000001 00000002 78 79"), 0);
	ck_assert_uint_eq(seen.len, 2);
	hb_stream_close(s);
	expect("00 01 0004 00000001 00000000");
	s = hb_stream_open(&y, NULL);
	ck_assert_uint_eq(s->id, 3);
	hb_stream_close(s); /* never announced to the server, so there is nothing to close there */
	ck_assert_uint_eq(y.out.len, 0);
}
END_TEST

START_TEST(pieces_of_any_size_are_the_same)
{
	uint8_t bytes[128];
	size_t n = unhex("00 01 0001 00000002 00000000  00 00 0000 00000002 00000003 01 82 a3"
			 "00 02 0001 00000000 00000007  00 00 0004 00000002 00000001 ff"
			 "00 03 0000 00000000 00000002",
	    bytes);

	for (size_t i = 0; i < n; i++)
		ck_assert_int_eq(hb_yamux_input(&y, bytes + i, 1, NULL), 0);
	ck_assert_uint_eq(seen.opened, 1);
	ck_assert_uint_eq(seen.len, 4);
	ck_assert_mem_eq(seen.data, "\x01\x82\xa3\xff", 4);
	ck_assert_uint_eq(seen.fins, 1);
	ck_assert_uint_eq(seen.go_aways, 1);
	ck_assert_uint_eq(seen.code, 2);
	expect("00 01 0002 00000002 00000000  00 02 0002 00000000 00000007");
	ck_assert_ptr_null(hb_stream_open(&y, NULL));
}
END_TEST

START_TEST(fin_comes_after_the_frames_own_bytes)
{
	ck_assert_int_eq(says("00 00 0005 00000002 00000002 01"), 0);
	ck_assert_uint_eq(seen.opened, 1);
	ck_assert_uint_eq(seen.fins, 0);
	ck_assert_int_eq(says("02"), 0);
	ck_assert_uint_eq(seen.fins, 1);
	ck_assert_uint_eq(seen.len, 2);
	/* The same again, with data after it: no callback is called. */
	ck_assert_int_eq(says("00 01 0004 00000002 00000000"), 0);
	ck_assert_int_eq(says("00 00 0000 00000002 00000001 03"), 0);
	ck_assert_uint_eq(seen.fins, 1);
	ck_assert_uint_eq(seen.len, 2);
}
END_TEST

START_TEST(windows_are_kept_both_ways)
{
	static uint8_t block[HB_YAMUX_WINDOW + 1];
	struct hb_stream *s = hb_stream_open(&y, NULL);
	size_t sent = 0, n;

	while ((n = hb_stream_write(s, block, sizeof block - sent)) > 0) {
		sent += n;
		hb_buf_drop(&y.out, y.out.len);
	}
	ck_assert_uint_eq(sent, HB_YAMUX_WINDOW);
	ck_assert_int_eq(says("00 01 0000 00000001 00000005"), 0);
	ck_assert_uint_eq(seen.windows, 1);
	ck_assert_uint_eq(hb_stream_write(s, block, 100), 5);
	hb_buf_drop(&y.out, y.out.len);

	/* Half of the window is consumed: it is returned at once. */
	seen.take = true;
	ck_assert_int_eq(says("00 00 0000 00000001 0001ffff"), 0);
	ck_assert_int_eq(hb_yamux_input(&y, block, 0x1ffff, NULL), 0);
	ck_assert_uint_eq(y.out.len, 0);
	ck_assert_int_eq(says("00 00 0000 00000001 00000001 00"), 0);
	expect("00 01 0000 00000001 00020000");
	/* Exactly the window is allowed, one byte more is not. */
	seen.take = false;
	ck_assert_int_eq(says("00 00 0000 00000001 00040000"), 0);
	ck_assert_int_eq(hb_yamux_input(&y, block, HB_YAMUX_WINDOW, NULL), 0);
	ck_assert_int_eq(says("00 00 0000 00000001 00000001"), -EPROTO);
}
END_TEST

START_TEST(a_window_does_not_overflow)
{
	(void)hb_stream_write(hb_stream_open(&y, NULL), "x", 1);
	ck_assert_int_eq(says("00 01 0000 00000001 ffffffff"), -EPROTO);
}
END_TEST

START_TEST(what_breaks_the_protocol_is_an_error)
{
	static const char *const bad[] = { "01 00 0000 00000000 00000000", /* version */
		"00 04 0000 00000000 00000000",                            /* type */
		"00 01 0001 00000003 00000000",                            /* an id of our side */
		"00 01 0001 00000000 00000000", /* the id of the session */
		"00 01 0001 00000002 00000000 00 01 0001 00000002 00000000",
		"00 00 0001 00000002 00040001" };

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct err e = { 0 };
		uint8_t bytes[64];
		size_t n = unhex(bad[i], bytes);

		end();
		begin();
		ck_assert_int_eq(hb_yamux_input(&y, bytes, n, &e), -EPROTO);
		ck_assert_uint_ne(e.msg[0], 0);
	}
}
END_TEST

START_TEST(frames_of_unknown_streams_are_dropped)
{
	ck_assert_int_eq(says("00 00 0000 00000007 00000003 01 02 03  00 01 0000 00000009 00000010"
			      "00 01 0004 00000008 00000000  00 01 0008 00000008 00000000"
			      "00 02 0002 00000000 00000063"),
	    0);
	ck_assert_uint_eq(seen.len + seen.fins + seen.resets + seen.windows, 0);
	ck_assert_uint_eq(seen.pong, 0x63);
	ck_assert_uint_eq(y.out.len, 0);
}
END_TEST

START_TEST(a_reset_ends_a_stream)
{
	struct hb_stream *s = hb_stream_open(&y, NULL);

	(void)hb_stream_write(s, "x", 1);
	hb_buf_drop(&y.out, y.out.len);
	ck_assert_int_eq(says("00 01 0008 00000001 00000000"), 0);
	ck_assert_uint_eq(seen.resets, 1);
	ck_assert(LIST_EMPTY(&y.streams));
	seen.refuse = true;
	ck_assert_int_eq(says("00 01 0001 00000002 00000000"), 0);
	expect("00 01 0008 00000002 00000000");
	ck_assert(LIST_EMPTY(&y.streams));
}
END_TEST

START_TEST(streams_of_the_server_are_bounded)
{
	char text[64];

	for (unsigned id = 2; id <= 2 * (HB_YAMUX_INBOUND_MAX + 10); id += 2) {
		(void)snprintf(text, sizeof text, "00 01 0001 %08x 00000000", id);
		ck_assert_int_eq(says(text), 0);
	}
	ck_assert_uint_eq(seen.opened, HB_YAMUX_INBOUND_MAX);
	ck_assert_uint_eq(y.out.len, 12 * (HB_YAMUX_INBOUND_MAX + 10));
	hb_buf_drop(&y.out, y.out.len);
	hb_stream_close(seen.last);
	hb_buf_drop(&y.out, y.out.len);
	ck_assert_int_eq(says("00 01 0001 00001000 00000000"), 0);
	ck_assert_uint_eq(seen.opened, HB_YAMUX_INBOUND_MAX + 1);
}
END_TEST

START_TEST(streams_that_nobody_takes_are_bounded)
{
	struct hb_stream *s;
	unsigned n = 0;

	while ((s = hb_stream_open(&y, NULL))) {
		ck_assert_uint_eq(hb_stream_write(s, "\1", 1), 1);
		ck_assert_uint_le(++n, HB_YAMUX_UNACKED_MAX);
	}
	ck_assert_uint_eq(n, HB_YAMUX_UNACKED_MAX);
	/* One stream is accepted, one rejected, one reset: three more fit. */
	ck_assert_int_eq(says("00 01 0002 00000001 00000000"), 0);
	ck_assert_int_eq(says("00 01 0008 00000003 00000000"), 0);
	hb_stream_close(LIST_FIRST(&y.streams));
	for (int i = 0; i < 3; i++)
		ck_assert_ptr_nonnull(hb_stream_open(&y, NULL));
	ck_assert_ptr_null(hb_stream_open(&y, NULL));
}
END_TEST

START_TEST(unread_answers_to_pings_stop_the_reading)
{
	unsigned pings = 0;

	while (!hb_yamux_is_full(&y)) {
		ck_assert_int_eq(says("00 02 0001 00000000 00000001"), 0);
		ck_assert_uint_lt(++pings, 1000000);
	}
	ck_assert_uint_eq(hb_stream_write(hb_stream_open(&y, NULL), "x", 1), 0);
}
END_TEST

START_TEST(pings_are_counted)
{
	ck_assert_uint_eq(hb_yamux_ping(&y), 0);
	ck_assert_uint_eq(hb_yamux_ping(&y), 1);
	expect("00 02 0001 00000000 00000000  00 02 0001 00000000 00000001");
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_checked_fixture(tc, begin, end);
	tcase_add_test(tc, a_stream_begins_with_its_first_bytes);
	tcase_add_test(tc, pieces_of_any_size_are_the_same);
	tcase_add_test(tc, fin_comes_after_the_frames_own_bytes);
	tcase_add_test(tc, windows_are_kept_both_ways);
	tcase_add_test(tc, a_window_does_not_overflow);
	tcase_add_test(tc, what_breaks_the_protocol_is_an_error);
	tcase_add_test(tc, frames_of_unknown_streams_are_dropped);
	tcase_add_test(tc, a_reset_ends_a_stream);
	tcase_add_test(tc, streams_of_the_server_are_bounded);
	tcase_add_test(tc, streams_that_nobody_takes_are_bounded);
	tcase_add_test(tc, unread_answers_to_pings_stop_the_reading);
	tcase_add_test(tc, pings_are_counted);
}

int
main(void)
{
	return unit_run("hb_yamux", add);
}
