// SPDX-License-Identifier: Apache-2.0
/* job_diff.c: compares two jobs as trees of JSON, by keys and by the names of groups and tasks.
 * Runs in: supervisor. */
#include "supervisor/server/job/job_diff.h"

#include <stdio.h>
#include <string.h>

#include "model/engine/table.h"
#include "model/engine/walk.h"

#define NAME_SIZE 256

/* Fields of the job itself that are not compared, or compared separately. */
static const char *const not_compared[] = { "ID", "Status", "StatusDescription", "Stable",
	"Version", "SubmitTime", "CreateIndex", "ModifyIndex", "JobModifyIndex", "TaskGroups",
	"NomadTokenID", "ConsulToken", "VaultToken", "Update", "VersionTag" };

static json_t *diff_object(const char *name, const json_t *a, const json_t *b);

static bool
is_nothing(const json_t *v)
{
	return !v || json_is_null(v) || (json_is_array(v) && json_array_size(v) == 0) ||
	       (json_is_object(v) && json_object_size(v) == 0);
}

static bool
is_same(const json_t *a, const json_t *b)
{
	return (is_nothing(a) && is_nothing(b)) || (a && b && json_equal(a, b));
}

static const char *
type_of(const json_t *a, const json_t *b)
{
	return is_nothing(a) ? "Added" : is_nothing(b) ? "Deleted" : "Edited";
}

static const char *
scalar_text(const json_t *v, char buf[NAME_SIZE])
{
	if (json_is_string(v))
		return json_string_value(v);
	buf[0] = '\0';
	if (json_is_integer(v))
		(void)snprintf(buf, NAME_SIZE, "%lld", (long long)json_integer_value(v));
	else if (json_is_real(v))
		(void)snprintf(buf, NAME_SIZE, "%g", json_real_value(v));
	else if (json_is_boolean(v))
		return json_is_true(v) ? "true" : "false";
	return buf;
}

static void
add_field(json_t *fields, const char *name, const json_t *a, const json_t *b)
{
	char old[NAME_SIZE], new[NAME_SIZE];

	(void)json_array_append_new(
	    fields, json_pack("{s:s, s:s, s:s, s:s, s:n}", "Type", type_of(a, b), "Name", name,
			"Old", scalar_text(a, old), "New", scalar_text(b, new), "Annotations"));
}

/* Returns what identifies an element of a list, or NULL. */
static const char *
key_of(const json_t *element)
{
	static const char *const keys[] = { "Name", "Volume", "Label", "LTarget", "DestPath" };
	const char *key = NULL;

	for (size_t i = 0; i < sizeof keys / sizeof keys[0] && (!key || !*key); i++)
		key = json_string_value(json_object_get(element, keys[i]));
	return key && *key ? key : NULL;
}

static bool
has_key(const json_t *element, const char *key)
{
	const char *own = key_of(element);

	return own && strcmp(own, key) == 0;
}

/* Finds the element of other that corresponds to the i-th of list: the i-th, or among those with
 * its key the one at the same position (two constraints may have one attribute). */
static const json_t *
match(const json_t *other, const json_t *list, size_t i)
{
	const char *key = key_of(json_array_get(list, i));
	const json_t *found;
	size_t before = 0, n;

	if (!key)
		return json_array_get(other, i);
	for (n = 0; n < i; n++)
		before += has_key(json_array_get(list, n), key);
	json_array_foreach (other, n, found) {
		if (has_key(found, key) && before-- == 0)
			return found;
	}
	return NULL;
}

static void
diff_lists(json_t *objects, const char *name, const json_t *a, const json_t *b)
{
	const json_t *v;
	size_t i;

	json_array_foreach (a, i, v) {
		const json_t *other = match(b, a, i);

		if (!is_same(v, other))
			(void)json_array_append_new(objects, diff_object(name, v, other));
	}
	json_array_foreach (b, i, v) {
		if (!match(a, b, i))
			(void)json_array_append_new(objects, diff_object(name, NULL, v));
	}
}

static void
diff_scalar_lists(json_t *fields, const char *name, const json_t *a, const json_t *b)
{
	size_t n =
	    json_array_size(a) > json_array_size(b) ? json_array_size(a) : json_array_size(b);
	char one[NAME_SIZE];

	for (size_t i = 0; i < n; i++) {
		if (is_same(json_array_get(a, i), json_array_get(b, i)))
			continue;
		(void)snprintf(one, sizeof one, "%.200s[%zu]", name, i);
		add_field(fields, one, json_array_get(a, i), json_array_get(b, i));
	}
}

