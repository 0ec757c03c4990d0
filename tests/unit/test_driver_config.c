// SPDX-License-Identifier: Apache-2.0
/* test_driver_config.c: evaluates a driver's configuration; compares releases of the kernel. */
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
	ck_assert_str_eq(
	    json_string_value(json_object_get(json_object_get(made, "more"), "n")), "5");
	json_decref(made);
	json_decref(from);
}
END_TEST

/* Other texts are evaluated by job-parser. */
START_TEST(plain_references_are_known_by_their_form)
{
	static const char *const plain[] = { "", "a", "$", "$$", "${A}", "${ A }",
		"x${a.b-c.d}y${E}", "$${1+1}", "%%{if}", "${env[\"a b\"]}", "${ env[\"x\"] }",
		"${_x9}", "${nullx}", "$x {y}", "$$${A}", "%%%{if}" };
	static const char *const other[] = { "${", "${}", "${ }", "${1}", "${A", "${A}${", "${a+b}",
		"${a b}", "${true}", "${ null }", "${f(x)}", "%{if true}", "a${~A}", "${env[x]}",
		"${env[\"a\"]x}", "${env[\"a\\\"b\"]}", "${env[\"${A}\"]}", "${a[0]}", "${\"a\"}",
		"${ä}", "${-a}" };

	for (size_t i = 0; i < ELEMENTSOF(plain); i++)
		ck_assert_msg(task_env_can_expand(plain[i]), "%s", plain[i]);
	for (size_t i = 0; i < ELEMENTSOF(other); i++)
		ck_assert_msg(!task_env_can_expand(other[i]), "%s", other[i]);
}
END_TEST

START_TEST(a_plain_configuration_has_plain_texts_and_no_fractions)
{
	static const struct {
		const char *json;
		bool plain;
	} cases[] = {
		{ "{\"args\": [\"${A}\", 1, true, null]}", true },
		{ "{\"args\": [1.5]}", false },
		{ "{\"a\": {\"b\": [[\"${upper(A)}\"]]}}", false },
	};

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		json_t *made = json_loads(cases[i].json, 0, NULL);

		ck_assert_ptr_nonnull(made);
		ck_assert_msg(driver_config_is_plain(made) == cases[i].plain, "%s", cases[i].json);
		json_decref(made);
	}
}
END_TEST

START_TEST(releases_of_the_kernel)
{
	static const struct {
		const char *release;
		bool is_older;
	} cases[] = { { "5.19.0", false }, { "5.18.99-rc1", true }, { "4.20.1", true },
		{ "6.1.0-18-amd64", false }, { "5.19", false }, { "10.0.0", false },
		{ "5.2-generic", true }, { "strange", false } };

	for (size_t i = 0; i < ELEMENTSOF(cases); i++)
		ck_assert_msg(driver_kernel_is_older(cases[i].release, 5, 19) == cases[i].is_older,
		    "%s", cases[i].release);
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_test(tc, releases_of_the_kernel);
	tcase_add_test(tc, plain_references_are_known_by_their_form);
	tcase_add_test(tc, a_plain_configuration_has_plain_texts_and_no_fractions);
	tcase_add_test(tc, it_is_as_deep_as_it_was);
}

int
main(void)
{
	return unit_run("driver_config", add);
}
