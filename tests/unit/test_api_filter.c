// SPDX-License-Identifier: Apache-2.0
/* test_api_filter.c: expressions of ?filter=, and the objects that they match. */
#include <errno.h>
#include <string.h>

#include "common/clock.h"
#include "supervisor/http/api_filter.h"
#include "supervisor/http/filter_pattern.h"
#include "tests/unit/unit.h"

static const char object_text[] =
    "{\"Status\":\"running\",\"Name\":\"web.g[0]\",\"Priority\":50,\"Stop\":false,\"Ratio\":0.5,"
    "\"Meta\":{\"tier\":\"front\",\"a "
    "b\":\"x\"},\"Tags\":[\"a\",\"bc\"],\"Empty\":[],\"None\":null,"
    "\"Job\":{\"Group\":{\"Count\":3}},\"List\":[{\"Key\":\"v\"}]}";

static struct filter_budget budget;

/* Returns 1, 0 or the error, with the error's text in e. */
static int
ask(const char *text, struct err *e)
{
	cleanup_with(api_filter_free) struct api_filter *f = NULL;
	json_t *object = json_loads(object_text, 0, NULL);
	int r = api_filter_parse(text, &budget, &f, e);

	if (r == 0)
		r = api_filter_match(f, object, e);
	json_decref(object);
	return r;
}

static void
says(const char *text, int wanted)
{
	struct err e = { 0 };
	int r = ask(text, &e);

	ck_assert_msg(r == wanted, "%s: %d, %s", text, r, e.msg);
}

static void
refuses(const char *text, const char *part)
{
	struct err e = { 0 };
	int r = ask(text, &e);

	ck_assert_msg(r == -EINVAL && strstr(e.msg, part), "%s: %d, %s", text, r, e.msg);
}

START_TEST(each_operator)
{
	says("Status == \"running\"", 1);
	says("Status == running", 1);
	says("Status==running", 1);
	says("Status != `running`", 0);
	says("Priority == 50", 1);
	says("Priority != 51", 1);
	says("Ratio == 0.5", 1);
	says("Stop == false", 1);
	says("Stop == true", 0);
	says("None == \"\"", 1);
	says("\"a\" in Tags", 1);
	says("b in Tags", 0);
	says("b not in Tags", 1);
	says("Tags contains bc", 1);
	says("Tags not contains bc", 0);
	says("\"web\" in Name", 1);
	says("tier in Meta", 1);
	says("Meta contains \"none\"", 0);
	says("Empty is empty", 1);
	says("None is empty", 1);
	says("Tags is not empty", 1);
	says("Status is empty", 0);
	says("None is nil", 1);
	says("Meta is not nil", 1);
	says("Empty is nil", 0);
	says("Meta.none is nil", 1);
	says("Name matches \"^web[.]g\"", 1);
	says("Name not matches \"^web[.]g\"", 0);
}
END_TEST

START_TEST(fields_lie_deep)
{
	says("Meta.tier == front", 1);
	says("Meta[\"a b\"] == x", 1);
	says("Meta[`tier`] == \"front\"", 1);
	says("\"/Meta/tier\" == \"front\"", 1);
	says("\"/Meta/a b\" == \"x\"", 1);
	says("Job.Group.Count == 3", 1);
	says("List.0.Key == v", 1);
	says("Meta.none == \"x\"", 0);
	says("Meta.none is empty", 1);
	says("Job[\"Group\"].Count == 3", 1);
}
END_TEST

START_TEST(words_that_join)
{
	says("Status == running and Priority == 50", 1);
	says("Status == running and Priority == 1", 0);
	says("Status == dead or Priority == 50", 1);
	says("not Status == dead", 1);
	says("not (Status == running or Priority == 1)", 0);
	/* "and" binds more tightly than "or". */
	says("Status == running or Status == dead and Priority == 1", 1);
	says("(Status == running or Status == dead) and Priority == 1", 0);
	says("not Status == dead and not Priority == 1", 1);
	says("  ( Status == running )  ", 1);
	/* The second half is not evaluated. */
	says("Status == running or Nothing == 1", 1);
}
END_TEST

