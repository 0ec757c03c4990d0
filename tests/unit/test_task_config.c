// SPDX-License-Identifier: Apache-2.0
/* test_task_config.c: the configuration of a task's driver, evaluated when the task starts.
 * fixtures/task_config.txt has texts and their values, which are those of Nomad's client. */
#include "hcl/hcl_value.h"
#include "jobspec/task_config.h"
#include "tests/unit/fixture_pairs.h"

static const char values[] =
    "{\"env\": {\"NOMAD_JOB_NAME\": \"web\", \"NOMAD_PORT_http\": \"8080\", \"X\": \"x y\","
    " \"A.b\": \"dotted\", \"foo..bar\": \"odd\", \"NOMAD_META_n\": \"3\", \"NOMAD_ALLOC_INDEX\": "
    "\"0\","
    " \"LIST\": \"[\\\"a\\\",\\\"b\\\"]\", \"with-dash\": \"d\", \"caf\u00e9\": \"u\","
    " \"NOMAD_PORT_my-port\": \"99\", \"NOMAD_IP_my_ip\": \"::1\", \"attr\": \"envattr\"},"
    " \"node\": {\"attr.cpu.arch\": \"amd64\", \"attr.driver.exec\": \"1\", "
    "\"attr.driver.exec.x\": \"2\","
    " \"meta.x\": \"mx\", \"meta.rack-1\": \"r\", \"node.unique.id\": \"id1\", "
    "\"node.datacenter\": \"dc1\","
    " \"node.region\": \"global\", \"attr.unique.hostname\": \"h\"}}";

/* Returns "= JSON", or "! PROBLEM"; the caller frees it. */
static char *
result_of(const json_t *config, const json_t *names, const struct hcl_limits *limits)
{
	struct hcl *h = hcl_new(limits);
	char *found;
	size_t len;
	const char *json = task_config_evaluate(h, config, names, &len);

	if (json)
		ck_assert_int_gt(asprintf(&found, "= %s", json), 0);
	else
		ck_assert_int_gt(asprintf(&found, "! %s", task_config_problem(h)), 0);
	ck_assert(!json || strlen(json) == len);
	hcl_free(h);
	return found;
}

static void
check_config(const char *config, const char *expected)
{
	json_t *json = json_loads(config, 0, NULL), *names = json_loads(values, 0, NULL);
	char *found;

	ck_assert_ptr_nonnull(json);
	ck_assert_ptr_nonnull(names);
	found = result_of(json, names, &task_config_limits);
	fixture_compare(config, found, expected);
	free(found);
	json_decref(names);
	json_decref(json);
}

/* The text is config.command. */
static void
check_text(const char *text, const char *expected)
{
	json_t *config = json_pack("{s:s}", "command", text), *names = json_loads(values, 0, NULL);
	char *found = result_of(config, names, &task_config_limits), *whole;

	if (*expected == '=')
		ck_assert_int_gt(asprintf(&whole, "= {\"command\":%s}", expected + 2), 0);
	else
		ck_assert_int_gt(
		    asprintf(&whole, "! config.command: \"%s\": %s", text, expected + 2), 0);
	fixture_compare(text, found, whole);
	free(whole);
	free(found);
	json_decref(names);
	json_decref(config);
}

START_TEST(texts)
{
	ck_assert_uint_gt(fixture_pairs(FIXTURES "/task_config.txt", check_text), 150);
	check_text("${X ~}\n  b", "= \"x y  b\"");
	check_text("a\n  \n${~ X}", "= \"a\\nx y\"");
	check_text("%{ if true ~}\n  yes\n%{ endif ~}\n  z", "= \"  yes\\n  z\"");
	check_text("\xef\xbb\xbf${X}", "= \"x y\"");
	check_text("a\\n\n${\nX\n}\r\n", "= \"a\\\\n\\nx y\\r\\n\"");
	check_text("${NOMAD_IP_my-ip}", "= \"::1\"");
	check_text(
	    "${jsondecode(\"\\\"a\\\\u0000b\\\"\")}", "! a task cannot get a text with a NUL");
	check_text("", "= \"\"");
}
END_TEST

START_TEST(configurations)
{
	check_config("{\"args\": \"${jsondecode(LIST)}\"}", "= {\"args\":[\"a\",\"b\"]}");
	check_config("{\"args\": \"${[1, true, null, [X]]}\"}",
	    "= {\"args\":[\"1\",\"true\",null,[\"x y\"]]}");
	check_config("{\"args\": [8080, -5, 1.5, true, 0.1, 1e21, 1e-7, null]}",
	    "= {\"args\":[\"8080\",\"-5\",\"1.5\",\"true\",\"0.1\",\"1000000000000000000000\","
	    "\"0.0000001\",null]}");
	check_config("{\"a\": {\"${X}\": \"${upper(X)}\", \"b\": [{}]}}",
	    "= {\"a\":{\"b\":[{}],\"x y\":\"X Y\"}}");
	check_config("{\"${X}\": \"${X}\"}", "= {\"${X}\":\"x y\"}");
	check_config("{\"a\": {\"${[1]}\": 1}}", "! config.a.${[1]}: a key must be a text");
	check_config("{\"a\": [\"x\", {\"b\": \"${nope}\"}]}",
	    "! config.a[1].b: \"${nope}\": unknown variable \"nope\"");
}
END_TEST

/* Names with dots that have no place in objects, or contradict each other. */
START_TEST(names_with_dots)
{
	json_t *all =
	    json_loads("{\"env\": {\".a\": \"1\", \"b.\": \"2\", \"c\": \"3\", \"c.d\": \"4\", "
		       "\"c-d\": \"5\", \"env.x\": \"6\", \"e\": \"7\", \"\": \"8\"}, "
		       "\"node\": {\"e\": \"9\", \"attr.a\": \"10\", \"attr.a.b\": \"11\"}}",
		0, NULL);
	json_t *config = json_pack("{s:s}", "x",
	    "${env[\".a\"]}${env[\"b.\"]}${c.d}${c-d}${env[\"env.x\"]}${e}${env[\"\"]}${attr.a.b}${"
	    "node.attr.a.b}${env.e}");
	char *found;

	ck_assert_ptr_nonnull(all);
	found = result_of(config, all, &task_config_limits);
	ck_assert_str_eq(found, "= {\"x\":\"12456981111"
				"7\"}");
	free(found);
	json_decref(config);
	json_decref(all);
}
END_TEST

START_TEST(limits)
{
	const struct hcl_limits few = { 1000, 1 << 20, 1000, 20 };
	json_t *names = json_object(), *config;
	static const char *const large[][2] = {
		{ "${[for a in [1,2,3,4,5,6,7,8,9,0]: [for b in [1,2,3,4,5,6,7,8,9,0]: [for c in "
		  "[1,2,3,4,5,6,7,8,9,0]: c]]]}",
		    "the document needs too many steps" },
		{ "${[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]}", "nested more than" },
	};

	for (size_t i = 0; i < sizeof large / sizeof large[0]; i++) {
		char *found;

		config = json_pack("{s:s}", "x", large[i][0]);
		found = result_of(config, names, &few);
		if (*found != '!' || !strstr(found, large[i][1]))
			ck_abort_msg("%s", found);
		free(found);
		json_decref(config);
	}
	json_decref(names);
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_test(tc, texts);
	tcase_add_test(tc, configurations);
	tcase_add_test(tc, names_with_dots);
	tcase_add_test(tc, limits);
}

int
main(void)
{
	return unit_run("task_config", add);
}
