// SPDX-License-Identifier: Apache-2.0
/* test_template.c: rendering of templates: fixtures/template_*.txt have templates and results,
 * which are those of Nomad's client. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "template/tpl_functions.h"
#include "tests/unit/fixture_pairs.h"
#include "common/cleanup.h"
#include "tests/unit/template_data.h"

static struct test_data *data;

static void
setup(void)
{
	data = data_load(FIXTURES "/template_data.json");
	ck_assert_ptr_nonnull(data->json);
}

static void
teardown(void)
{
	data_free(data);
}

/* The options that a line such as "% missing=error left=<<" sets for those after it. */
static struct template_options options;
static char delimiters[2][16];

static void
set_options(const char *line)
{
	options = (struct template_options){ .left = delimiters[0], .right = delimiters[1] };
	memset(delimiters, 0, sizeof delimiters);
	options.missing_key_fails = strstr(line, "missing=error") != NULL;
	if (strstr(line, "left="))
		(void)sscanf(strstr(line, "left="), "left=%15s", delimiters[0]);
	if (strstr(line, "right="))
		(void)sscanf(strstr(line, "right="), "right=%15s", delimiters[1]);
}

static void
check(const char *line, const char *expected)
{
	char *text = strdup(line), *found;
	size_t len = data_unescape(text);

	found = data_render(data, text, len, &options);
	if (strcmp(found, expected) != 0)
		ck_abort_msg("%s\n  is  %s\n  not %s", line, found, expected);
	free(found);
	free(text);
}

static size_t
check_all(const char *path)
{
	char *line = NULL, *expected = NULL;
	size_t line_size = 0, expected_size = 0, n = 0;
	FILE *f = fopen(path, "re");

	ck_assert_ptr_nonnull(f);
	set_options("");
	while (fixture_line(f, &line, &line_size)) {
		if (*line == '#')
			continue;
		if (strncmp(line, "% ", 2) == 0) {
			set_options(line);
			continue;
		}
		ck_assert(fixture_line(f, &expected, &expected_size));
		check(line, expected);
		n++;
	}
	free(line);
	free(expected);
	(void)fclose(f);
	return n;
}

START_TEST(the_language)
{
	ck_assert_uint_gt(check_all(FIXTURES "/template_language.txt"), 1000);
}
END_TEST

START_TEST(functions)
{
	ck_assert_uint_gt(check_all(FIXTURES "/template_functions.txt"), 2000);
	ck_assert_uint_gt(check_all(FIXTURES "/template_sprig.txt"), 1000);
	ck_assert_uint_gt(check_all(FIXTURES "/template_sockaddr.txt"), 100);
}
END_TEST

START_TEST(functions_that_are_denied_fail)
{
	static const struct {
		const char *text, *found;
	} cases[] = {
		{ "{{ toUpper \"x\" }}", "= X" },
		{ "{{ env \"x\" }}",
		    "! execute: template: :1:3: executing \"\" at <env \"x\">: error "
		    "calling env: function is disabled" },
		{ "{{ \"a\" | trim \"b\" }}", "! execute: template: :1:9: executing \"\" at <trim "
					      "\"b\">: error calling trim: function is disabled" },
		{ "{{ trimSpace \" a\" }}", "= a" },
		{ "{{ if false }}{{ env \"x\" }}{{ end }}", "= " },
		{ "{{ sprig_upper \"x\" }}",
		    "! execute: template: :1:3: executing \"\" at <sprig_upper \"x\">: error "
		    "calling sprig_upper: function is disabled" },
		{ "{{ toJSON \"x\" }}",
		    "! execute: template: :1:3: executing \"\" at <toJSON \"x\">: "
		    "error calling toJSON: function is disabled" },
		{ "{{ toJSONPretty 1 }}", "= 1" },
		{ "{{ print (eq 1 2) }}", "= false" },
	};
	const struct template_options o = { .denied = "env trim nothing sprig_* t*JSON p* eq" };

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		char *found = data_render(data, cases[i].text, strlen(cases[i].text), &o);

		ck_assert_str_eq(found, cases[i].found);
		free(found);
	}
}
END_TEST

