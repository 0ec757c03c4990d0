// SPDX-License-Identifier: Apache-2.0
/* test_check_spec.c: what a check requests, and the sentence for a check that cannot run. */
#include <errno.h>
#include <string.h>

#include "supervisor/core/sup.h"
#include "supervisor/service/check_spec.h"
#include "tests/unit/unit.h"

/* Makes the spec of a check of this type on port 80 of a service with an address of its own. */
static int
make(const char *type, struct check_spec *ret, struct err *e)
{
	struct sup sup = { 0 };
	struct alloc a = { 0 };
	struct service s = { 0 };
	struct service_check c = { 0 };
	int r;

	str_set(&s.address, "127.0.0.1");
	str_set(&s.port_label, "80");
	str_set(&c.type, type);
	r = check_spec_make(&sup, &a, NULL, &s, &c, ret, e);
	service_check_done(&c);
	service_done(&s);
	return r;
}

START_TEST(known_types_are_made)
{
	static const struct {
		const char *type;
		bool http;
	} cases[] = { { "tcp", false }, { "TCP", false }, { "http", true }, { "HTTP", true } };

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		struct check_spec spec = { 0 };
		struct err e = { 0 };

		ck_assert_int_eq(make(cases[i].type, &spec, &e), 0);
		ck_assert_int_eq(spec.http, cases[i].http);
		check_spec_done(&spec);
	}
}
END_TEST

START_TEST(other_types_are_refused)
{
	static const char *const types[] = { "script", "grpc", "", "tcp " };

	for (size_t i = 0; i < ELEMENTSOF(types); i++) {
		struct check_spec spec = { 0 };
		struct err e = { 0 };

		ck_assert_int_eq(make(types[i], &spec, &e), -EINVAL);
		ck_assert_ptr_nonnull(strstr(e.msg, "is neither http nor tcp"));
		check_spec_done(&spec);
	}
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_test(tc, known_types_are_made);
	tcase_add_test(tc, other_types_are_refused);
}

int
main(void)
{
	return unit_run("check_spec", add);
}
