// SPDX-License-Identifier: Apache-2.0
/* test_decimal.c: doubles as the shortest texts that stand for them, and points in digits. */
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/decimal.h"
#include "tests/unit/unit.h"

static const struct {
	double d;
	const char *text;
} reals[] = {
	{ 0, "0" },
	{ 1, "1" },
	{ -2.5, "-2.5" },
	{ 0.1, "0.1" },
	{ 0.6, "0.6" },
	{ 0.1 + 0.2, "0.30000000000000004" },
	{ 1.0 / 3, "0.3333333333333333" },
	{ 57.7, "57.7" },
	{ 1.2345678901234568e17, "123456789012345680" },
	{ 1e20, "100000000000000000000" },
	{ 1e21, "1e+21" },
	{ -1.25e300, "-1.25e+300" },
	{ 0.000001, "0.000001" },
	{ 0.0000001, "1e-7" },
	{ 5e-324, "5e-324" },
	{ 1.7976931348623157e308, "1.7976931348623157e+308" },
};

START_TEST(reals_are_short)
{
	char buf[REAL_TEXT_SIZE];

	ck_assert_str_eq(real_format(reals[_i].d, buf), reals[_i].text);
	ck_assert(strtod(buf, NULL) == reals[_i].d);
}
END_TEST

static const struct {
	const char *digits;
	long exponent;
	const char *text;
} points[] = {
	{ "1", 1, "1" },
	{ "1500", 1, "1.5" },
	{ "15", 4, "1500" },
	{ "-15", 1, "-1.5" },
	{ "15", 0, "0.15" },
	{ "-15", -3, "-0.00015" },
	{ "12345", 5, "12345" },
};

START_TEST(points_are_placed)
{
	size_t size = decimal_size(points[_i].digits, points[_i].exponent);
	char *buf = malloc(size);

	ck_assert_str_eq(
	    decimal_write(buf, points[_i].digits, points[_i].exponent), points[_i].text);
	ck_assert_uint_lt(strlen(buf), size);
	free(buf);
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_loop_test(tc, reals_are_short, 0, (int)ELEMENTSOF(reals));
	tcase_add_loop_test(tc, points_are_placed, 0, (int)ELEMENTSOF(points));
}

int
main(void)
{
	return unit_run("decimal", add);
}