START_TEST(a_regular_expression_can_be_used_often)
{
	static const char text[] = "{{ range loop 100000 }}{{ if regexMatch \"^9+$\" (print .) }}"
				   "{{ . }} {{ end }}{{ end }}";
	const struct template_options o = { 0 };
	char *found = data_render(data, text, strlen(text), &o);

	ck_assert_str_eq(found, "= 9 99 999 9999 99999 ");
	free(found);
}
END_TEST

START_TEST(the_table_is_sorted)
{
	for (size_t i = 1; i < tpl_function_count; i++)
		ck_assert_int_lt(strcmp(tpl_functions[i - 1].name, tpl_functions[i].name), 0);
}
END_TEST

static bool
is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* Whether the text has the name as a word, and not as a field, a variable or a string. */
static bool
names_function(const char *text, const char *name)
{
	size_t len = strlen(name);

	for (const char *at = text; (at = strstr(at, name)); at++)
		if (!is_word(at[-1]) && !strchr(".$\"", at[-1]) && !is_word(at[len]))
			return true;
	return false;
}

/* Marks the functions that the templates of the fixture call. */
static void
mark_called(const char *path, bool *called)
{
	char *line = NULL;
	size_t size = 0;
	FILE *f = fopen(path, "re");

	ck_assert_ptr_nonnull(f);
	while (fixture_line(f, &line, &size))
		for (size_t i = 0; !strchr("#%=!", *line) && i < tpl_function_count; i++)
			called[i] = called[i] || names_function(line + 1, tpl_functions[i].name);
	free(line);
	(void)fclose(f);
}

START_TEST(each_function_is_tested)
{
	static const char *const paths[] = { FIXTURES "/template_language.txt",
		FIXTURES "/template_functions.txt", FIXTURES "/template_sprig.txt",
		FIXTURES "/template_sockaddr.txt" };
	bool called[512] = { false };

	ck_assert_uint_le(tpl_function_count, ELEMENTSOF(called));
	for (size_t i = 0; i < ELEMENTSOF(paths); i++)
		mark_called(paths[i], called);
	for (size_t i = 0; i < tpl_function_count; i++)
		ck_assert_msg(called[i], "no fixture calls %s", tpl_functions[i].name);
}
END_TEST

/* Each of these would take memory, time or stack without a bound. */
START_TEST(what_has_no_end_is_refused)
{
	static const char *const texts[] = {
		"{{ range 1000000000 }}x{{ end }}",
		"{{ range 1000000000 }}{{ end }}",
		"{{ define \"a\" }}{{ template \"a\" }}{{ end }}{{ template \"a\" }}",
		"{{ define \"a\" }}{{ template \"a\" }}{{ template \"a\" }}{{ end }}"
		"{{ template \"a\" }}",
		"{{ printf \"%1000000d%1000000d%1000000d%1000000d\" 1 2 3 4 | printf "
		"\"%s%[1]s%[1]s%[1]s%[1]s%[1]s%[1]s%[1]s%[1]s%[1]s%[1]s%[1]s%[1]s%[1]s%[1]s\" }}",
		"{{ $s := \"x\" }}{{ range 100 }}{{ $s = print $s $s }}{{ end }}",
		"{{ range loop 1000000000 }}{{ end }}",
		"{{ indent 1000000 (join \"\\n\" (split \"\" (printf \"%01000d\" 1))) }}",
		"{{ $s := printf \"%1000000s\" \"\" }}{{ range 1000000 }}{{ if regexMatch "
		"\"( |x)*y\" $s }}{{ end }}{{ end }}",
		"{{ range 1000000 }}{{ if regexMatch (printf \"x%d\" .) \"\" }}{{ end }}{{ end }}",
		"{{ parseYAML \"a: &a [1,1,1,1,1,1,1,1,1,1]\\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]"
		"\\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]"
		"\\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]"
		"\\ng: [*f,*f,*f,*f,*f,*f,*f,*f,*f]\" | toYAML }}",
		"{{ define \"a\" }}{{ executeTemplate \"a\" }}{{ end }}{{ executeTemplate \"a\" }}",
		"{{ sprig_repeat 100000000 \"abcdefgh\" }}",
		"{{ sprig_until 1000000 | toJSON | len }}{{ sprig_until 1000000 | len }}",
		"{{ $d := sprig_dict }}{{ $_ := sprig_set $d \"d\" $d }}{{ $d }}",
		"{{ $d := sprig_dict }}{{ $_ := sprig_set $d \"d\" $d }}{{ toJSON $d }}",
		"{{ $d := sprig_dict }}{{ $_ := sprig_set $d \"d\" $d }}{{ toYAML $d }}",
		"{{ $d := sprig_dict }}{{ $_ := sprig_set $d \"d\" $d }}{{ toTOML $d }}",
		"{{ $d := sprig_dict }}{{ $_ := sprig_set $d \"d\" $d }}{{ sprig_deepCopy $d }}",
		"{{ $d := sprig_dict }}{{ $_ := sprig_set $d \"d\" $d }}{{ $e := sprig_dict }}"
		"{{ $_ := sprig_set $e \"d\" $e }}{{ sprig_deepEqual $d $e }}",
		"{{ $d := sprig_dict }}{{ $_ := sprig_set $d \"d\" $d }}{{ $e := sprig_dict }}"
		"{{ $_ := sprig_set $e \"d\" $e }}{{ sprig_merge $d $e }}",
		"{{ $l := sprig_list }}{{ range 100000 }}{{ $l = sprig_append $l . }}{{ end }}",
		"{{ $l := sprig_list }}{{ range 100000 }}{{ $l = sprig_list $l }}{{ end }}{{ $l }}",
		"{{ range 100000 }}{{ scratch.MapSet \"a\" (print .) (scratch.Get \"a\") }}{{ end "
		"}}"
		"{{ scratch.Get \"a\" }}",
	};
	const struct template_options o = { 0 };

	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		char *found = data_render(data, texts[i], strlen(texts[i]), &o);

		if (!strstr(found, "! execute: the template needs too ") &&
		    !strstr(found, "! execute: the output is larger than "))
			ck_abort_msg("%s\n  is %.200s", texts[i], found);
		free(found);
	}
}
END_TEST

