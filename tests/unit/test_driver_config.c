// SPDX-License-Identifier: Apache-2.0
/* test_driver_config.c: evaluates a driver's configuration. */
#include <jansson.h>
#include <string.h>

#include "common/cleanup.h"
#include "supervisor/driver/env_expand.h"
#include "supervisor/driver/driver.h"
#include "tests/unit/unit.h"

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

static void
add(TCase *tc)
{
	tcase_add_test(tc, it_is_as_deep_as_it_was);
}

int
main(void)
{
	return unit_run("driver_config", add);
}
