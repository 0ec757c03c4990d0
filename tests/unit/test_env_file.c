// SPDX-License-Identifier: Apache-2.0
/* test_env_file.c: lines KEY=VALUE of a template with env = true. The values are what go-envparse
 * 0.1.0 makes of the same lines, except where a comment says that they differ. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "model/env_file.h"
#include "tests/unit/unit.h"

static const struct {
	const char *text, *key, *value; /* value NULL: key is not set */
} values[] = {
	{ "", "A", NULL }, { " \t\r\n\n# A=1\n  # A=2", "A", NULL }, { "A=", "A", "" },
	{ "A= # b", "A", "" }, { "A=#b", "A", "" }, { "A=b", "A", "b" }, { "A=b\r\n", "A", "b" },
	{ "\tA\t=\tb c \t", "A", "b c" }, { "A=b=c", "A", "b=c" }, { "A=b#c", "A", "b" },
	{ "A=b  c   # d", "A", "b  c" }, { "A=1\nA=2", "A", "2" }, { "A=1\n\nB=2", "A", "1" },
	{ "export A=b", "A", "b" }, { "  export A = b", "A", "b" }, { "export=b", "export", "b" },
	{ "export =b", "export", "b" }, { "_=b", "_", "b" }, { "a.b/c_9=b", "a.b/c_9", "b" },
	{ "A='b # c'", "A", "b # c" }, { "A='\\n\"' # c", "A", "\\n\"" }, { "A=''", "A", "" },
	{ "A='' # c", "A", "" }, { "A=b' c '", "A", "b c " }, { "A=b ''", "A", "b " },
	{ "A=b '' # c", "A", "b" }, { "A=b '' ' ' # c", "A", "b   " },
	{ "A=\"b # c\"", "A", "b # c" }, { "A=\" b\\t\" ", "A", " b\t" },
	{ "A=\"'\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "A", "'\"\\/\b\f\n\r\t" },
	{ "A=\\n\\\"'x'", "A", NULL }, /* a quote without its end: see below */
	{ "A=\\n", "A", "\\n" },
	{ "A=\"\\u0041\\u00e9\\u2318\\uFFFF\"", "A", "A\xc3\xa9\xe2\x8c\x98\xef\xbf\xbf" },
	{ "A=\"\\ud83d\\uDE01\"", "A", "\xf0\x9f\x98\x81" },
	{ "A=\"\\ude01\\ud83d\"", "A", "\xef\xbf\xbd" },
	{ "A=\"\\ud83d\\u0041\"", "A", "\xef\xbf\xbd" }, { "A=\xc3\xa9\x7f", "A", "\xc3\xa9\x7f" },
	{ "A=\xff", "A", "\xff" }, { "A='\xc3\xa9' b # c", "A", "\xc3\xa9 b" },
	{ "A=\xc3\xa9 # b", "A", "\xc3\xa9" }, /* go-envparse: half of the character */
};

static void
forget(struct string_map *map)
{
	for (size_t i = 0; i < map->n; i++) {
		free(map->v[i].key);
		free(map->v[i].value);
	}
	free(map->v);
	*map = (struct string_map){ 0 };
}

START_TEST(lines_have_these_values)
{
	struct string_map map = { 0 };
	struct err e = { 0 };
	int r = env_file_parse(values[_i].text, strlen(values[_i].text), &map, &e);

	if (values[_i].value)
		ck_assert_msg(r == 0, "%s: %s", values[_i].text, e.msg);
	ck_assert_pstr_eq(string_map_get(&map, values[_i].key), values[_i].value);
	forget(&map);
}
END_TEST

static const struct {
	const char *text, *error;
	size_t len; /* 0: up to its NUL */
} errors[] = {
	{ .text = "A", .error = "line 1: it has no =" },
	{ .text = "A=1\n\n# x\nb c\n", .error = "line 4: it has no =" },
	{ .text = "=b", .error = "line 1: its key" },
	{ .text = " = ", .error = "line 1: its key" },
	{ .text = "1A=b", .error = "line 1: its key" },
	{ .text = ".A=b", .error = "line 1: its key" },
	{ .text = "A-B=b", .error = "line 1: its key" },
	{ .text = "A B=b", .error = "line 1: its key" },
	{ .text = "\xc3\xa9=b", .error = "line 1: its key" },
	{ .text = "export  A=b", .error = "line 1: its key" },
	{ .text = "export A B=b", .error = "line 1: its key" },
	{ .text = "A\0B=b", .len = 5, .error = "line 1: its key" },
	{ .text = "A=b\tc", .error = "line 1: a control character" },
	{ .text = "A='b\tc'", .error = "line 1: a control character" },
	{ .text = "A=b\rc", .error = "line 1: a control character" },
	{ .text = "A=b\0c", .len = 5, .error = "line 1: a control character" },
	{ .text = "A=\"\\u0000\"", .error = "line 1: a control character" }, /* go-envparse: NUL */
	{ .text = "A='b", .error = "line 1: a ' without its end" },
	{ .text = "A='b\nc'", .error = "line 1: a ' without its end" },
	{ .text = "A=\"b", .error = "line 1: a \" without its end" },
	{ .text = "A=\\\"b", .error = "line 1: a \" without its end" },
	{ .text = "A=1\nB=\"b\\", .error = "line 2: there is no such escape" },
	{ .text = "A=\"\\a\"", .error = "line 1: there is no such escape" },
	{ .text = "A=\"\\\xc3\xa9\"", .error = "line 1: there is no such escape" },
	{ .text = "A=\"\\u12\"", .error = "line 1: \\u needs four" },
	{ .text = "A=\"\\u12g4\"", .error = "line 1: \\u needs four" },
	{ .text = "A=\"\\u12", .error = "line 1: \\u needs four" },
	{ .text = "A=\"\\ud83d\"", .error = "line 1: \\u has one half" },
	{ .text = "A=\"\\ud83d\\n\"", .error = "line 1: \\u has one half" },
	{ .text = "A=\"\\ud83d\\ude0\"", .error = "line 1: \\u needs four" },
};

START_TEST(errors_name_the_line)
{
	size_t len = errors[_i].len ? errors[_i].len : strlen(errors[_i].text);
	struct string_map map = { 0 };
	struct err e = { 0 };

	ck_assert_int_eq(env_file_parse(errors[_i].text, len, &map, &e), -EINVAL);
	ck_assert_msg(strncmp(e.msg, errors[_i].error, strlen(errors[_i].error)) == 0, "%s", e.msg);
	forget(&map);
}
END_TEST

/* Values are secrets. */
START_TEST(errors_show_no_value)
{
	static const char text[] = "sesame-key-\nA=1\nsesame\n";
	static const char value[] = "A='sesame";
	struct string_map map = { 0 };
	struct err e = { 0 };

	ck_assert_int_eq(env_file_parse(text, sizeof text - 1, &map, &e), -EINVAL);
	ck_assert_ptr_null(strstr(e.msg, "sesame"));
	ck_assert_int_eq(env_file_parse(value, sizeof value - 1, &map, &e), -EINVAL);
	ck_assert_ptr_null(strstr(e.msg, "sesame"));
	forget(&map);
}
END_TEST

START_TEST(the_number_of_variables_is_limited)
{
	cleanup_free char *text = mem_alloc((ENV_FILE_MAX + 2) * 10);
	struct string_map map = { 0 };
	struct err e = { 0 };
	size_t len = 0;

	for (int i = 0; i < ENV_FILE_MAX; i++)
		len += (size_t)sprintf(text + len, "A%d=\n", i);
	ck_assert_int_eq(env_file_parse(text, len, &map, &e), 0);
	ck_assert_uint_eq(map.n, ENV_FILE_MAX);
	forget(&map);
	len += (size_t)sprintf(text + len, "A=\n");
	ck_assert_int_eq(env_file_parse(text, len, &map, &e), -EINVAL);
	ck_assert_str_eq(e.msg, "line 4097: there are too many variables");
	forget(&map);
}
END_TEST

static void
add_tests(TCase *tc)
{
	tcase_add_loop_test(tc, lines_have_these_values, 0, ELEMENTSOF(values));
	tcase_add_loop_test(tc, errors_name_the_line, 0, ELEMENTSOF(errors));
	tcase_add_test(tc, errors_show_no_value);
	tcase_add_test(tc, the_number_of_variables_is_limited);
}

int
main(void)
{
	return unit_run("env_file", add_tests);
}
