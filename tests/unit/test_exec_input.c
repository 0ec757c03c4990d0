// SPDX-License-Identifier: Apache-2.0
/* test_exec_input.c: input of servers for a running command, the frames of their own streams, and a
 * terminal's escape sequences. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli_terminal.h"
#include "common/cleanup.h"
#include "supervisor/cluster/rpc/rpc_serve.h"
#include "tests/unit/unit.h"
#include "supervisor/cluster/rpc/rpc_stream.h"

/* Written as Go's encoder writes a protobuf struct: unset pointers are nil, and it has additional
 * keys. */
#define SETUP  "\xa5Setup\xc0"
#define STDIN  "\xa5Stdin"
#define SIZE   "\xa7TtySize"
#define EXTRA  "\xb4XXX_NoUnkeyedLiteral\x80"
#define UNREAD "\xb0XXX_unrecognized\xc0"

static int
parse(const char *bytes, size_t len, struct rpc_exec_input *ret)
{
	cleanup_free char *copy = malloc(len + 1); /* so that ASan detects a read beyond it */
	struct err e;
	int r;

	memcpy(copy, bytes, len);
	copy = realloc(copy, len ? len : 1);
	r = rpc_exec_input_parse(copy, len, ret, &e);
	if (r == 0 && ret->data) { /* points into the copy */
		ck_assert_uint_le(ret->len, len);
		ret->data = bytes + (ret->data - copy);
	}
	return r;
}

#define PARSE(bytes, ret) parse(bytes, sizeof(bytes) - 1, ret)

START_TEST(input_of_a_command)
{
	struct rpc_exec_input in;

	ck_assert_int_eq(PARSE("\x85" SETUP STDIN "\xc0" SIZE "\xc0" EXTRA UNREAD, &in), 0);
	ck_assert(!in.has_stdin && !in.has_size && !in.close && !in.data);
	ck_assert_int_eq(PARSE("\x83" SIZE "\xc0" STDIN "\x83\xa4"
			       "Data\xa3"
			       "a\0b\xa5"
			       "Close\xc2" UNREAD SETUP,
			     &in),
	    0);
	ck_assert(in.has_stdin && in.len == 3 && memcmp(in.data, "a\0b", 3) == 0 && !in.close);
	ck_assert_int_eq(PARSE("\x81" STDIN "\x82\xa4"
			       "Data\xc0\xa5"
			       "Close\xc3",
			     &in),
	    0);
	ck_assert(in.has_stdin && in.close && !in.data);
	ck_assert_int_eq(PARSE("\x81" SIZE "\x82\xa6"
			       "Height\x18\xa5"
			       "Width\xd1\x01\x02",
			     &in),
	    0);
	ck_assert(in.has_size && in.height == 24 && in.width == 258);
	/* An invalid size, and the same names in another place. */
	ck_assert_int_eq(PARSE("\x82" SIZE "\x81\xa6"
			       "Height\xff\xa4"
			       "Data\xa1x",
			     &in),
	    0);
	ck_assert(in.has_size && in.height == 0 && !in.data);
}
END_TEST

START_TEST(what_is_no_input)
{
	static const char whole[] = "\x81" STDIN "\x82\xa4"
				    "Data\xa3"
				    "abc\xa5"
				    "Close\xc3";
	struct rpc_exec_input in;

	for (size_t len = 0; len < sizeof whole - 1; len++)
		ck_assert_int_eq(parse(whole, len, &in), -EBADMSG);
	ck_assert_int_eq(PARSE("\x90", &in), -EBADMSG);
	ck_assert_int_eq(PARSE("\xdf\xff\xff\xff\xff", &in), -EBADMSG);
}
END_TEST

START_TEST(input_that_is_sent_is_read)
{
	static const struct rpc_exec_input sent[] = {
		{ 0 },
		{ .has_stdin = true, .data = "a\0b", .len = 3 },
		{ .has_stdin = true, .close = true },
		{ .has_size = true, .height = 24, .width = 258 },
	};
	struct rpc_exec_input in;
	struct text t = { 0 };

	rpc_exec_input_put(&t, &sent[_i]);
	ck_assert_int_eq(parse(t.text, t.len, &in), 0);
	ck_assert(in.has_stdin == sent[_i].has_stdin && in.has_size == sent[_i].has_size);
	ck_assert(in.close == sent[_i].close && in.len == sent[_i].len);
	ck_assert(in.height == sent[_i].height && in.width == sent[_i].width);
	ck_assert(in.len == 0 || memcmp(in.data, sent[_i].data, in.len) == 0);
	text_done(&t);
}
END_TEST