START_TEST(deep_texts_are_refused)
{
	enum { DEPTH = 100000 };
	const struct template_options o = { 0 };
	char *text = calloc(DEPTH, 16), *found;
	static const char *const parts[] = { "(", "{{if 1}}" };

	for (size_t i = 0; i < 2; i++) {
		strcpy(text, i == 0 ? "{{" : "");
		for (size_t k = 0, n = strlen(text); k < DEPTH; k++, n += strlen(parts[i]))
			strcpy(text + n, parts[i]);
		found = data_render(data, text, strlen(text), &o);
		ck_assert_str_eq(found, "! parse: the template needs too many levels");
		free(found);
	}
	free(text);
}
END_TEST

static void
check_needs(const struct template_result *r, const char *const *names, size_t n)
{
	ck_assert_uint_eq(r->n_needs, n);
	for (size_t i = 0; i < n; i++)
		ck_assert_str_eq(r->needs[i].name, names[i]);
}

START_TEST(needs_are_listed_once_and_in_order)
{
	static const char text[] = "{{ nomadVar \"unknown/a\" }}{{ nomadService \"redis\" | len }}"
				   "{{ nomadVar \"unknown/a\" }}{{ nomadVarExists \"x@ns.eu\" }}";
	static const char *const names[] = { "nomad.var.block(unknown/a@default.global)",
		"nomad.service(redis)", "nomad.var.get(x@ns.eu)" };
	const struct template_options o = { 0 };
	char *problem = NULL;
	struct template *t = template_parse(text, strlen(text), &o, &problem);
	const struct template_result *r;

	ck_assert_ptr_nonnull(t);
	for (int again = 0; again < 2; again++) {
		r = template_render(t, &data->data);
		ck_assert_ptr_null(r->problem);
		check_needs(r, names, 3);
		ck_assert_uint_eq(r->n_missing, 2);
		ck_assert(r->needs[0].missing && !r->needs[1].missing && r->needs[2].missing);
		ck_assert_str_eq(r->needs[2].query.ns, "ns");
		ck_assert_str_eq(r->needs[2].query.region, "eu");
	}
	template_free(t);
}
END_TEST

/* Nor what is computed from them, or from the environment. What the template itself says is shown.
 */
