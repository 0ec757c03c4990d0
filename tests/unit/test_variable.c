// SPDX-License-Identifier: Apache-2.0
/* test_variable.c: paths and sizes of variables, and their locks as JSON. Runs in: unit tests. */
#include <errno.h>
#include <string.h>

#include "model/variable.h"
#include "tests/unit/unit.h"

static const struct {
	const char *path;
	bool valid;
} path_cases[] = {
	{ "a", true },
	{ "a/b/c", true },
	{ "AZaz09-_~/x", true },
	{ "trailing/", true },
	{ "nomad/jobs", true },
	{ "nomad/jobs/a/b/c", true },
	{ "nomad/sentinel", true },
	{ "nomad/job-templates/a", true },
	{ "nomad/job-templates/", true },
	{ "nomadic", true },
	{ "x/nomad", true },
	{ "", false },
	{ "a b", false },
	{ "a.b", false },
	{ "a@b", false },
	{ "\xc3\xa4", false },
	{ "a\nb", false },
	{ "nomad", false },
	{ "nomad/", false },
	{ "nomad/x", false },
	{ "nomad/job", false },
	{ "nomad/jobsx", false },
	{ "nomad/job-templates", false },
	{ "nomad/job-templates/a/b", false },
	{ "nomad/job-templates/a/", false },
};

START_TEST(paths)
{
	struct err e = { 0 };
	int r = variable_check_path(path_cases[_i].path, &e);

	ck_assert_msg((r == 0) == path_cases[_i].valid, "%s: %d %s", path_cases[_i].path, r, e.msg);
	ck_assert(path_cases[_i].valid || *e.msg);
}
END_TEST

START_TEST(the_length_of_a_path)
{
	char path[VARIABLE_PATH_MAX + 2];
	struct err e = { 0 };

	memset(path, 'a', sizeof path);
	path[VARIABLE_PATH_MAX + 1] = '\0';
	ck_assert_int_eq(variable_check_path(path, &e), -EINVAL);
	path[VARIABLE_PATH_MAX] = '\0';
	ck_assert_int_eq(variable_check_path(path, &e), 0);
}
END_TEST

static const char *
as_json(const char *text)
{
	static struct text out;
	cleanup_done(variable) struct variable v;
	struct err e = { 0 };

	variable_init(&v);
	text_done(&out);
	if (model_from_text(&variable_type, text, strlen(text), &v, &e) < 0)
		text_printf(&out, "%s", e.msg);
	else
		model_to_text(&variable_type, &v, MODEL_COMPACT, &out);
	return out.text;
}

START_TEST(the_times_of_a_lock_are_texts)
{
	ck_assert_str_eq(as_json("{\"Lock\":{\"TTL\":15000000000,\"LockDelay\":\"1m30s\"}}"),
	    "{\"Lock\":{\"TTL\":\"15s\",\"LockDelay\":\"1m30s\"}}");
	ck_assert_str_eq(as_json("{\"Lock\":{\"TTL\":\"\",\"LockDelay\":0,\"ID\":\"x\"}}"),
	    "{\"Lock\":{\"ID\":\"x\"}}");
	ck_assert_ptr_nonnull(strstr(as_json("{\"Lock\":{\"TTL\":\"x\"}}"), "expected a duration"));
}
END_TEST

START_TEST(errors_have_no_value)
{
	static const char *const bodies[] = {
		"{\"Items\":{\"k\":982451653}}",
		"{\"Items\":{\"k\":[\"982451653\"]}}",
		"{\"Items\":[\"982451653\"]}",
		"{\"Items\":\"982451653\"}",
		"{\"Items\":{\"k\":982451653.5}}",
	};

	ck_assert_msg(!strstr(as_json(bodies[_i]), "982451653"), "%s", as_json(bodies[_i]));
	ck_assert_msg(strstr(as_json(bodies[_i]), "expected"), "%s", as_json(bodies[_i]));
}
END_TEST

START_TEST(items_are_no_part_of_a_row)
{
	cleanup_done(variable) struct variable v;
	struct text row = { 0 }, stub = { 0 };

	variable_init(&v);
	str_set(&v.path, "a");
	string_map_set(&v.items, "key", "value");
	ck_assert_uint_eq(variable_size(&v), 8);
	model_to_text(&variable_type, &v, MODEL_COMPACT | MODEL_ROW, &row);
	ck_assert_str_eq(row.text, "{\"Path\":\"a\"}");
	model_to_text(&variable_stub_type, &v, 0, &stub);
	ck_assert_ptr_null(strstr(stub.text, "Items"));
	text_done(&row);
	text_done(&stub);
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_loop_test(tc, paths, 0, ELEMENTSOF(path_cases));
	tcase_add_test(tc, the_length_of_a_path);
	tcase_add_test(tc, the_times_of_a_lock_are_texts);
	tcase_add_loop_test(tc, errors_have_no_value, 0, 5);
	tcase_add_test(tc, items_are_no_part_of_a_row);
}

int
main(void)
{
	return unit_run("variable", add);
}
