// SPDX-License-Identifier: Apache-2.0
/* test_utf8.c: which bytes are text, and how others are made printable. */
#include <string.h>

#include "common/cleanup.h"
#include "common/utf8.h"
#include "tests/unit/unit.h"

START_TEST(characters_have_their_length)
{
	static const struct {
		const char *bytes;
		size_t left, length;
	} cases[] = {
		{ "a", 1, 1 },
		{ "", 0, 0 },
		{ "\0", 1, 1 },
		{ "\xc2\x80", 2, 2 },
		{ "\xdf\xbf", 2, 2 },
		{ "\xe0\xa0\x80", 3, 3 },
		{ "\xef\xbf\xbf", 3, 3 },
		{ "\xf0\x90\x80\x80", 4, 4 },
		{ "\xf4\x8f\xbf\xbf", 4, 4 },
		{ "\x80", 1, 0 },     /* a continuation byte alone */
		{ "\xc0\x80", 2, 0 }, /* NUL in an overlong form */
		{ "\xc1\xbf", 2, 0 },
		{ "\xe0\x9f\xbf", 3, 0 },
		{ "\xf0\x8f\xbf\xbf", 4, 0 },
		{ "\xed\xa0\x80", 3, 0 },     /* a surrogate */
		{ "\xf4\x90\x80\x80", 4, 0 }, /* beyond U+10FFFF */
		{ "\xf5\x80\x80\x80", 4, 0 },
		{ "\xff", 1, 0 },
		{ "\xe2\x82", 2, 0 }, /* truncated */
		{ "\xe2\x82z", 3, 0 },
		{ "\xc3z", 2, 0 },
	};

	for (size_t i = 0; i < ELEMENTSOF(cases); i++)
		ck_assert_msg(utf8_char_length(cases[i].bytes, cases[i].left) == cases[i].length,
		    "case %zu", i);
}
END_TEST

START_TEST(text_is_valid_and_has_no_nul)
{
	ck_assert(utf8_is_text("", 0));
	ck_assert(utf8_is_text("n\xc3\xa4me\n", 6));
	ck_assert(!utf8_is_text("a\0b", 3));
	ck_assert(!utf8_is_text("a\xe4", 2));
	ck_assert(!utf8_is_text("\xe2\x82\xac", 2));
}
END_TEST

START_TEST(what_is_no_text_becomes_printable)
{
	char out[64];

	ck_assert_uint_eq(
	    utf8_sanitize(out, sizeof out, "a\033[1m\xff\xc3\xa4\0z\xc2\x85\x7f.", 14), 13);
	ck_assert_str_eq(out, "a [1m?\xc3\xa4 z  .");
}
END_TEST

START_TEST(a_cut_is_between_characters)
{
	char out[8];

	for (size_t size = 1; size <= sizeof out; size++) {
		size_t n = utf8_sanitize(out, size, "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac", 9);

		ck_assert_uint_eq(n, (size - 1) / 3 * 3);
		ck_assert_uint_eq(strlen(out), n);
		ck_assert(utf8_is_text(out, n));
	}
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_test(tc, characters_have_their_length);
	tcase_add_test(tc, text_is_valid_and_has_no_nul);
	tcase_add_test(tc, what_is_no_text_becomes_printable);
	tcase_add_test(tc, a_cut_is_between_characters);
}

int
main(void)
{
	return unit_run("utf8", add);
}
