// SPDX-License-Identifier: Apache-2.0
/* test_exec_input.c: what servers send to a command that runs, and what a terminal's user types to
 * leave. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli_terminal.h"
#include "common/cleanup.h"
#include "model/rpc_serve.h"
#include "tests/unit/unit.h"

/* As Go's encoder writes a protobuf struct: unset pointers are nil, with keys of its own. */
#define SETUP  "\xa5Setup\xc0"
#define STDIN  "\xa5Stdin"
#define SIZE   "\xa7TtySize"
#define EXTRA  "\xb4XXX_NoUnkeyedLiteral\x80"
#define UNREAD "\xb0XXX_unrecognized\xc0"

static int
parse(const char *bytes, size_t len, struct rpc_exec_input *ret)
{
	cleanup_free char *copy = malloc(len + 1); /* so that ASan sees a read beyond it */
	struct err e;
	int r;

	memcpy(copy, bytes, len);
	copy = realloc(copy, len ? len : 1);
	r = rpc_exec_input_parse(copy, len, ret, &e);
	if (r == 0 && ret->data) { /* in the copy */
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
	/* A size that is none, and what has the same names at another place. */
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

START_TEST(the_way_out)
{
	static const struct {
		char c;
		const char *typed, *sent; /* NULL: leave */
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
	tcase_add_test(tc, the_way_out);
}

int
main(void)
{
	return unit_run("exec_input", add);
}
