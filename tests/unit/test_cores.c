// SPDX-License-Identifier: Apache-2.0
/* test_cores.c: sets of processors as text. */
#include <stdlib.h>
#include <string.h>

#include "supervisor/node/cores.h"
#include "tests/unit/unit.h"

static const struct {
	const char *text, *found;
	bool good;
} cases[] = {
	{ "0", "0", true },
	{ "0-3,8\n", "0-3,8", true },
	{ " 7, 5 ,6", "5-7", true },
	{ "4095", "4095", true },
	{ "1,1-2", "1-2", true },
	{ "", "", false },
	{ "a", "", false },
	{ "1,", "1", false },
	{ "3-1", "", false },
	{ "1-", "1", false },
	{ "-1", "", false },
	{ "4096", "", false },
	{ "0-99999999999999999999", "", false },
	{ "2;3", "2", false },
};

START_TEST(as_text_and_back)
{
	struct core_set set = { 0 };
	char buf[CORES_TEXT_SIZE];
	struct ints list = { 0 };

	ck_assert_int_eq(core_set_parse(&set, cases[_i].text), cases[_i].good);
	for (int i = CORES_MAX; i-- > 0;)
		if (core_set_has(&set, i))
			ints_add(&list, i);
	core_list_format(&list, buf);
	ck_assert_str_eq(buf, cases[_i].found);
	free(list.v);
}
END_TEST

START_TEST(what_is_no_core_is_in_no_set)
{
	int64_t wild[] = { -1, 2, CORES_MAX, INT64_MIN, INT64_MAX };
	struct ints list = { wild, sizeof wild / sizeof wild[0] };
	char buf[CORES_TEXT_SIZE];
	struct core_set set;

	memset(&set, 1, sizeof set);
	ck_assert(!core_set_has(&set, -1) && !core_set_has(&set, CORES_MAX));
	core_list_format(&list, buf);
	ck_assert_str_eq(buf, "2");
}
END_TEST

START_TEST(a_text_that_is_too_long_is_cut)
{
	char buf[CORES_TEXT_SIZE];
	struct ints list = { 0 };

	for (int i = 0; i < CORES_MAX; i += 2)
		ints_add(&list, i);
	core_list_format(&list, buf);
	ck_assert_uint_lt(strlen(buf), sizeof buf);
	ck_assert_str_eq(buf + strlen(buf) - strlen("…"), "…");
	free(list.v);
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_loop_test(tc, as_text_and_back, 0, sizeof cases / sizeof cases[0]);
	tcase_add_test(tc, what_is_no_core_is_in_no_set);
	tcase_add_test(tc, a_text_that_is_too_long_is_cut);
}

int
main(void)
{
	return unit_run("cores", add);
}
