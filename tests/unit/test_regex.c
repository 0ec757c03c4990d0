// SPDX-License-Identifier: Apache-2.0
/* test_regex.c: regular expressions of job files and templates. */
#include <malloc.h>
#include <stdio.h>
#include <string.h>

#include "common/cleanup.h"
#include "lang/regex.h"
#include "tests/unit/unit.h"

#define LONG ((size_t)100000)

static struct arena
new_arena(uint64_t steps)
{
	return (
	    struct arena){ .memory_max = (size_t)96 << 20, .steps_max = steps, .depth_max = 100 };
}

/* A search, and its results. */
struct search {
	struct arena *arena;
	const char *pattern, *text, *by;
	size_t len, match[2];
	const char *why;
	bool found;
	struct text replaced;
};

static void
run(void *search)
{
	struct search *s = search;
	struct regex *r = regex_compile(s->arena, s->pattern, strlen(s->pattern), &s->why);

	if (!r)
		return;
	s->why = NULL;
	s->found = regex_find(r, s->text, s->len, 0, s->match);
	s->replaced.arena = s->arena;
	if (s->by)
		regex_replace_all(r, s->text, s->len, s->by, strlen(s->by), false, &s->replaced);
}

/* A program that backtracks needs more time for these than the universe has. */
START_TEST(long_texts_need_no_backtracking)
{
	static const struct {
		const char *pattern;
		char fill, last;
		bool found;
		size_t from, to;
	} cases[] = {
		{ "(a+)+$", 'a', 'a', true, 0, LONG },
		{ "(a+)+$", 'a', 'b', false, 0, 0 },
		{ "(a|a)*b", 'a', 'b', true, 0, LONG },
		{ "(a|a)*b", 'a', 'a', false, 0, 0 },
		{ "(x+x+)+y", 'x', 'y', true, 0, LONG },
		{ "(x+x+)+y", 'x', 'x', false, 0, 0 },
		{ "(a|aa)+$", 'a', '!', false, 0, 0 },
		{ "((a*)*)*[bd]", 'a', 'd', true, 0, LONG },
	};
	static char text[LONG + 1];

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		struct arena a = new_arena(20 * 1000 * 1000);
		struct search s = { .arena = &a,
			.pattern = cases[i].pattern,
			.text = text,
			.len = LONG,
			.by = "<$1>" };

		memset(text, cases[i].fill, LONG);
		text[LONG - 1] = cases[i].last;
		ck_assert(arena_try(&a, run, &s));
		ck_assert_msg(s.found == cases[i].found, "%s", s.pattern);
		if (s.found) {
			ck_assert_uint_eq(s.match[0], cases[i].from);
			ck_assert_uint_eq(s.match[1], cases[i].to);
		}
		arena_done(&a);
	}
}
END_TEST

START_TEST(matches_are_those_of_go)
{
	static const struct {
		const char *pattern, *text, *by, *replaced;
	} cases[] = {
		/* not inside a character of several bytes */
		{ "\\B", "aé漢a", "-", "aé-漢a" },
		{ "\\B", "aéa", "-", "aéa" },
		{ "\\B", "é", "-", "-é-" },
		{ "(?:\\B|x)*", "é漢", "-", "-é-漢-" },
		{ "", "é漢", "-", "-é-漢-" },
		/* of alternatives the first */
		{ "a|ab|abc", "abc", "-", "-bc" },
		{ "(a?\?)(ab)?", "aab", "<$1|$2>", "<|>a<|ab>" },
		/* names */
		{ "(?<x>a)(?P<y_1>b)", "ab", "$y_1$x", "ba" },
		{ "(?P<n>x)|(?P<n>y)", "xy", "[$n]", "[x][y]" },
		{ "(a)", "a", "$1x$2${1}x", "ax" },
		/* characters */
		{ "\\p{Uppercase_Letter}", "aBç", "-", "a-ç" },
		{ "\\p{old italic}", "a𐌀", "-", "a-" },
		{ "[\\p{Cn}x]", "x\u0378y", "-", "--y" },
		{ "[^\\p{Cn}x]", "x\u0378y", "-", "x\u0378-" },
		{ "[\\P{LC}]", "aA漢", "-", "aA-" },
		{ "\\PC", "a\n\u0378", "-", "-\n\u0378" },
		{ "[[:\\p{ASCII}]", "aé", "-", "-é" },
		{ "[]a]", "]ab", "-", "--b" },
		{ "[[:^alpha:]]", "a1", "-", "a-" },
		{ "\\Q[(\\C?<\\E+", "[(\\C?<<", "-", "-" },
		{ "(?i)k", "kK\u212a", "-", "---" },
	};

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		struct arena a = new_arena(1000000);
		struct search s = { .arena = &a,
			.pattern = cases[i].pattern,
			.text = cases[i].text,
			.len = strlen(cases[i].text),
			.by = cases[i].by };

		ck_assert(arena_try(&a, run, &s));
		ck_assert_msg(!s.why, "%s: %s", s.pattern, s.why);
		ck_assert_str_eq(s.replaced.text, cases[i].replaced);
		arena_done(&a);
	}
}
END_TEST

