// SPDX-License-Identifier: Apache-2.0
/* test_api_router.c: request targets are split and routed. */
#include <errno.h>
#include <string.h>

#include "supervisor/http/api.h"
#include "supervisor/http/api_paths.h"
#include "supervisor/http/api_router.h"
#include "tests/unit/unit.h"

static void
serve(struct sup *sup, struct api_req *req)
{
	(void)sup;
	(void)req;
}

static const struct api_route routes[] = {
	{ "GET", "/v1/jobs", serve, false, false },
	{ "PUT", "/v1/jobs", serve, true, false },
	{ "GET", "/v1/job/:id", serve, false, false },
	{ "DELETE", "/v1/job/:id", serve, true, false },
	{ "PUT", "/v1/job/:id/allocations", NULL, false, false },
	{ "GET", "/v1/job/:id/allocations", serve, false, false },
	{ "GET", "/v1/volume/csi/:id", serve, false, false },
	{ "GET", "/v1/volume/:type/:id/x", serve, false, false },
	{ "GET", "/v1/var/*", serve, false, false },
	{ "GET", "/v1/quotas", NULL, false, false },
	{ "ANY", "/v1/quota/*", serve, false, false },
	{ 0 },
};

static void
parses(struct api_target *t, const char *uri)
{
	struct err e = { 0 };

	ck_assert_msg(api_target_parse(uri, t, &e) == 0, "%s: %s", uri, e.msg);
}

static void
refuses(const char *uri, int code)
{
	struct api_target t;
	struct err e = { 0 };

	ck_assert_int_eq(api_target_parse(uri, &t, &e), code);
	ck_assert_int_eq(e.code, code);
	ck_assert_uint_gt(strlen(e.msg), 0);
	api_target_done(&t);
}

START_TEST(components_are_decoded_after_they_were_split)
{
	struct api_target t;

	parses(&t, "/v1/job/a%2Fb%20c");
	ck_assert_uint_eq(t.n_components, 3);
	ck_assert_str_eq(t.components[2], "a/b c");
	api_target_done(&t);
	parses(&t, "/v1/job/a+b");
	ck_assert_str_eq(t.components[2], "a+b");
	api_target_done(&t);
}
END_TEST

START_TEST(queries_are_decoded)
{
	struct api_target t;

	parses(&t, "/v1/jobs?prefix=a%26b+c&pretty&empty=&prefix=second&=x");
	ck_assert_str_eq(api_target_query(&t, "prefix"), "a&b c");
	ck_assert_str_eq(api_target_query(&t, "pretty"), "");
	ck_assert_str_eq(api_target_query(&t, "empty"), "");
	ck_assert_str_eq(api_target_query(&t, ""), "x");
	ck_assert_ptr_null(api_target_query(&t, "other"));
	api_target_done(&t);
}
END_TEST

START_TEST(what_is_no_target_is_refused)
{
	char many[512] = "", long_one[API_TARGET_MAX + 2];

	refuses("", -EINVAL);
	refuses("v1/jobs", -EINVAL);
	refuses("http://host/v1/jobs", -EINVAL);
	refuses("/v1/job/a%00b", -EINVAL);
	refuses("/v1/job/a%", -EINVAL);
	refuses("/v1/job/a%4", -EINVAL);
	refuses("/v1/job/a%zz", -EINVAL);
	refuses("/v1/jobs?a=%00", -EINVAL);
	refuses("/v1/jobs?%g0=1", -EINVAL);
	for (int i = 0; i <= API_COMPONENTS_MAX; i++)
		(void)strcat(many, "/a");
	refuses(many, -EINVAL);
	(void)strcpy(many, "/v1/jobs?");
	for (int i = 0; i <= API_QUERY_MAX; i++)
		(void)strcat(many, "a=b&");
	refuses(many, -EINVAL);
	(void)memset(long_one, 'a', sizeof long_one);
	long_one[0] = '/';
	long_one[sizeof long_one - 1] = '\0';
	refuses(long_one, -E2BIG);
}
END_TEST

