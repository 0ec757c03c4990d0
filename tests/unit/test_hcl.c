// SPDX-License-Identifier: Apache-2.0
/* test_hcl.c: expressions and bodies of HCL: what they evaluate to, and what is wrong with them. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/hcl_evaluation.h"
#include "tests/unit/unit.h"

/* The value as JSON, or the first problem's text. */
static void
check_value(const char *text, const char *expected)
{
	struct hcl *h = hcl_new(&hcl_job_limits);
	struct hcl_source source = { "x", text, strlen(text) };
	struct hcl_scope scope = { 0 };
	struct evaluation x = { .scope = &scope };
	const char *found;

	x.expr = hcl_parse_expr(h, &source);
	if (x.expr && hcl_try(h, evaluate, &x))
		found = x.json;
	else
		found = hcl_problem_text(h, hcl_problems(h));
	if (strncmp(found, expected, strlen(expected)) != 0 ||
	    (x.json && strcmp(found, expected) != 0))
		ck_abort_msg("%s\n  is %s\n  not %s", text, found, expected);
	hcl_free(h);
}

START_TEST(expressions)
{
	static const char *const cases[][2] = {
		{ "1", "1" },
		{ "1.50", "1.5" },
		{ "0.1 + 0.2", "0.3" },
		{ "9007199254740993", "9007199254740993" },
		{ "9007199254740993 * 9007199254740993", "81129638414606699710187514626049" },
		{ "1e3", "1000" },
		{ "1 / 4", "0.25" },
		{ "7 % 3", "1" },
		{ "-7 % 3", "-1" },
		{ "-(2 + 3) * 2", "-10" },
		{ "1 + 2 * 3 == 7 && !false", "true" },
		{ "1 == \"1\"", "false" },
		{ "\"2\" * 3", "6" },
		{ "true ? 1 : 2", "1" },
		{ "false ? \"a\" : 2", "\"2\"" },
		{ "true ? null : 2", "null" },
		{ "true ? 1 : [][0]", "1" },
		{ "false ? nope : 1 == 1 ? \"b\" : \"x\" + 1", "\"b\"" },
		{ "[1, \"a\", true, null]", "[1,\"a\",true,null]" },
		{ "{ a = 1, \"b\" : 2\n c = 3 }", "{\"a\":1,\"b\":2,\"c\":3}" },
		{ "{ (\"x${1}\") = 1 }", "{\"x1\":1}" },
		{ "{ a = { b = [10, 20] } }.a.b[1]", "20" },
		{ "[[1, 2], [3]][0][1]", "2" },
		{ "[{ a = 1 }, { a = 2 }][*].a", "[1,2]" },
		{ "[{ a = 1 }, { a = 2 }].*.a", "[1,2]" },
		{ "null[*]", "[]" },
		{ "\"e\xcc\x81\"", "\"\xc3\xa9\"" },
		{ "\"${\"e\"}\xcc\x81\"", "\"\xc3\xa9\"" },
		{ "5[*]", "[5]" },
		{ "[for x in [1, 2, 3]: x * 2 if x > 1]", "[4,6]" },
		{ "[for i, x in [\"a\", \"b\"]: \"${i}${x}\"]", "[\"0a\",\"1b\"]" },
		{ "{ for k, v in { b = 1, a = 2 }: k => v }", "{\"a\":2,\"b\":1}" },
		{ "{ for x in [\"a\", \"b\", \"a\"]: x => 1... }", "{\"a\":[1,1],\"b\":[1]}" },
		{ "\"a${1 + 1}b\"", "\"a2b\"" },
		{ "\"${[1]}\"", "[1]" },
		{ "\"$${a} %%{b} $ % $a\"", "\"${a} %{b} $ % $a\"" },
		{ "\"\\n\\t\\\"\\\\\\u00e9\\U0001F600\"", "\"\\n\\t\\\"\\\\\u00e9\U0001F600\"" },
		{ "\"%{ if true }yes%{ else }no%{ endif }\"", "\"yes\"" },
		{ "\"%{ for x in [1, 2] }<${x}>%{ endfor }\"",
		    "\"\\u003c1\\u003e\\u003c2\\u003e\"" },
		{ "\"a ${~ 1 ~} b\"", "\"a1b\"" },
		{ "<<EOT\na\n  b ${1}\nEOT\n", "\"a\\n  b 1\\n\"" },
		{ "<<-EOT\n    a\n      b\n\n    c\n    EOT\n", "\"a\\n  b\\n\\nc\\n\"" },
		{ "<<EOT\n%{ for x in [1, 2] ~}\nx${x}\n%{ endfor ~}\nEOT\n", "\"x1\\nx2\\n\"" },
		{ "<<EOT\nEOT\n", "\"\"" },
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		check_value(cases[i][0], cases[i][1]);
}
END_TEST

START_TEST(wrong_expressions)
{
	static const char *const cases[][2] = {
		{ "1 +", "x:1:4: expected a value, found the end of the file" },
		{ "[1, 2",
		    "x:1:6: expected \",\" or \"]\" after an element, found the end of the file" },
		{ "\"abc", "x:1:1: this text has no end: expected a quote" },
		{ "\"\\q\"", "x:1:2: unknown escape" },
		{ "foo", "x:1:1: unknown variable \"foo\"" },
		{ "1 / 0", "x:1:1: this divides by zero" },
		{ "0.0.0.0",
		    "x:1:1: a number has no elements; an address or a version needs quotes" },
		{ "[1][2]", "x:1:1: there is no element 2: the list has 1" },
		{ "{ abc = 1 }.abd",
		    "x:1:1: there is no attribute \"abd\" here: did you mean \"abc\"?" },
		{ "\"${null}x\"", "x:1:4: a null value cannot be part of a text" },
		{ "true ? 1 : true",
		    "x:1:1: the two results of a condition must have a common type" },
		{ "false ? 1 : [1][2]", "x:1:13: there is no element 2: the list has 1" },
		{ "nope ? 1 : 2", "x:1:1: unknown variable \"nope\"" },
		{ "nope()", "x:1:1: functions cannot be called here" },
		{ "<<EOT\nabc\n",
		    "x:1:1: this heredoc has no end: expected a line with EOT alone" },
		{ "1 2", "x:1:3: expected the end of the expression, found \"2\"" },
		{ "{ for x in [1, 1]: \"a\" => x }", "x:1:20: two elements have the key \"a\"" },
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		check_value(cases[i][0], cases[i][1]);
}
END_TEST

static char *
nested(const char *open, size_t n)
{
	size_t len = strlen(open);
	char *text = malloc(n * len + 1);

	ck_assert_ptr_nonnull(text);
	for (size_t i = 0; i < n; i++)
		memcpy(text + i * len, open, len);
	text[n * len] = '\0';
	return text;
}

START_TEST(deep_nesting_is_refused)
{
	static const char *const opens[] = { "[", "{a=", "(", "-", "!", "\"${", "f(", "[for x in ",
		"1?", "a[" };

	for (size_t i = 0; i < sizeof opens / sizeof opens[0]; i++) {
		char *text = nested(opens[i], 100000);

		check_value(text, i == 2 ? "x:1:" : "x:1:");
		free(text);
	}
}
END_TEST

START_TEST(a_large_result_is_refused)
{
	char text[4000] = "[for a in [1,2,3,4,5,6,7,8,9,0]: ", close[200] = "1";

	for (int i = 0; i < 9; i++) {
		strcat(text, "[for a in [1,2,3,4,5,6,7,8,9,0]: ");
		strcat(close, "]");
	}
	strcat(text, close);
	strcat(text, "]");
	check_value(text, "x:1:");
}
END_TEST

START_TEST(bodies)
{
	static const char text[] =
	    "a = 1\nblock \"x\" y {\n  b = 2 # comment\n  c {}\n}\none { d = 3 }\n";
	struct hcl *h = hcl_new(&hcl_job_limits);
	struct hcl_source source = { "x", text, strlen(text) };
	const struct hcl_body *body = hcl_parse_body(h, &source);

	ck_assert_ptr_nonnull(body);
	ck_assert_str_eq(body->attrs->name, "a");
	ck_assert_str_eq(body->blocks->type, "block");
	ck_assert_uint_eq(body->blocks->n_labels, 2);
	ck_assert_str_eq(body->blocks->labels[1].text, "y");
	ck_assert_str_eq(body->blocks->body->blocks->type, "c");
	ck_assert_str_eq(body->blocks->next->body->attrs->name, "d");
	hcl_free(h);
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_test(tc, expressions);
	tcase_add_test(tc, wrong_expressions);
	tcase_add_test(tc, deep_nesting_is_refused);
	tcase_add_test(tc, a_large_result_is_refused);
	tcase_add_test(tc, bodies);
}

int
main(void)
{
	return unit_run("hcl", add);
}