static void
diff_value(json_t *fields, json_t *objects, const char *name, const json_t *a, const json_t *b)
{
	const json_t *either = is_nothing(b) ? a : b;

	if (is_same(a, b))
		return;
	if (json_is_object(either))
		(void)json_array_append_new(objects, diff_object(name, a, b));
	else if (!json_is_array(either))
		add_field(fields, name, a, b);
	else if (json_is_object(json_array_get(either, 0)))
		diff_lists(objects, name, a, b);
	else
		diff_scalar_lists(fields, name, a, b);
}

/* Adds the differences of all members except those named in skip to Fields and Objects of ret. */
static void
diff_members(json_t *ret, const json_t *a, const json_t *b, const char *const *skip, size_t n_skip)
{
	json_t *fields = json_object_get(ret, "Fields"), *objects = json_object_get(ret, "Objects");
	const json_t *v;
	const char *key;
	bool skipped;

	json_object_foreach ((json_t *)b, key, v) {
		skipped = false;
		for (size_t i = 0; i < n_skip && !skipped; i++)
			skipped = strcmp(skip[i], key) == 0;
		if (!skipped)
			diff_value(fields, objects, key, json_object_get(a, key), v);
	}
	json_object_foreach ((json_t *)a, key, v) {
		skipped = json_object_get(b, key) != NULL;
		for (size_t i = 0; i < n_skip && !skipped; i++)
			skipped = strcmp(skip[i], key) == 0;
		if (!skipped)
			diff_value(fields, objects, key, v, NULL);
	}
}

static json_t *
new_diff(const char *what, const char *name, const json_t *a, const json_t *b)
{
	return json_pack("{s:s, s:s, s:[], s:[]}", "Type", is_same(a, b) ? "None" : type_of(a, b),
	    what, name, "Fields", "Objects");
}

static json_t *
diff_object(const char *name, const json_t *a, const json_t *b)
{
	json_t *ret = new_diff("Name", name, a, b);

	diff_members(ret, a, b, NULL, 0);
	return ret;
}

static json_t *
diff_task(const json_t *a, const json_t *b)
{
	json_t *ret =
	    new_diff("Name", str(json_string_value(json_object_get(b ? b : a, "Name"))), a, b);

	diff_members(ret, a, b, NULL, 0);
	(void)json_object_set_new(ret, "Annotations", json_null());
	return ret;
}

/* Sets the list `name` of ret to the diffs of the elements that differ or are only on one side. */
static void
diff_named(json_t *ret, const char *name, const json_t *a, const json_t *b,
    json_t *(*diff)(const json_t *a, const json_t *b))
{
	json_t *list = json_array();
	const json_t *v;
	size_t i;

	json_array_foreach (b, i, v) {
		const json_t *before = match(a, b, i);

		if (!is_same(before, v))
			(void)json_array_append_new(list, diff(before, v));
	}
	json_array_foreach (a, i, v) {
		if (!match(b, a, i))
			(void)json_array_append_new(list, diff(v, NULL));
	}
	(void)json_object_set_new(ret, name, list);
}

static json_t *
diff_group(const json_t *a, const json_t *b)
{
	static const char *const tasks = "Tasks";
	json_t *ret =
	    new_diff("Name", str(json_string_value(json_object_get(b ? b : a, "Name"))), a, b);

	diff_members(ret, a, b, &tasks, 1);
	diff_named(ret, tasks, json_object_get(a, tasks), json_object_get(b, tasks), diff_task);
	(void)json_object_set_new(ret, "Updates", json_object());
	return ret;
}

json_t *
job_diff(const struct job *old, const struct job *new)
{
	json_t *a = old ? model_to_json(&job_type, old, 0) : NULL;
	json_t *b = model_to_json(&job_type, new, 0);
	json_t *ret = new_diff("ID", new->id, a, old && model_equal(&job_type, old, new) ? a : b);

	diff_members(ret, a, b, not_compared, sizeof not_compared / sizeof not_compared[0]);
	diff_named(ret, "TaskGroups", json_object_get(a, "TaskGroups"),
	    json_object_get(b, "TaskGroups"), diff_group);
	json_decref(a);
	json_decref(b);
	return ret;
}

bool
group_needs_replacement(const struct job *a, const struct task_group *ga, const struct job *b,
    const struct task_group *gb, char *ret_why, size_t size)
{
	if (!str_eq(a->name, b->name)) {
		(void)snprintf(ret_why, size, "Name");
		return true;
	}
	if (string_maps_differ(&a->meta, &b->meta)) {
		(void)snprintf(ret_why, size, "Meta");
		return true;
	}
	return model_differs(
	    &task_group_type, ga, gb, FIELD_NO_EQUAL | FIELD_IN_PLACE, ret_why, size);
}
