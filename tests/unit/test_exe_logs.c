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
	uint64_t line; /* at the end of the file */
} cases[] = {
	/* far from the limit: everything, also without a newline */
	{ "abc", 0, 64 * K, 3, 0 },
	{ "abc\ndef", 10, 64 * K, 7, 0 },
	/* near it: up to the last newline that fits */
	{ "abc\ndef", 0, 100, 4, 0 },
	{ "abc\ndef\n", 0, 100, 8, 0 },
	{ "abc\ndef\n", 94, 100, 4, 0 },
	{ "abc\ndef\n", 96, 100, 4, 0 },
	{ "abc\ndef\n", 97, 100, 0, 0 },
	{ "abc\ndef\n", 100, 100, 0, 0 },
	{ "abc\ndef\n", 101, 100, 0, 0 },
	/* the rest of a line, if it fits */
	{ "def", 97, 100, 3, 0 },
	{ "def", 98, 100, 0, 0 },
	/* longer than a whole file: split */
	{ "0123456789", 0, 4, 4, 0 },
	{ "0123456789", 1, 4, 3, 0 },
	{ "0123456789", 4, 4, 0, 0 },
	{ "0123456789\n", 0, 4, 4, 0 },
	{ "01\n3456789", 0, 4, 3, 0 },
	/* not split, whatever follows */
	{ "abc\ndef\n", 3, 4, 0, 0 },
	{ "\n", 3, 4, 1, 0 },
	{ "\n", 0, 1, 1, 0 },
	/* the end of a line whose beginning is in the file, beyond its limit */
	{ "def\nghi\n", 98, 100, 4, 3 },
	{ "def", 100, 100, 3, 3 },
	{ "def\n", 103, 100, 4, 6 },
	{ "def\n", 100, 100, 4, 96 },
	{ "def\n", 100, 100, 0, 97 },
	{ "def\n", 98, 100, 2, 97 },
};

START_TEST(takes)
{
	ck_assert_uint_eq(exe_log_take(cases[_i].text, strlen(cases[_i].text), cases[_i].size,
			      cases[_i].line, cases[_i].max),
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
 * Any output in any pieces: a file exceeds its limit only by the end of a line, nothing is lost or
 * reordered, it always makes progress, and no line that fits into one file is split.
 */
START_TEST(any_output_in_any_pieces)
{
	static char out[64 * K];
	uint64_t state = (uint64_t)_i + 1, max = 1 + next_random(&state) % (_i % 2 ? 40 * K : 200),
		 size = 0, line = 0;
	size_t at = 0;

	for (size_t i = 0; i < sizeof out; i++)
		out[i] = next_random(&state) % 40 ? 'x' : '\n';
	while (at < sizeof out) {
		size_t len = 1 + next_random(&state) % EXE_LOG_BUF_SIZE, done = 0;

		if (len > sizeof out - at)
			len = sizeof out - at;
		while (done < len) {
			const char *from = out + at + done;
			size_t take = exe_log_take(from, len - done, size, line, max);
			const char *end = memchr(from, '\n', sizeof out - at - done);
			const char *last = take ? memrchr(from, '\n', take) : NULL;

			if (take == 0) {
				ck_assert_uint_gt(size, 0);
				if (line > 0 && end)
					ck_assert_uint_gt(line + (size_t)(end - from) + 1, max);
				size = line = 0;
				continue;
			}
			if (size + take > max)
				ck_assert(line > 0 && line + take <= max &&
					  (!last || last == from + take - 1));
			ck_assert_uint_le(take, len - done);
			size += take;
			line = last ? (size_t)(from + take - last) - 1 : line + take;
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