START_TEST(sentences_do_not_show_values_of_variables)
{
	static const struct {
		const char *text, *hides, *shows;
	} cases[] = {
		{ "{{ with nomadVar \"nomad/jobs/web\" }}{{ range .user.Value }}{{ end }}{{ end }}",
		    "admin", "[redacted]" },
		{ "{{ with nomadVar \"nomad/jobs/web\" }}{{ .user.Value | trimPrefix \"a\" | "
		  "parseInt "
		  "}}{{ end }}",
		    "dmin", "parsing \"[redacted]\"" },
		{ "{{ env \"LIST\" | replaceAll \",\" \"+\" | parseInt }}", "a+b", "[redacted]" },
		{ "{{ env \"LIST\" | len }}{{ \"xyz\" | parseInt }}", "[redacted]",
		    "parsing \"xyz\"" },
		{ "{{ \"xy\" | printf \"%sz\" | parseInt }}", "[redacted]", "parsing \"xyz\"" },
		{ "{{ index (sprig_list) (env \"NUMBER\" | parseInt) }}", "42",
		    "index out of range: [redacted]" },
		{ "{{ index (sprig_list) 77 }}", "[redacted]", "index out of range: 77" },
		{ "{{ env \"NUMBER\" | printf \"%s0\" | parseBool }}{{/* 420 */}}", "420",
		    "parsing \"[redacted]\"" },
		{ "{{ range (env \"NUMBER\" | parseFloat) }}{{ end }}", "42",
		    "iterate over [redacted]" },
		{ "{{ add (env \"NUMBER\" | parseInt | eq 42) 1 }}{{/* true \"true\" */}}",
		    "bool=true", "unknown type for [redacted] (bool)" },
		{ "{{ (env \"JSON\" | parseJSON).a | sprig_last | toJSON | parseInt }}"
		  "{{/* \"true\" */}}",
		    "parsing \"true\"", "parsing \"[redacted]\"" },
		{ "{{ sprig_substr 9 (env \"NUMBER\" | sprig_atoi | add -35 | sprig_int) "
		  "\"abcdefgh\" }}",
		    "9:7", "[[redacted]]" },
		{ "{{ sprig_fail (env \"LIST\" | toUpper) }}", "A,B", "[redacted]" },
		{ "{{ sprig_fail (env \"LIST\" | printf \"\\x02%s\") }}", "a,b", "[redacted]" },
		{ "{{ env \"LIST\" | len }}{{ sprig_fail \"it is wrong\" }}", "[redacted]",
		    "sprig_fail: it is wrong" },
		{ "{{ env \"LIST\" | parseJSON }}", "'a'", "invalid character '[redacted]'" },
		{ "{{ regexMatch (env \"LIST\" | printf \"`%s(\") \"\" }}", "a,b", "`[redacted]`" },
		{ "{{ env \"LIST\" | mustEnv }}", "a,b", "variable [redacted] is empty" },
		{ "{{ env \"NUMBER\" | printf \"GetAllInterfaces | offset %s\" | sockaddr }}", "42",
		    "input \"[redacted]\": [redacted]" },
		{ "{{ (env \"LIST\" | sprig_dict \"k\").k.x }}", "[redacted]",
		    "can't evaluate field x in type string" },
	};
	const struct template_options o = { 0 };

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char *found = data_render(data, cases[i].text, strlen(cases[i].text), &o);

		ck_assert_msg(!strstr(found, cases[i].hides), "%s", found);
		ck_assert_msg(strstr(found, cases[i].shows) != NULL, "%s", found);
		free(found);
	}
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, the_language);
	tcase_add_test(tc, functions);
	tcase_add_test(tc, functions_that_are_denied_fail);
	tcase_add_test(tc, a_regular_expression_can_be_used_often);
	tcase_add_test(tc, the_table_is_sorted);
	tcase_add_test(tc, each_function_is_tested);
	tcase_add_test(tc, what_has_no_end_is_refused);
	tcase_add_test(tc, deep_texts_are_refused);
	tcase_add_test(tc, needs_are_listed_once_and_in_order);
	tcase_add_test(tc, sentences_do_not_show_values_of_variables);
}

int
main(void)
{
	return unit_run("template", add);
}
