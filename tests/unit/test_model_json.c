/* SPDX-License-Identifier: Apache-2.0 */
/* test_model_json.c: the JSON codec with every field table. Runs in: unit tests. */
#include <string.h>

#include "common/duration.h"
#include "model/engine/table.h"
#include "model/engine/walk.h"
#include "model/eval.h"
#include "model/node.h"
#include "model/variable.h"
#include "model/volume.h"
#include "tests/unit/model_fill.h"
#include "model/job_stub.h"

static const struct type *const types[] = { &job_type, &job_stub_type, &alloc_type, &eval_type,
	&csi_volume_type, &csi_plugin_type, &node_type, &variable_type };

/* Sets every field, encodes and decodes: a lost field shows up as a difference with its path. */
START_TEST(every_field_survives)
{
	const struct type *type = types[_i / 3];
	enum model_flags flags = _i % 3 == 0 ? 0 : _i % 3 == 1 ? MODEL_COMPACT : MODEL_INDENT;
	void *full = model_new(type), *back = model_new(type);
	struct text t = { 0 };
	struct err e = { 0 };
	int seed = 0;

	fill(type, full, &seed);
	model_to_text(type, full, flags, &t);
	ck_assert_msg(model_from_text(type, t.text, t.len, back, &e) == 0, "%s", e.msg);
	assert_same(type, full, back);
	ck_assert_int_gt(seed, 10);
	model_free(type, full);
	model_free(type, back);
	text_done(&t);
}
END_TEST

/* An object as model_init() makes it stays the same, including unset fields. */
START_TEST(empty_survives)
{
	const struct type *type = types[_i / 2];
	void *empty = model_new(type), *back = model_new(type);
	struct text t = { 0 };
	struct err e = { 0 };

	model_to_text(type, empty, _i % 2 ? MODEL_COMPACT : 0, &t);
	if (_i % 2)
		ck_assert_str_eq(t.text, "{}");
	ck_assert_msg(model_from_text(type, t.text, t.len, back, &e) == 0, "%s", e.msg);
	assert_same(type, empty, back);
	model_free(type, empty);
	model_free(type, back);
	text_done(&t);
}
END_TEST

START_TEST(copy_is_equal_and_its_own)
{
	const struct type *type = types[_i];
	void *full = model_new(type), *copy = model_new(type);
	char where[200];
	int seed = 0;

	fill(type, full, &seed);
	model_copy(type, full, copy);
	assert_same(type, full, copy);
	model_free(type, full);
	full = model_new(type);
	ck_assert(model_differs(type, full, copy, 0, where, sizeof(where)));
	model_free(type, full);
	model_free(type, copy);
}
END_TEST

static char *
job_error(const char *text)
{
	static struct err e;
	cleanup_done(job) struct job job;
	struct job empty;

	e = (struct err){ 0 };
	job_init(&job);
	job_init(&empty);
	ck_assert_int_eq(model_from_text(&job_type, text, strlen(text), &job, &e), -EINVAL);
	assert_same(&job_type, &job, &empty);
	return e.msg;
}

static const struct {
	const char *text, *message;
} wrong[] = {
	{ "{\"TaskGroups\":[{\"Tasks\":[{},{\"Resources\":{\"CPU\":\"x\"}}]}]}",
	    "TaskGroups[0].Tasks[1].Resources.CPU: expected a number, found \"x\"" },
	{ "[]", "expected an object, found a list" },
	{ "{\"ID\":7}", "ID: expected a string, found 7" },
	{ "{\"Type\":\"cron\"}", "Type: expected one of \"service\", \"batch\", \"system\", "
				 "\"sysbatch\", found \"cron\"" },
	{ "{\"TaskGroups\":{}}", "TaskGroups: expected a list, found an object" },
	{ "{\"TaskGroups\":[null]}", "TaskGroups[0]: expected an object, found null" },
	{ "{\"Priority\":1.5}", "Priority: expected a whole number, found 1.5" },
	{ "{\"Version\":-1}", "Version: expected a number of 0 or more, found -1" },
	{ "{\"Stop\":\"yes\"}", "Stop: expected true or false, found \"yes\"" },
	{ "{\"TaskGroups\":[{\"Volumes\":{\"data\":{\"AccessMode\":\"rw\"}}}]}",
	    "TaskGroups[0].Volumes[\"data\"].AccessMode: expected one of "
	    "\"single-node-reader-only\", "
	    "\"single-node-writer\", \"multi-node-reader-only\", \"multi-node-single-writer\", "
	    "\"multi-node-multi-writer\", \"single-node-single-writer\", "
	    "\"single-node-multi-writer\", found \"rw\"" },
	{ "{\"TaskGroups\":[{\"ShutdownDelay\":\"soon\"}]}",
	    "TaskGroups[0].ShutdownDelay: expected a duration such as \"1m30s\" or a number of "
	    "nanoseconds, "
	    "found \"soon\"" },
	{ "{\"TaskGroups\":[{\"Tasks\":[{\"Config\":\"x\"}]}]}",
	    "TaskGroups[0].Tasks[0].Config: expected an object, found \"x\"" },
	{ "{\"Meta\":{\"a\":[]}}", "Meta[\"a\"]: expected a string, found a list" },
	{ "{\"ID\":\"a\",\n", "line 2, column 0: string or '}' expected near end of file" },
	{ "{\"ID\":\"a\\u0000b\"}", "line 1, column 16: \\u0000 is not allowed without "
				    "JSON_ALLOW_NUL near '\"a\\u0000b\"'" },
};