START_TEST(what_is_none)
{
	refuses("", "name of a field");
	refuses("Status", "was expected");
	refuses("Status ==", "a value was expected");
	refuses("== x", "name of a field");
	refuses("Status == \"running", "no closing");
	refuses("(Status == running", ") was expected");
	refuses("Status == running)", "or the end was expected");
	refuses("Status == running Priority == 1", "or the end was expected");
	refuses("Status is full", "\"empty\" or \"nil\" was expected");
	refuses("Status ~ x", "has no meaning");
	refuses("Meta[tier] == x", "text was expected");
	refuses("Meta[\"tier\" == x", "] was expected");
	refuses("A.B.C.D.E.F.G.H.I == x", "too many parts");
	refuses("A..B == x", "is empty");
	refuses("List.Key == v", "\"Key\" is not the number of a list's item");
	refuses("Nothing == 1", "no field \"Nothing\"");
	refuses("Priority == many", "compared with a number");
	refuses("Stop == 7", "true or false");
	refuses("Tags == a", "is a list or a map");
	refuses("Priority is empty", "never empty");
	refuses("5 in Priority", "single value");
	refuses("Priority matches 5", "not a text");
	refuses("Name matches \"(\"", "missing closing parenthesis");
	refuses("any Tags { Status == x }", "as was expected");
	refuses("any Tags as { Status == x }", "a name for the items");
	refuses("any Tags as a.b { Status == x }", "a name for the items");
	refuses("any Tags as _ { Status == x }", "neither the key nor the item");
	refuses("any Tags as k, k { Status == x }", "the same name");
	refuses("any Tags as t Status == x", "{ was expected");
	refuses("any Tags as t { Status == x", "} was expected");
	refuses("any as t { t == x }", "as was expected");
	refuses("all Priority as t { t == x }", "neither a list nor a map");
	refuses("any Nothing as t { t == x }", "no field \"Nothing\"");
	refuses("any Tags as t { u == x }", "no field \"u\"");
	refuses("any Meta as k { k.Color == red }", "\"Color\" cannot be a field");
	refuses("(any Tags as t { t == x }) or t == x", "no field \"t\"");
	says("Name matches \"^w+(e+b+)+[.]\"", 1);
}
END_TEST

START_TEST(items_of_lists_and_maps)
{
	says("any Tags as t { t == bc }", 1);
	says("any Tags as t { t == none }", 0);
	says("all Tags as t { t != none }", 1);
	says("all Tags as t { t == a }", 0);
	says("any Tags as i, t { i == 1 and t == bc }", 1);
	says("any Tags as i, _ { i == 2 }", 0);
	says("any Tags as _, t { t == a }", 1);
	/* With a single name, the name is the key of a map. */
	says("any Meta as k { k == tier }", 1);
	says("any Meta as k { k == front }", 0);
	says("any Meta as k, v { k == tier and v == front }", 1);
	says("any Meta as k, v { k == \"a b\" and v == front }", 0);
	says("all Meta as _, v { v != back }", 1);
	says("all Meta as k,_{k matches \"^(tier|a b)$\"}", 1);
	says("any List as item { item.Key == v }", 1);
	says("any List as item { \"/item/Key\" == v }", 1);
	/* Nested loops; an inner name hides an outer one. */
	says("any List as item { any item as k, v { k == Key and v == v } }", 1);
	says("any Tags as x { any Meta as x, y { x == tier } and x == a }", 1);
	says("any Tags as t { Status == running and t == a }", 1);
	/* Empty lists and maps, and missing ones. */
	says("any Empty as t { t == a }", 0);
	says("all Empty as t { t == a }", 1);
	says("any None as t { t == a }", 0);
	says("all Meta.none as t { t == a }", 1);
	says("not any Tags as t { t == none } and Priority == 50", 1);
	says("(any Tags as t { t == none }) or all Meta as k { k is not empty }", 1);
	/* Fields and values with that name. */
	refuses("any == x", "no field \"any\"");
	says("all in Tags", 0);
	refuses("all matches x", "no field \"all\"");
}
END_TEST

START_TEST(what_it_asks_for)
{
	cleanup_with(api_filter_free) struct api_filter *f = NULL;
	struct err e = { 0 };

	ck_assert_int_eq(
	    api_filter_parse(
		"not (Job.Group is nil or x in Tags) and Meta.Job == Name", &budget, &f, &e),
	    0);
	ck_assert(api_filter_refers_to(f, "Job"));
	ck_assert(api_filter_refers_to(f, "Tags"));
	ck_assert(api_filter_refers_to(f, "Meta"));
	ck_assert(!api_filter_refers_to(f, "Name"));
	ck_assert(!api_filter_refers_to(f, "Group"));
}
END_TEST

START_TEST(it_has_bounds)
{
	char text[API_FILTER_MAX + 10];

	memset(text, '(', sizeof text);
	text[200] = '\0';
	refuses(text, "too deeply");
	memset(text, 'a', sizeof text);
	text[sizeof text - 1] = '\0';
	refuses(text, "longer than");
	text[API_FILTER_MAX] = '\0';
	refuses(text, "was expected");
}
END_TEST