START_TEST(wrong_patterns)
{
	static const struct {
		const char *pattern, *why;
	} cases[] = {
		{ "ab\\C", "unknown escape, at byte 2" },
		{ "a\\y", "unknown escape, at byte 1" },
		{ "(?<é>a)", "a group has a wrong name, at byte 0" },
		{ "(?<n", "a group has a wrong name, at byte 0" },
		{ "(?<n>a", "a group has no end" },
		{ "a\\p{Foo}", "unknown category or script of characters, at byte 1" },
		{ "a{1001}", "a repetition is larger than 1000, or from more to less, at byte 1" },
		{ "a{1000000000}", "a repetition is larger than 1000, at byte 1" },
		{ "[a", "a set of characters has no end, at byte 0" },
		{ "\\Qa\\E\xff", "this is no UTF-8" },
		{ "\\pL{1000}x\\pL{1000}", "it is too large" },
	};

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		struct arena a = new_arena(20 * 1000 * 1000);
		struct search s = { .arena = &a, .pattern = cases[i].pattern, .text = "" };

		ck_assert(arena_try(&a, run, &s));
		ck_assert_msg(s.why != NULL, "%s", s.pattern);
		ck_assert_str_eq(s.why, cases[i].why);
		arena_done(&a);
	}
}
END_TEST

static void
compile_many(void *arena)
{
	const char *why;
	char pattern[32];

	for (unsigned i = 0;; i++) {
		(void)snprintf(pattern, sizeof pattern, "(a|%u)\\pL*", i);
		ck_assert_ptr_nonnull(regex_compile(arena, pattern, strlen(pattern), &why));
	}
}

static void
search_many(void *arena)
{
	static const char text[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
	const char *why;
	struct regex *r = regex_compile(arena, "(a|b)*c", 7, &why);
	size_t match[2];

	for (;;)
		(void)regex_find(r, text, sizeof text - 1, 0, match);
}

static size_t
used_memory(void)
{
	return mallinfo2().uordblks + mallinfo2().hblkhd;
}

/* Objects of RE2 end with the arena, however its work ended: each time they take megabytes. */
START_TEST(limits_end_the_work_and_leave_no_memory)
{
	size_t first = 0;

	for (int i = 0; i < 5; i++) {
		struct arena a = new_arena(20 * 1000 * 1000);

		ck_assert(!arena_try(&a, compile_many, &a));
		ck_assert_str_eq(a.exhausted, "much memory");
		arena_done(&a);
		a = new_arena(100000);
		ck_assert(!arena_try(&a, search_many, &a));
		ck_assert_str_eq(a.exhausted, "many steps");
		arena_done(&a);
		if (i == 0)
			first = used_memory();
	}
	ck_assert_uint_lt(used_memory(), first + (256 << 10));
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_test(tc, long_texts_need_no_backtracking);
	tcase_add_test(tc, matches_are_those_of_go);
	tcase_add_test(tc, wrong_patterns);
	tcase_add_test(tc, limits_end_the_work_and_leave_no_memory);
}

int
main(void)
{
	return unit_run("regex", add);
}
