// SPDX-License-Identifier: Apache-2.0
/* test_exe_logs.c: splits a task's output between log files. */
/* link: executor */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "executor/exe.h"
#include "tests/unit/unit.h"

#define K 1024

static const struct {
	const char *text;
	uint64_t size, max;
	size_t take;
} cases[] = {
	/* far from the limit: everything, also without a newline */
	{ "abc", 0, 64 * K, 3 },
	{ "abc\ndef", 10, 64 * K, 7 },
	/* near it: up to the last newline that fits */
	{ "abc\ndef", 0, 100, 4 },
	{ "abc\ndef\n", 0, 100, 8 },
	{ "abc\ndef\n", 94, 100, 4 },
	{ "abc\ndef\n", 96, 100, 4 },
	{ "abc\ndef\n", 97, 100, 0 },
	{ "abc\ndef\n", 100, 100, 0 },
	{ "abc\ndef\n", 101, 100, 0 },
	/* the rest of a line, if it fits */
	{ "def", 97, 100, 3 },
	{ "def", 98, 100, 0 },
	/* longer than a whole file: split */
	{ "0123456789", 0, 4, 4 },
	{ "0123456789", 1, 4, 3 },
	{ "0123456789", 4, 4, 0 },
	{ "0123456789\n", 0, 4, 4 },
	{ "01\n3456789", 0, 4, 3 },
	/* not split, whatever follows */
	{ "abc\ndef\n", 3, 4, 0 },
	{ "\n", 3, 4, 1 },
	{ "\n", 0, 1, 1 },
};

START_TEST(takes)
{
	ck_assert_uint_eq(
	    exe_log_take(cases[_i].text, strlen(cases[_i].text), cases[_i].size, cases[_i].max),
	    cases[_i].take);
}
END_TEST

static uint64_t
next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return *state >> 33;
}

/*
 * Any output in any pieces: no file exceeds its limit, nothing is lost or reordered, it always
 * makes progress, and no line that fits into one file is split if it came in one piece.
 */
START_TEST(any_output_in_any_pieces)
{
	static char out[64 * K];
	uint64_t state = (uint64_t)_i + 1, max = 1 + next_random(&state) % (_i % 2 ? 40 * K : 200),
		 size = 0;
	size_t at = 0;

	for (size_t i = 0; i < sizeof out; i++)
		out[i] = next_random(&state) % 40 ? 'x' : '\n';
	while (at < sizeof out) {
		size_t len = 1 + next_random(&state) % EXE_LOG_BUF_SIZE, done = 0;

		if (len > sizeof out - at)
			len = sizeof out - at;
		while (done < len) {
			size_t take = exe_log_take(out + at + done, len - done, size, max);
			const char *line = memchr(out + at + done, '\n', len - done);

			if (line && (size_t)(line - out) - at - done < max && take > 0)
				ck_assert_uint_ge(take, (size_t)(line - out) + 1 - at - done);
			if (take == 0) {
				ck_assert_uint_gt(size, 0);
				size = 0;
				continue;
			}
			ck_assert_uint_le(size + take, max);
			ck_assert_uint_le(take, len - done);
			size += take;
			done += take;
		}
		at += len;
	}
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_loop_test(tc, takes, 0, (int)ELEMENTSOF(cases));
	tcase_add_loop_test(tc, any_output_in_any_pieces, 0, 200);
}

int
main(void)
{
	return unit_run("exe_logs", add);
}