static int
parse_frame(const char *bytes, size_t len, struct rpc_frame *ret)
{
	cleanup_free char *copy = malloc(len + 1);
	struct err e;
	int r;

	memcpy(copy, bytes, len);
	copy = realloc(copy, len ? len : 1);
	r = rpc_frame_parse(copy, len, ret, &e);
	if (r == 0 && ret->payload)
		ret->payload = bytes + (ret->payload - copy);
	if (r == 0 && ret->message)
		ret->message = bytes + (ret->message - copy);
	return r;
}

#define FRAME(bytes, ret) parse_frame(bytes, sizeof(bytes) - 1, ret)

START_TEST(frames_of_servers)
{
	struct text t = { 0 };
	struct rpc_frame f;

	rpc_frame_data(&t, "a\0b", 3);
	ck_assert_int_eq(parse_frame(t.text, t.len, &f), 0);
	ck_assert(!f.failed && !f.event && f.len == 3 && memcmp(f.payload, "a\0b", 3) == 0);
	text_done(&t);
	rpc_frame_error(&t, 404, "none");
	ck_assert_int_eq(parse_frame(t.text, t.len, &f), 0);
	ck_assert(f.failed && f.code == 404 && f.len == 0);
	ck_assert(f.message_len == 4 && memcmp(f.message, "none", 4) == 0);
	text_done(&t);
	ck_assert_int_eq(FRAME("\x82\xa5"
			       "Error\xc0\xa5"
			       "Event\x81\xa4"
			       "Data\xc4\x02{}",
			     &f),
	    0);
	ck_assert(!f.failed && f.event && f.len == 2 && memcmp(f.payload, "{}", 2) == 0);
	ck_assert_int_eq(FRAME("\x81\xa5"
			       "Error\x82\xa7"
			       "Message\xa1x\xa4"
			       "Code\xc0",
			     &f),
	    0);
	ck_assert(f.failed && f.code == 0 && f.message_len == 1);
	ck_assert_int_eq(FRAME("\x80", &f), 0);
	ck_assert(!f.failed && !f.event && !f.payload);
	ck_assert_int_eq(FRAME("", &f), -EBADMSG);
	ck_assert_int_eq(FRAME("\x93\1\2\3", &f), -EBADMSG);
	ck_assert_int_eq(FRAME("\x81\xa7Payload\xdb\xff\xff\xff\xff", &f), -EBADMSG);
}
END_TEST

START_TEST(the_way_out)
{
	static const struct {
		char c;
		const char *typed, *sent; /* NULL: the user leaves */
	} cases[] = {
		{ '~', "ls ~.\r", "ls ~.\r" },
		{ '~', "~.", NULL },
		{ '~', "ls\r~.", NULL },
		{ '~', "ls\n~.", NULL },
		{ '~', "~~.\r", "~.\r" },
		{ '~', "~x~.", "~x~." },
		{ '%', "~.\r%.", NULL },
		{ 0, "~.\r~.", "~.\r~." },
	};

	for (size_t i = 0; i < ELEMENTSOF(cases); i++)
		for (size_t step = 1; step < 8; step++) {
			struct cli_escape s = { .c = cases[i].c };
			size_t len = strlen(cases[i].typed), got = 0;
			char out[32];
			long n = 0;

			for (size_t at = 0; at < len && n >= 0; at += step) {
				n = cli_escape_filter(&s, cases[i].typed + at,
				    len - at < step ? len - at : step, out + got);
				got += n > 0 ? (size_t)n : 0;
			}
			ck_assert_int_eq(n < 0, !cases[i].sent);
			if (cases[i].sent)
				ck_assert(got == strlen(cases[i].sent) &&
					  memcmp(out, cases[i].sent, got) == 0);
		}
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_test(tc, input_of_a_command);
	tcase_add_test(tc, what_is_no_input);
	tcase_add_loop_test(tc, input_that_is_sent_is_read, 0, 4);
	tcase_add_test(tc, frames_of_servers);
	tcase_add_test(tc, the_way_out);
}

int
main(void)
{
	return unit_run("exec_input", add);
}
