// SPDX-License-Identifier: Apache-2.0
/* test_websocket.c: frames are decoded as they were written; everything else is rejected; the
 * accept key of RFC 6455. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/websocket.h"
#include "tests/unit/unit.h"

#define MESSAGE_MAX 70000

START_TEST(what_was_written_is_read)
{
	static const size_t sizes[] = { 0, 1, 125, 126, 65535, 65536, MESSAGE_MAX };
	static const uint8_t mask[] = { 1, 2, 0xfe, 4 };
	cleanup_free uint8_t *frame = malloc(MESSAGE_MAX + WS_HEAD_MAX);

	for (size_t i = 0; i < ELEMENTSOF(sizes) * 2; i++) {
		const uint8_t *with = i % 2 ? mask : NULL;
		struct ws_reader r = { .masked = with, .max = MESSAGE_MAX };
		size_t len = sizes[i / 2], head = ws_head(frame, WS_TEXT, len, with);
		struct ws_message m;

		memset(frame + head, 'x', len);
		if (with)
			ws_mask(frame + head, len, mask, 0);
		ck_assert_int_eq(ws_read(&r, frame, head + len, &m), (ssize_t)(head + len));
		ck_assert(m.op == WS_TEXT && m.len == len && strlen(m.data) == len);
		ck_assert(strspn(m.data, "x") == len);
		ws_reader_done(&r);
	}
}
END_TEST

START_TEST(parts_and_what_comes_between_them)
{
	static const char frames[] = "\x01\x02"
				     "ab"
				     "\x89\x01"
				     "?"
				     "\x80\x01"
				     "c"
				     "\x88\x02\x03\xe8";
	struct ws_reader r = { .max = 3 };
	struct ws_message m;
	size_t at = 0;

	at += (size_t)ws_read(&r, frames, sizeof frames - 1, &m);
	ck_assert(m.op == WS_PING && m.len == 1 && m.data[0] == '?');
	at += (size_t)ws_read(&r, frames + at, sizeof frames - 1 - at, &m);
	ck_assert(m.op == WS_TEXT && m.len == 3 && strcmp(m.data, "abc") == 0);
	at += (size_t)ws_read(&r, frames + at, sizeof frames - 1 - at, &m);
	ck_assert(m.op == WS_CLOSE && m.len == 2);
	ck_assert_uint_eq(at, sizeof frames - 1);
	ck_assert_int_eq(ws_read(&r, "", 0, &m), 0);
	ck_assert_ptr_null(m.data);
	ws_reader_done(&r);
}
END_TEST

START_TEST(what_no_frame_may_be)
{
	static const struct {
		const char *bytes;
		size_t len;
		int r;
		bool masked;
	} bad[] = {
		{ "\xc1\0", 2, -EPROTO, false },         /* a reserved bit */
		{ "\x83\0", 2, -EPROTO, false },         /* an unknown opcode */
		{ "\x80\0", 2, -EPROTO, false },         /* a continuation without a beginning */
		{ "\x01\0\x81\0", 4, -EPROTO, false },   /* a new message in the middle of one */
		{ "\x09\0", 2, -EPROTO, false },         /* a fragmented control frame */
		{ "\x89\x7e\0\x7e", 4, -EPROTO, false }, /* … and one that is too long */
		{ "\x81\0", 2, -EPROTO, true },          /* a client's frame without a mask */
		{ "\x81\x80zzzz", 6, -EPROTO, false },   /* a server's frame with one */
		{ "\x81\x05", 2, -EMSGSIZE, false },     /* longer than the limit */
		{ "\x01\x02xx\x80\x03", 6, -EMSGSIZE, false }, /* … in total */
		{ "\x81\x7f\x7f\xff\xff\xff\xff\xff\xff\xff", 10, -EMSGSIZE, false },
		{ "\x81\x7f\xff\xff\xff\xff\xff\xff\xff\xff", 10, -EPROTO, false },
	};

	for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
		struct ws_reader r = { .masked = bad[i].masked, .max = 4 };
		struct ws_message m;
		ssize_t n = 0;

		for (size_t at = 0; at < bad[i].len && n >= 0; at += (size_t)n)
			n = ws_read(&r, bad[i].bytes + at, bad[i].len - at, &m);
		ck_assert_int_eq(n, bad[i].r);
		ws_reader_done(&r);
	}
}
END_TEST

/* RFC 6455, 1.3. */
START_TEST(the_key_of_the_standard)
{
	char accept[WS_ACCEPT_SIZE];

	ws_accept("dGhlIHNhbXBsZSBub25jZQ==", accept);
	ck_assert_str_eq(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_test(tc, what_was_written_is_read);
	tcase_add_test(tc, parts_and_what_comes_between_them);
	tcase_add_test(tc, what_no_frame_may_be);
	tcase_add_test(tc, the_key_of_the_standard);
}

int
main(void)
{
	return unit_run("websocket", add);
}
