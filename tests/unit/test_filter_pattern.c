// SPDX-License-Identifier: Apache-2.0
/* test_filter_pattern.c: regular expressions in filters: what they match, and invalid ones. */
#include <errno.h>
#include <malloc.h>
#include <stdbool.h>
#include <string.h>

#include "supervisor/http/filter_pattern.h"
#include "tests/unit/unit.h"

static void
fits(const char *pattern, const char *text, bool wanted)
{
	cleanup_with(filter_pattern_free) struct filter_pattern *p = NULL;
	struct err e = { 0 };

	ck_assert_msg(filter_pattern_new(pattern, &p, &e) == 0, "%s: %s", pattern, e.msg);
	ck_assert_msg(filter_pattern_fits(p, text, INT64_MAX, &e) == wanted,
	    "%s and \"%s\": not %d", pattern, text, wanted);
}

static void
refuses(const char *pattern, const char *part)
{
	struct filter_pattern *p = NULL;
	struct err e = { 0 };
	int r = filter_pattern_new(pattern, &p, &e);

	ck_assert_msg(r == -EINVAL && strstr(e.msg, part), "%s: %d, %s", pattern, r, e.msg);
}

START_TEST(letters_and_classes)
{
	fits("", "", true);
	fits("", "abc", true);
	fits("b", "abc", true);
	fits("bd", "abc", false);
	fits("a.c", "abc", true);
	fits("a.c", "a\nc", false);
	fits("^a.c$",
	    "a\xc3\xa9"
	    "c",
	    true);
	fits("[a-c]x", "bx", true);
	fits("[^a-c]x", "bx", false);
	fits("[]-]x", "]x", true);
	fits("[]-]x", "-x", true);
	fits("[^]]", "]", false);
	fits("[\\d.]{3}", "1.2", true);
	fits("^[[:alpha:]_]+$", "ab_c", true);
	fits("^[[:^alpha:]]+$", "123", true);
	fits("^[[:^alpha:]]+$", "1a3", false);
	fits("^\\d+$", "0123", true);
	fits("^\\D+$", "0123", false);
	fits("\\s\\S", "a b", true);
	fits("^\\w+$", "a_9", true);
	fits("\\W", "a_9", false);
	fits("\\W", "a-9", true);
	fits("[\\W]", "\xc3\xa9", true);
	fits("\\x41\\x{e9}", "A\xc3\xa9", true);
	fits("[\\x{e0}-\\x{ef}]", "\xc3\xa9", true);
	fits("a\\.b", "a.b", true);
	fits("a\\.b", "acb", false);
	fits("\\Qa.b\\E.", "a.bc", true);
	fits("\\Qa.b", "acb", false);
	fits("^\\Qa.\\E+$", "a...", true);
	fits("\\t\\n", "\t\n", true);
}
END_TEST

START_TEST(ways_and_repetitions)
{
	fits("^(?:ab|cd|ef)$", "cd", true);
	fits("^(ab|cd|ef)$", "ce", false);
	fits("^ab|cd$", "abx", true);
	fits("^(|a)b$", "b", true);
	fits("^a*b$", "b", true);
	fits("^a*b$", "aaab", true);
	fits("^a+b$", "b", false);
	fits("^a+b$", "aab", true);
	fits("^a?b$", "aab", false);
	fits("^a{2,3}b$", "ab", false);
	fits("^a{2,3}b$", "aaab", true);
	fits("^a{2,3}b$", "aaaab", false);
	fits("^a{2}$", "aa", true);
	fits("^a{2,}$", "a", false);
	fits("^a{2,}$", "aaaaa", true);
	fits("^a{0,2}$", "", true);
	fits("^a{0,2}$", "aaa", false);
	fits("^a{0}$", "a", false);
	fits("^(ab){2}(c|d){0,}$", "ababdc", true);
	fits("^(a*)*(b|)*$", "aabb", true);
	fits("^(a+)+$", "aaaaaaaaab", false);
	fits("^a*?b+?c??$", "aabbc", true);
	fits("a{,2}", "a{,2}", true);
	fits("a{x", "a{x", true);
	fits("}]", "}]", true);
	fits("^(?P<n>a)(?<m>b)$", "ab", true);
}
END_TEST