static const char *
fit(const char *expression, const char *name, json_t *value, int wanted)
{
	cleanup_with(api_filter_free) struct api_filter *f = NULL;
	json_t *object = json_object();
	static struct err e;
	int r;

	ck_assert_int_eq(json_object_set_new(object, name, value), 0);
	ck_assert_msg(api_filter_parse(expression, &budget, &f, &e) == 0, "%s", e.msg);
	r = api_filter_match(f, object, &e);
	ck_assert_msg(r == wanted, "%s: %d, %s", expression, r, e.msg);
	json_decref(object);
	return e.msg;
}

START_TEST(texts_for_patterns_have_an_end)
{
	char text[16386];

	memset(text, 'a', sizeof text);
	text[sizeof text - 1] = '\0';
	ck_assert_ptr_nonnull(strstr(
	    fit("Text matches \"a.*b\"", "Text", json_string(text), -EINVAL), "too long for a"));
	text[sizeof text - 2] = '\0';
	fit("Text matches \"a.*b\"", "Text", json_string(text), 0);
}
END_TEST

/* Each loop visits all items: ten thousand million steps in total. */
START_TEST(what_takes_too_long_ends)
{
	json_t *list = json_array();

	for (int i = 0; i < 100; i++)
		ck_assert_int_eq(json_array_append_new(list, json_integer(i)), 0);
	ck_assert_ptr_nonnull(strstr(fit("all L as a { all L as b { all L as c { all L as d { all "
					 "L as e { e != 100 } } } } }",
					 "L", list, -EINVAL),
	    "takes too long"));
}
END_TEST

/* For each object it is only one step. */
START_TEST(many_objects_that_take_long_end)
{
	cleanup_with(api_filter_free) struct api_filter *f = NULL;
	json_t *object;
	char text[16001];
	struct err e = { 0 };
	int n = 0, r = 0;

	memset(text, 'a', sizeof text - 1);
	text[sizeof text - 1] = '\0';
	object = json_pack("{s:s}", "Text", text);
	ck_assert_int_eq(api_filter_parse("Text matches \"^a*[bc]\"", &budget, &f, &e), 0);
	while (r == 0 && n++ < 100000)
		r = api_filter_match(f, object, &e);
	/* Either its own second is used up, or the time of all filters of this program. */
	ck_assert_msg(n > 1 && ((r == -EINVAL && strstr(e.msg, "takes too long")) || r == -EBUSY),
	    "%d of %d, %s", r, n, e.msg);
	json_decref(object);
}
END_TEST

/*
 * Twenty filters that would take a second each share the saved time, two seconds, and a quarter of
 * the time that passes; each may take 10 ms in any case. Then a filter that takes no time is
 * answered.
 */
START_TEST(all_filters_share_the_processor)
{
	int64_t began_ns = filter_pattern_now_ns(), most_ns, took_ns;
	uint64_t began_ms = clock_ms();
	char text[16001];
	json_t *object;

	memset(text, 'a', sizeof text - 1);
	text[sizeof text - 1] = '\0';
	object = json_pack("{s:s}", "Text", text);
	for (int i = 0; i < 20; i++) {
		cleanup_with(api_filter_free) struct api_filter *f = NULL;
		struct err e = { 0 };
		int r = 0;

		ck_assert_int_eq(api_filter_parse("Text matches \"^a*[bc]\"", &budget, &f, &e), 0);
		while (r == 0)
			r = api_filter_match(f, object, &e);
		ck_assert_msg(
		    r == -EINVAL || strstr(e.msg, "the filters of all requests"), "%s", e.msg);
	}
	took_ns = filter_pattern_now_ns() - began_ns;
	most_ns =
	    INT64_C(2500000000) + (int64_t)(clock_ms() - began_ms) * 1000000 / 4 + 20 * 10000000;
	ck_assert_msg(took_ns < most_ns, "%lld of %lld ns", (long long)took_ns, (long long)most_ns);
	json_decref(object);
	fit("Text == \"b\"", "Text", json_string("b"), 1);
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_test(tc, each_operator);
	tcase_add_test(tc, fields_lie_deep);
	tcase_add_test(tc, words_that_join);
	tcase_add_test(tc, what_is_none);
	tcase_add_test(tc, items_of_lists_and_maps);
	tcase_add_test(tc, what_it_asks_for);
	tcase_add_test(tc, it_has_bounds);
	tcase_add_test(tc, texts_for_patterns_have_an_end);
	tcase_add_test(tc, what_takes_too_long_ends);
	tcase_add_test(tc, many_objects_that_take_long_end);
	tcase_add_test(tc, all_filters_share_the_processor);
}

int
main(void)
{
	return unit_run("api_filter", add);
}
