// SPDX-License-Identifier: Apache-2.0
/* test_duration.c: durations in both directions, at their limits, and invalid ones. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/duration.h"
#include "tests/unit/unit.h"

static const struct {
	const char *text;
	int64_t ns;
	const char *printed;
} good[] = {
	{ "0", 0, "0s" },
	{ "-0", 0, "0s" },
	{ "0s", 0, "0s" },
	{ "1ns", 1, "1ns" },
	{ "1100ns", 1100, "1.1\xc2\xb5s" },
	{ "1.5us", 1500, "1.5\xc2\xb5s" },
	{ "1.5\xc2\xb5s", 1500, "1.5\xc2\xb5s" },
	{ "1.5\xce\xbcs", 1500, "1.5\xc2\xb5s" },
	{ "2200us", 2200000, "2.2ms" },
	{ ".5s", 500 * NS_PER_MS, "500ms" },
	{ "5.s", 5 * NS_PER_S, "5s" },
	{ "+5s", 5 * NS_PER_S, "5s" },
	{ "3300ms", 3300 * NS_PER_MS, "3.3s" },
	{ "1.000000001s", NS_PER_S + 1, "1.000000001s" },
	{ "4m5s", 245 * NS_PER_S, "4m5s" },
	{ "4m5001ms", 245 * NS_PER_S + NS_PER_MS, "4m5.001s" },
	{ "90m", 5400 * NS_PER_S, "1h30m0s" },
	{ "-1.5h", -5400 * NS_PER_S, "-1h30m0s" },
	{ "1h15m30.918273645s", 4530918273645, "1h15m30.918273645s" },
	{ "39h9m14.425s", 140954425 * NS_PER_MS, "39h9m14.425s" },
	{ "9007199254.740993ms", 9007199254740993, "2501h59m59.254740993s" }, /* 2^53 + 1 */
	{ "0.3333333333333333333h", 1200 * NS_PER_S, "20m0s" },
	{ "0.9223372036854775807h", 3320413933267, "55m20.413933267s" },
	{ "9223372036854775807ns", INT64_MAX, "2562047h47m16.854775807s" },
	{ "9223372036s854ms775us807ns", INT64_MAX, "2562047h47m16.854775807s" },
	{ "-9223372036854775808ns", INT64_MIN, "-2562047h47m16.854775808s" },
	{ "-2562047h47m16.854775808s", INT64_MIN, "-2562047h47m16.854775808s" },
};

START_TEST(good_ones)
{
	char printed[DURATION_SIZE];
	int64_t ns = -1, again = -1;

	ck_assert_int_eq(duration_parse(good[_i].text, &ns, NULL), 0);
	ck_assert_int_eq(ns, good[_i].ns);
	duration_format(ns, printed);
	ck_assert_str_eq(printed, good[_i].printed);
	ck_assert_int_eq(duration_parse(printed, &again, NULL), 0);
	ck_assert_int_eq(again, ns);
}
END_TEST

static const struct {
	const char *text;
	int code;
	const char *says;
} bad[] = {
	{ "", -EINVAL, "is not a duration" },
	{ "3", -EINVAL, "has no unit" },
	{ "-", -EINVAL, "is not a duration" },
	{ "s", -EINVAL, "is not a duration" },
	{ ".", -EINVAL, "is not a duration" },
	{ "-.", -EINVAL, "is not a duration" },
	{ ".s", -EINVAL, "is not a duration" },
	{ "+-1s", -EINVAL, "is not a duration" },
	{ "1 s", -EINVAL, "unknown unit ' s'" },
	{ "1d", -EINVAL, "unknown unit 'd'" },
	{ "1s ", -EINVAL, "unknown unit 's '" },
	{ "1s1", -EINVAL, "has no unit" },
	{ "1e3s", -EINVAL, "unknown unit 'e'" },
	{ "9223372036854775808ns", -ERANGE, "out of range" },
	{ "-9223372036854775809ns", -ERANGE, "out of range" },
	{ "9223372036854775.808us", -ERANGE, "out of range" },
	{ "3000000h", -ERANGE, "out of range" },
	{ "99999999999999999999999999s", -ERANGE, "out of range" },
	/* two halves whose sum is 2^64, which is 0 */
	{ "-9223372036854775808ns9223372036854775808ns", -ERANGE, "out of range" },
};

START_TEST(bad_ones)
{
	struct err e = { 0 };
	int64_t ns = 42;

	ck_assert_int_eq(duration_parse(bad[_i].text, &ns, &e), bad[_i].code);
	ck_assert_msg(strstr(e.msg, bad[_i].says), "'%s' said: %s", bad[_i].text, e.msg);
	ck_assert_int_eq(ns, 42);
}
END_TEST

START_TEST(what_is_printed_is_parsed_back)
{
	uint64_t state = 0x9e3779b97f4a7c15u;

	for (int i = 0; i < 200000; i++) {
		char printed[DURATION_SIZE];
		int64_t ns, again;

		state = state * 6364136223846793005u + 1442695040888963407u;
		ns = (int64_t)state >> (state >> 58);
		duration_format(ns, printed);
		ck_assert_int_eq(duration_parse(printed, &again, NULL), 0);
		ck_assert_msg(again == ns, "%s", printed);
	}
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_loop_test(tc, good_ones, 0, (int)ELEMENTSOF(good));
	tcase_add_loop_test(tc, bad_ones, 0, (int)ELEMENTSOF(bad));
	tcase_add_test(tc, what_is_printed_is_parsed_back);
}

int
main(void)
{
	return unit_run("duration", add);
}
