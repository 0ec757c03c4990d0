// SPDX-License-Identifier: Apache-2.0
/* test_driver_config.c: evaluates a driver's configuration, with enough memory and without. */
#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "common/cleanup.h"
#include "supervisor/driver/env_expand.h"
#include "supervisor/driver/driver.h"
#include "tests/unit/unit.h"

static long left; /* allocations that jansson may still make; -1: unlimited */

static void *
allocate(size_t size)
{
	if (left == 0)
		return NULL;
	if (left > 0)
		left--;
	return malloc(size);
}

static json_t *
config(void)
{
	return json_pack("{s:s, s:[s, s, [s]], s:{s:i, s:{s:s}}}", "command", "/bin/true", "args",
	    "a", "b$${c}", "d", "more", "n", 5, "deep", "k", "v");
}

START_TEST(it_is_as_deep_as_it_was)
{
	struct task_env env = { 0 };
	json_t *from = config(), *made = NULL;
	struct err e = { 0 };

	ck_assert_int_eq(driver_config_evaluate(from, &env, &made, &e), 0);
	ck_assert_str_eq(
	    json_string_value(json_array_get(json_object_get(made, "args"), 1)), "b${c}");
	ck_assert_int_eq(
	    json_integer_value(json_object_get(json_object_get(made, "more"), "n")), 5);
	json_decref(made);
	json_decref(from);
}
END_TEST

START_TEST(no_memory_is_a_sentence)
{
	struct task_env env = { 0 };
	json_t *from, *made = NULL;
	int r = -ENOMEM, failed = 0;

	left = -1;
	json_set_alloc_funcs(allocate, free);
	from = config();
	for (int n = 0; r < 0; n++) {
		struct err e = { 0 };

		left = n;
		r = driver_config_evaluate(from, &env, &made, &e);
		if (r == 0)
			break;
		ck_assert_int_eq(r, -ENOMEM);
		ck_assert_int_eq(e.code, -ENOMEM);
		ck_assert_ptr_nonnull(strstr(e.msg, "Cannot allocate memory"));
		failed++;
	}
	ck_assert_int_gt(failed, 10);
	left = -1;
	json_decref(made);
	json_decref(from);
	json_set_alloc_funcs(malloc, free);
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_test(tc, it_is_as_deep_as_it_was);
	tcase_add_test(tc, no_memory_is_a_sentence);
}

int
main(void)
{
	return unit_run("driver_config", add);
}