START_TEST(errors_name_the_place)
{
	ck_assert_str_eq(job_error(wrong[_i].text), wrong[_i].message);
}
END_TEST

/* The tree may come from code that accepts NULs. */
START_TEST(a_nul_in_a_tree_is_refused)
{
	cleanup_json json_t *json =
	    json_loads(_i ? "{\"Affinities\":[[\"a\\u0000\"]]}" : "{\"ID\":\"a\\u0000\"}",
		JSON_ALLOW_NUL, NULL);
	cleanup_done(job) struct job job;
	struct err e = { 0 };

	job_init(&job);
	ck_assert_ptr_nonnull(json);
	ck_assert_int_eq(model_from_json(&job_type, json, &job, &e), -EINVAL);
	ck_assert_ptr_nonnull(strstr(e.msg, "without NUL"));
}
END_TEST

START_TEST(deep_raw_json_is_refused)
{
	struct text t = { 0 };
	int i;

	text_printf(&t, "{\"Spreads\":");
	for (i = 0; i < 100; i++)
		text_printf(&t, "[");
	for (i = 0; i < 100; i++)
		text_printf(&t, "]");
	text_printf(&t, "}");
	ck_assert_str_eq(
	    job_error(t.text), "Spreads: expected fewer levels of nesting, found a list");
	text_done(&t);
}
END_TEST

START_TEST(keys_match_as_in_go)
{
	static const char text[] =
	    "{\"id\":\"a\",\"ID\":\"b\",\"PRIORITY\":7,\"Nonsense\":{\"x\":[1]},"
	    "\"taskgroups\":[{\"name\":\"x\"}],\"TaskGroups\":[{\"Name\":\"g\"}]}";
	cleanup_done(job) struct job job;
	struct err e = { 0 };

	job_init(&job);
	ck_assert_msg(model_from_text(&job_type, text, strlen(text), &job, &e) == 0, "%s", e.msg);
	ck_assert_str_eq(job.id, "b");
	ck_assert_int_eq(job.priority, 7);
	ck_assert_uint_eq(job.task_groups.n, 1);
	ck_assert_str_eq(job.task_groups.v[0].name, "g");
}
END_TEST

START_TEST(values_have_more_than_one_form)
{
	static const char text[] = "{\"Priority\":7.0,\"Meta\":{\"n\":3,\"b\":true,\"z\":null},"
				   "\"TaskGroups\":[{\"ShutdownDelay\":\"1m30s\"}]}";
	cleanup_done(job) struct job job;
	struct err e = { 0 };

	job_init(&job);
	ck_assert_msg(model_from_text(&job_type, text, strlen(text), &job, &e) == 0, "%s", e.msg);
	ck_assert_int_eq(job.priority, 7);
	ck_assert_str_eq(string_map_get(&job.meta, "n"), "3");
	ck_assert_str_eq(string_map_get(&job.meta, "b"), "true");
	ck_assert_str_eq(string_map_get(&job.meta, "z"), "");
	ck_assert_int_eq(job.task_groups.v[0].shutdown_delay, 90 * NS_PER_S);
}
END_TEST

START_TEST(copy_keeps_empty_strings)
{
	static const char text[] =
	    "{\"Meta\":{\"a\":\"\",\"\":\"b\"},\"Datacenters\":[\"\",\"dc1\"]}";
	cleanup_done(job) struct job job, copy;
	struct err e = { 0 };

	job_init(&job);
	ck_assert_msg(model_from_text(&job_type, text, strlen(text), &job, &e) == 0, "%s", e.msg);
	job_copy(&job, &copy);
	ck_assert(model_equal(&job_type, &job, &copy));
	ck_assert_str_eq(string_map_get(&copy.meta, "a"), "");
	ck_assert_str_eq(string_map_get(&copy.meta, ""), "b");
	ck_assert_uint_eq(copy.datacenters.n, 2);
}
END_TEST

