// SPDX-License-Identifier: Apache-2.0
/* test_fet_redirect.c: which servers get what is for the one of the source. */
#include "fetcher/fet_redirect.h"

#include "tests/unit/unit.h"

static const struct {
	const char *from, *to;
	bool same;
} pairs[] = {
	{ "http://a/x", "http://a/y?z", true },
	{ "http://A/x", "http://a:80/y", true },
	{ "https://a/", "https://a:443/", true },
	{ "http://a:8080/", "http://a:8080/", true },
	{ "http://u:p@a/", "http://a/", true },
	{ "http://a/", "https://a/", true },
	{ "http://[::1]:80/", "http://[::1]/", true },
	{ "https://a/", "http://a/", false },
	{ "http://a/", "https://a:8443/", false },
	{ "http://a:8080/", "https://a/", false },
	{ "http://a/", "http://a:8080/", false },
	{ "http://a/", "http://b/", false },
	{ "http://a/", "http://sub.a/", false },
	{ "http://sub.a/", "http://a/", false },
	{ "http://a/", "http://a@b/", false },
	{ "http://a/", "http://a.b/", false },
	{ "http://a/", "http://", false },
	{ "http://a/", "", false },
	{ "http://a/", "ftp://a/", false },
};

START_TEST(each)
{
	ck_assert_msg(fet_is_same_server(pairs[_i].from, pairs[_i].to) == pairs[_i].same, "%s %s",
	    pairs[_i].from, pairs[_i].to);
}
END_TEST

static void
add_tests(TCase *t)
{
	tcase_add_loop_test(t, each, 0, (int)(sizeof pairs / sizeof *pairs));
}

int
main(void)
{
	return unit_run("fet_redirect", add_tests);
}