static const struct {
	const char *method, *uri, *pattern; /* NULL: not found */
	int code;
	const char *param;
} asked[] = {
	{ "GET", "/v1/jobs", "/v1/jobs", 0, NULL },
	{ "HEAD", "/v1/jobs", "/v1/jobs", 0, NULL },
	{ "POST", "/v1/jobs", "/v1/jobs", 0, NULL },
	{ "DELETE", "/v1/jobs", NULL, -EPERM, NULL },
	{ "GET", "/v1/jobs/", NULL, -ENOENT, NULL },
	{ "GET", "/v1", NULL, -ENOENT, NULL },
	{ "GET", "/", NULL, -ENOENT, NULL },
	{ "GET", "//v1/jobs", NULL, -ENOENT, NULL },
	{ "GET", "/v1/job/x", "/v1/job/:id", 0, "x" },
	{ "GET", "/v1/job/", NULL, -ENOENT, NULL },
	{ "GET", "/v1/job/..%2f..", "/v1/job/:id", 0, "../.." },
	{ "GET", "/v1/job/x/allocations", "/v1/job/:id/allocations", 0, "x" },
	{ "GET", "/v1/job/x/allocation", "/v1/job/:id", 0, "x/allocation" },
	{ "GET", "/v1/job/a/b/c", "/v1/job/:id", 0, "a/b/c" },
	{ "GET", "/v1/job/a/b/allocations", "/v1/job/:id/allocations", 0, "a/b" },
	{ "GET", "/v1/job/a/allocations/b/allocations", "/v1/job/:id/allocations", 0,
	    "a/allocations/b" },
	{ "DELETE", "/v1/job/a/b/allocations", NULL, -ENOENT, NULL },
	{ "DELETE", "/v1/job/a/b", "/v1/job/:id", 0, "a/b" },
	{ "GET", "/v1/job//b", NULL, -ENOENT, NULL },
	{ "PUT", "/v1/job/a/b", NULL, -ENOENT, NULL },
	{ "GET", "/v1/job/x%2Fallocations", "/v1/job/:id", 0, "x/allocations" },
	{ "POST", "/v1/job/x", NULL, -EPERM, NULL },
	{ "GET", "/v1/volume/csi/v", "/v1/volume/csi/:id", 0, "v" },
	{ "GET", "/v1/volume/csi/v/x", "/v1/volume/:type/:id/x", 0, "csi" },
	{ "GET", "/v1/var/a", "/v1/var/*", 0, "a" },
	{ "GET", "/v1/var/a/b%2Fc//d", "/v1/var/*", 0, "a/b/c//d" },
	{ "GET", "/v1/var/", NULL, -ENOENT, NULL },
	{ "GET", "/v1/var", NULL, -ENOENT, NULL },
	{ "PUT", "/v1/var/a/b", NULL, -EPERM, NULL },
	{ "PUT", "/v1/job/x/allocations", NULL, -EPERM, NULL },
	{ "GET", "/v1/quotas", NULL, -ENOENT, NULL },
	{ "HEAD", "/v1/quota/a", "/v1/quota/*", 0, "a" },
	{ "POST", "/v1/quota/a", "/v1/quota/*", 0, "a" },
	{ "DELETE", "/v1/quota/a", "/v1/quota/*", 0, "a" },
	{ "PATCH", "/v1/quota/a", NULL, -EPERM, NULL },
};

START_TEST(routes_are_found)
{
	const struct api_route *route = NULL;
	struct api_target t;

	parses(&t, asked[_i].uri);
	ck_assert_int_eq(api_route_find(routes, asked[_i].method, &t, &route), asked[_i].code);
	if (asked[_i].pattern)
		ck_assert_str_eq(route->pattern, asked[_i].pattern);
	if (asked[_i].param)
		ck_assert_str_eq(t.params[0], asked[_i].param);
	else
		ck_assert_uint_eq(t.n_params, 0);
	api_target_done(&t);
}
END_TEST

START_TEST(a_durable_route_says_so)
{
	const struct api_route *route = NULL;
	struct api_target t;

	parses(&t, "/v1/jobs");
	ck_assert_int_eq(api_route_find(routes, "POST", &t, &route), 0);
	ck_assert(route->durable);
	api_target_done(&t);
}
END_TEST

/* Returns whether a pattern's component matches anything. */
static bool
is_open(const char *component)
{
	return *component == ':' || *component == '*';
}

/* Returns whether every path that matches b also matches a. */
static bool
covers(const char *a, const char *b)
{
	while (*a == '/' && *b == '/') {
		size_t a_len = strcspn(++a, "/"), b_len = strcspn(++b, "/");

		if (*a == '*')
			return true;
		if (!is_open(a) && (a_len != b_len || strncmp(a, b, a_len) != 0))
			return false;
		a += a_len;
		b += b_len;
	}
	return !*a && !*b;
}

START_TEST(each_path_of_the_table_can_be_reached)
{
	for (unsigned i = 0; i < API_PATHS; i++)
		for (unsigned j = i + 1; j < API_PATHS; j++)
			ck_assert_msg(strcmp(api_paths[i].method, api_paths[j].method) != 0 ||
					  !covers(api_paths[i].pattern, api_paths[j].pattern),
			    "%s %s hides %s", api_paths[i].method, api_paths[i].pattern,
			    api_paths[j].pattern);
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_test(tc, components_are_decoded_after_they_were_split);
	tcase_add_test(tc, queries_are_decoded);
	tcase_add_test(tc, what_is_no_target_is_refused);
	tcase_add_loop_test(tc, routes_are_found, 0, sizeof asked / sizeof asked[0]);
	tcase_add_test(tc, a_durable_route_says_so);
	tcase_add_test(tc, each_path_of_the_table_can_be_reached);
}

int
main(void)
{
	return unit_run("api_router", add);
}