/* Output of a task may end up in an event; the row must be readable again. */
START_TEST(text_that_is_no_utf8_is_repaired)
{
	static const struct {
		const char *bytes, *read;
	} cases[] = { { "a\xff"
			"b",
			  "a\xef\xbf\xbd"
			  "b" },
		{ "\xc3", "\xef\xbf\xbd" },
		{ "\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
		{ "\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd" },
		{ "\xe0\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
		{ "\xf4\x90\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
		{ "\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80" } };
	cleanup_done(task_event) struct task_event ev, back;
	struct text t = { 0 };
	struct err e = { 0 };

	task_event_init(&ev);
	task_event_init(&back);
	str_set(&ev.message, cases[_i].bytes);
	string_map_set(&ev.details, cases[_i].bytes, cases[_i].bytes);
	model_to_text(&task_event_type, &ev, 0, &t);
	ck_assert_msg(
	    model_from_text(&task_event_type, t.text, t.len, &back, &e) == 0, "%s", e.msg);
	ck_assert_str_eq(back.message, cases[_i].read);
	ck_assert_str_eq(back.details.v[0].key, cases[_i].read);
	task_event_done(&back);
	text_done(&t);
}
END_TEST

START_TEST(times_are_rfc3339)
{
	static const struct {
		int64_t ns;
		const char *text;
	} cases[] = { { 1700000000123456789, "2023-11-14T22:13:20.123456789Z" },
		{ 951782400000000000, "2000-02-29T00:00:00Z" },
		{ 1, "1970-01-01T00:00:00.000000001Z" }, { -1500000000, "1969-12-31T23:59:58.5Z" },
		{ 4102444799999000000, "2099-12-31T23:59:59.999Z" } };
	char text[RFC3339_SIZE];
	int64_t ns = 0;

	time_format(cases[_i].ns, text);
	ck_assert_str_eq(text, cases[_i].text);
	ck_assert(time_parse(text, &ns));
	ck_assert_int_eq(ns, cases[_i].ns);
}
END_TEST

START_TEST(times_of_others)
{
	static const char *const bad[] = { "", "2023-11-14", "2023-13-14T22:13:20Z",
		"2023-11-14T22:13:20", "2023-11-14T22:13:20.Z", "2023-11-14T22:13:20Zx",
		"2023-11-14T22:13:20+1:00", "9999-01-01T00:00:00Z" };
	int64_t ns = 77;
	size_t i;

	for (i = 0; i < ELEMENTSOF(bad); i++)
		ck_assert_msg(!time_parse(bad[i], &ns), "%s", bad[i]);
	ck_assert_int_eq(ns, 77);
	ck_assert(time_parse("0001-01-01T00:00:00Z", &ns));
	ck_assert_int_eq(ns, 0);
	ck_assert(time_parse("2023-11-15T00:13:20.5+02:00", &ns));
	ck_assert_int_eq(ns, 1700000000500000000);
}
END_TEST

/* A nil inside a map makes peers crash. */
START_TEST(null_in_a_map_is_absent)
{
	static const char text[] =
	    "{\"TaskGroups\":[{\"Volumes\":{\"a\":null,\"b\":{\"Source\":\"s\"}}}]}";
	cleanup_done(job) struct job job;
	struct err e = { 0 };

	job_init(&job);
	ck_assert_msg(model_from_text(&job_type, text, strlen(text), &job, &e) == 0, "%s", e.msg);
	ck_assert_uint_eq(job.task_groups.v[0].volumes.n, 1);
	ck_assert_str_eq(job.task_groups.v[0].volumes.v[0].key, "b");
}
END_TEST

START_TEST(strings_come_and_go)
{
	struct strings l = { 0 };

	strings_add(&l, "a");
	strings_add(&l, "b");
	strings_add(&l, "c");
	ck_assert(strings_remove(&l, "b"));
	ck_assert(!strings_remove(&l, "b"));
	ck_assert_uint_eq(l.n, 2);
	ck_assert_str_eq(l.v[1], "c");
	ck_assert(strings_has(&l, "a"));
	strings_done(&l);
}
END_TEST

START_TEST(lists_and_maps_grow_and_shrink)
{
	MODEL_LIST(struct port) ports = { 0 };
	MODEL_MAP(struct port) map = { 0 };
	char name[16];
	int i;

	for (i = 0; i < 9; i++) {
		(void)snprintf(name, sizeof(name), "p%d", i);
		str_set(&list_add(port, &ports)->label, name);
		map_put(port, &map, name)->value = i;
	}
	list_remove(port, &ports, 3);
	ck_assert_uint_eq(ports.n, 8);
	ck_assert_str_eq(ports.v[3].label, "p4");
	ck_assert(map_remove(port, &map, "p0"));
	ck_assert(!map_remove(port, &map, "p0"));
	ck_assert_int_eq(map_get(port, &map, "p8")->value, 8);
	ck_assert_ptr_null(map_get(port, &map, "p0"));
	while (ports.n)
		list_remove(port, &ports, 0);
	while (map.n)
		ck_assert(map_remove(port, &map, map.v[0].key));
	free(ports.v);
	free(map.v);
}
END_TEST

START_TEST(views_hide_what_is_secret)
{
	cleanup_done(csi_volume) struct csi_volume vol;
	cleanup_json json_t *json = NULL;
	json_t *flags;
	int seed = 0;

	csi_volume_init(&vol);
	fill(&csi_volume_type, &vol, &seed);
	csi_volume_fill_view(&vol);
	json = model_to_json(&csi_volume_view_type, &vol, 0);
	ck_assert(json_is_null(json_object_get(json, "Secrets")));
	ck_assert_ptr_null(json_object_get(json, "ReadClaims"));
	flags = json_object_get(json_object_get(json, "MountOptions"), "MountFlags");
	ck_assert_uint_eq(json_array_size(flags), 1);
	ck_assert_str_eq(json_string_value(json_array_get(flags, 0)), "[REDACTED]");
	ck_assert_uint_eq(json_object_size(json_object_get(json, "ReadAllocs")), 2);
	ck_assert(json_is_null(
	    json_object_get(json_object_get(json, "ReadAllocs"), vol.read_claims.v[0].key)));
	ck_assert_uint_eq(json_array_size(json_object_get(json, "Allocations")), 2);
	ck_assert_ptr_null(
	    json_object_get(json_array_get(json_object_get(json, "Allocations"), 0), "Job"));
}
END_TEST

/* The stubs are encoded, but the allocs' other contents are freed with the plugin; the sanitizer
 * checks that. */
START_TEST(a_plugin_owns_its_allocs)
{
	cleanup_done(csi_plugin) struct csi_plugin plugin;
	cleanup_json json_t *json = NULL;
	const json_t *stub;
	int seed = 0;

	csi_plugin_init(&plugin);
	fill(&alloc_type, list_add(alloc, &plugin.allocations), &seed);
	json = model_to_json(&csi_plugin_type, &plugin, 0);
	stub = json_array_get(json_object_get(json, "Allocations"), 0);
	ck_assert_str_eq(
	    json_string_value(json_object_get(stub, "ID")), plugin.allocations.v[0].id);
	ck_assert_ptr_null(json_object_get(stub, "Metrics"));
}
END_TEST

START_TEST(a_node_is_shown_without_its_secret)
{
	cleanup_done(node) struct node node;
	cleanup_json json_t *json = NULL;

	node_init(&node);
	str_set(&node.secret_id, "s3cret");
	json = model_to_json(&node_view_type, &node, 0);
	ck_assert_ptr_nonnull(json_object_get(json, "SchedulingEligibility"));
	ck_assert_ptr_null(json_object_get(json, "SecretID"));
}
END_TEST

/* The official command dereferences it. */
START_TEST(metrics_are_never_null)
{
	cleanup_done(alloc) struct alloc a;
	cleanup_json json_t *json = NULL;

	alloc_init(&a);
	json = model_to_json(&alloc_type, &a, 0);
	ck_assert(
	    json_is_integer(json_object_get(json_object_get(json, "Metrics"), "NodesEvaluated")));
	ck_assert(json_is_null(json_object_get(json, "Job")));
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_loop_test(tc, every_field_survives, 0, 3 * ELEMENTSOF(types));
	tcase_add_loop_test(tc, empty_survives, 0, 2 * ELEMENTSOF(types));
	tcase_add_loop_test(tc, copy_is_equal_and_its_own, 0, ELEMENTSOF(types));
	tcase_add_loop_test(tc, errors_name_the_place, 0, ELEMENTSOF(wrong));
	tcase_add_loop_test(tc, a_nul_in_a_tree_is_refused, 0, 2);
	tcase_add_test(tc, deep_raw_json_is_refused);
	tcase_add_test(tc, keys_match_as_in_go);
	tcase_add_test(tc, values_have_more_than_one_form);
	tcase_add_test(tc, copy_keeps_empty_strings);
	tcase_add_loop_test(tc, text_that_is_no_utf8_is_repaired, 0, 7);
	tcase_add_loop_test(tc, times_are_rfc3339, 0, 5);
	tcase_add_test(tc, times_of_others);
	tcase_add_test(tc, null_in_a_map_is_absent);
	tcase_add_test(tc, strings_come_and_go);
	tcase_add_test(tc, lists_and_maps_grow_and_shrink);
	tcase_add_test(tc, views_hide_what_is_secret);
	tcase_add_test(tc, a_plugin_owns_its_allocs);
	tcase_add_test(tc, a_node_is_shown_without_its_secret);
	tcase_add_test(tc, metrics_are_never_null);
}

int
main(void)
{
	return unit_run("model_json", add);
}
