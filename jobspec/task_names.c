// SPDX-License-Identifier: Apache-2.0
/* task_names.c: the names that a task's configuration may use. Runs in: job-parser. */
#include "jobspec/task_names.h"

#include <stdlib.h>
#include <string.h>

#define PARTS_MAX 32 /* parts of a name between dots; a name with more is only in env */

/* A name and its value. `at` is where the parts begin that are not yet in an object. */
struct entry {
	const char *name, *at;
	const char *value;
	size_t order; /* of two with one name the later counts */
};

struct entries {
	struct hcl *h;
	struct entry *v;
	size_t n;
};

/* "a.b" is before "a-b": so names with a first part in common are neighbours. */
static int
compare_names(const char *a, const char *b)
{
	for (; *a && *a == *b; a++, b++)
		;
	if (*a == '.' || *b == '.')
		return *a == '.' ? (*b ? -1 : 1) : (*a ? 1 : -1);
	return (unsigned char)*a - (unsigned char)*b;
}

static int
compare_entries(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int order = compare_names(x->name, y->name);

	if (order != 0)
		return order;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* A name with an empty part, such as "a..b", has no place in objects. */
static bool
has_place(const char *name)
{
	size_t parts = 1;

	for (const char *c = name; *c; c++) {
		if (*c != '.')
			continue;
		if (c == name || c[-1] == '.' || !c[1])
			return false;
		parts++;
	}
	return *name && parts <= PARTS_MAX;
}

static bool
begins_with_part(const char *name, const char *part)
{
	size_t len = strlen(part);

	return strncmp(name, part, len) == 0 && (!name[len] || name[len] == '.');
}

static void
add_entry(struct entries *all, const char *name, const char *value)
{
	if (value && has_place(name) && !begins_with_part(name, "env"))
		all->v[all->n++] = (struct entry){ name, name, value, all->n };
}

static void
add_all(struct entries *all, const json_t *names)
{
	const char *name;
	json_t *value;

	json_object_foreach ((json_t *)(uintptr_t)names, name, value) {
		const char *text = json_string_value(value);

		add_entry(all, hcl_strndup(all->h, name, strlen(name)), text);
		if (begins_with_part(name, "attr") || begins_with_part(name, "meta"))
			add_entry(all, hcl_printf(all->h, "node.%s", name), text);
	}
}

static size_t
part_length(const char *at)
{
	return strcspn(at, ".");
}

/* The number of entries from the first on whose next part is the same. */
static size_t
count_same(const struct entry *e, size_t n)
{
	size_t len = part_length(e->at), same = 1;

	while (same < n && part_length(e[same].at) == len && strncmp(e[same].at, e->at, len) == 0)
		same++;
	return same;
}

static struct hcl_value *make_object(struct hcl *h, struct entry *e, size_t n);

/* The value of entries whose next part is the same: an object of those with further parts, which
 * are behind those without; or else the last one's text. */
static struct hcl_value *
make_value(struct hcl *h, struct entry *e, size_t n)
{
	size_t plain = 0;

	while (plain < n && !e[plain].at[part_length(e[plain].at)])
		plain++;
	if (plain == n)
		return hcl_text(h, e[n - 1].value);
	for (size_t i = plain; i < n; i++)
		e[i].at += part_length(e[i].at) + 1;
	return make_object(h, e + plain, n - plain);
}

static size_t
make_members(struct hcl *h, struct entry *e, size_t n, struct hcl_member *ret)
{
	size_t n_members = 0;

	for (size_t i = 0, same; i < n; i += same) {
		size_t len = part_length(e[i].at);
		const char *key = hcl_strndup(h, e[i].at, len);

		same = count_same(e + i, n - i);
		ret[n_members++] = (struct hcl_member){ key, len, make_value(h, e + i, same) };
	}
	return n_members;
}

static struct hcl_value *
make_object(struct hcl *h, struct entry *e, size_t n)
{
	struct hcl_member *members = hcl_alloc(h, n * sizeof *members);

	return hcl_object(h, members, make_members(h, e, n, members));
}

static struct hcl_value *
make_env(struct hcl *h, const json_t *env)
{
	struct hcl_member *members = hcl_alloc(h, json_object_size(env) * sizeof *members);
	const char *name;
	json_t *value;
	size_t n = 0;

	json_object_foreach ((json_t *)(uintptr_t)env, name, value)
		if (json_is_string(value))
			members[n++] = (struct hcl_member){ hcl_strndup(h, name, strlen(name)),
				strlen(name), hcl_text(h, json_string_value(value)) };
	return hcl_map(h, &hcl_type_string, members, n);
}

void
task_names_add(struct hcl *h, const json_t *values, struct hcl_scope *ret)
{
	const json_t *env = json_object_get(values, "env"), *node = json_object_get(values, "node");
	size_t most = 2 * (json_object_size(env) + json_object_size(node));
	struct entries all = { .h = h, .v = hcl_alloc(h, most * sizeof *all.v) };
	struct hcl_member *members;
	struct hcl_variable *variables;
	size_t n;

	add_all(&all, env);
	add_all(&all, node);
	qsort(all.v, all.n, sizeof *all.v, compare_entries);
	members = hcl_alloc(h, (all.n + 1) * sizeof *members);
	n = make_members(h, all.v, all.n, members);
	members[n++] = (struct hcl_member){ "env", 3, make_env(h, env) };
	variables = hcl_alloc(h, n * sizeof *variables);
	for (size_t i = 0; i < n; i++)
		variables[i] = (struct hcl_variable){ members[i].key, members[i].value };
	ret->variables = variables;
	ret->n = n;
}
