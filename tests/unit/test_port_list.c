// SPDX-License-Identifier: Apache-2.0
/* test_port_list.c: lists of ports, valid and invalid. */
#include "common/port_list.h"
#include "tests/unit/unit.h"

START_TEST(ports_and_ranges)
{
	static const int in[] = { 22, 80, 81, 82, 65535 }, out[] = { 0, -1, 21, 23, 79, 83, 65536 };

	for (size_t i = 0; i < sizeof in / sizeof in[0]; i++)
		ck_assert(port_list_has("22, 80-82,,65535", in[i]));
	for (size_t i = 0; i < sizeof out / sizeof out[0]; i++)
		ck_assert(!port_list_has("22, 80-82,,65535", out[i]));
	ck_assert(!port_list_has("", 1));
}
END_TEST

START_TEST(what_is_none)
{
	static const char *const bad[] = { "a", "-1", "0", "65536", "1-", "2-1", "1-2-3", "1;2",
		"1-0", "1 -2", "18446744073709551617" };

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		const char *at = bad[i];
		uint32_t low, high;
		int r;

		while ((r = port_list_next(&at, &low, &high)) > 0)
			;
		ck_assert_msg(r < 0, "%s", bad[i]);
	}
}
END_TEST

static void
add_tests(TCase *tc)
{
	tcase_add_test(tc, ports_and_ranges);
	tcase_add_test(tc, what_is_none);
}

int
main(void)
{
	return unit_run("port_list", add_tests);
}