START_TEST(edges_and_flags)
{
	fits("^b", "abc", false);
	fits("b$", "ab", true);
	fits("b$", "ab\n", false);
	fits("\\Aab\\z", "ab", true);
	fits("(?m)^b$", "a\nb\nc", true);
	fits("^b$", "a\nb\nc", false);
	fits("\\bfoo\\b", "a foo b", true);
	fits("\\bfoo\\b", "afoo b", false);
	fits("\\Boo\\b", "foo", true);
	fits("(?i)AbC[x-z]", "aBcY", true);
	fits("(?i)[^a]", "A", false);
	fits("(?i)[[:upper:]]", "a", true);
	fits("(?i:a)b", "Ab", true);
	fits("(?i:a)b", "AB", false);
	fits("((?i)a)b", "AB", false);
	fits("(?i)a(?-i)b", "AB", false);
	fits("(?i)a(?-i)b", "Ab", true);
	fits("a(?s).b", "a\nb", true);
	fits("(?is-m:A.B)", "a\nb", true);
	fits("(^|x)*a$", "xa", true);
	fits("a^b", "ab", false);
}
END_TEST

START_TEST(what_is_none)
{
	char deep[200] = "", large[1100];

	refuses("(", "invalid at byte 1: missing closing parenthesis");
	refuses("a)", "unmatched closing parenthesis");
	refuses("[a", "missing terminating ]");
	refuses("[z-a]", "range out of order");
	refuses("a\\", "\\ at end of pattern");
	refuses("*a", "quantifier does not follow a repeatable item");
	refuses("a{3,2}", "numbers out of order");
	refuses("a\\Cb", "using \\C is disabled");
	refuses("((ab){900}){900}", "too large");
	memset(deep, '(', 60);
	refuses(deep, "too deeply nested");
	memset(large, 'a', sizeof large - 1);
	large[sizeof large - 1] = '\0';
	refuses(large, "is invalid");
}
END_TEST

START_TEST(a_text_has_an_end)
{
	cleanup_with(filter_pattern_free) struct filter_pattern *p = NULL;
	char text[1025];
	struct err e = { 0 };
	size_t before;

	memset(text, 'a', sizeof text - 1);
	text[sizeof text - 1] = '\0';
	ck_assert_int_eq(filter_pattern_new("^(a+)+$|b", &p, &e), 0);
	ck_assert_int_eq(filter_pattern_fits(p, text, INT64_MAX, &e), 1);
	text[sizeof text - 2] = '!';
	ck_assert_int_eq(filter_pattern_fits(p, text, INT64_MAX, &e), -EINVAL);
	ck_assert_msg(strstr(e.msg, "takes too long"), "%s", e.msg);
	before = mallinfo2().uordblks + mallinfo2().hblkhd;
	for (int i = 0; i < 10; i++)
		ck_assert_int_eq(filter_pattern_fits(p, text, INT64_MAX, &e), -EINVAL);
	ck_assert_uint_eq(mallinfo2().uordblks + mallinfo2().hblkhd, before);
}
END_TEST

/* From each single character it takes fewer steps than the limit; together they exceed it. */
START_TEST(all_ways_of_a_text_have_an_end)
{
	cleanup_with(filter_pattern_free) struct filter_pattern *p = NULL;
	char text[16385];
	struct err e = { 0 };

	memset(text, 'a', sizeof text - 1);
	text[sizeof text - 1] = '\0';
	for (size_t i = 1000; i < sizeof text - 1; i += 1000)
		text[i] = 'x';
	ck_assert_int_eq(filter_pattern_new("[ab]*[ab]*[cd]", &p, &e), 0);
	ck_assert_int_eq(
	    filter_pattern_fits(p, text, filter_pattern_now_ns() + 10000000, &e), -EINVAL);
	ck_assert_msg(strstr(e.msg, "takes too long"), "%s", e.msg);
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_test(tc, letters_and_classes);
	tcase_add_test(tc, ways_and_repetitions);
	tcase_add_test(tc, edges_and_flags);
	tcase_add_test(tc, what_is_none);
	tcase_add_test(tc, a_text_has_an_end);
	tcase_add_test(tc, all_ways_of_a_text_have_an_end);
}

int
main(void)
{
	return unit_run("filter_pattern", add);
}
