// SPDX-License-Identifier: Apache-2.0
/* ren_values.c: answers what a template asks for from the values of a request, JSON of the
 * supervisor. A value is found by the name of its need. Runs in: a worker of template-renderer. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "template-renderer/ren.h"

struct ren_memory {
	struct ren_memory *next;
	max_align_t data[];
};

/* Returns memory of zeros, which ren_values_done() frees: at least one element. */
static void *
make_memory(struct ren_values *v, size_t n, size_t size)
{
	struct ren_memory *m = mem_zeroed(1, sizeof *m + (n + 1) * size);

	m->next = v->memory;
	v->memory = m;
	return m->data;
}

/* A text of an object; "" if there is none. */
static const char *
text_of(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

static uint64_t
number_of(const json_t *o, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(o, key));
}

/* NULL: the value is not known; JSON's null: there is none. */
static json_t *
find(const struct ren_values *v, const struct template_query *q)
{
	return json_object_get(json_object_get(v->json, "known"), q->need);
}

static const char *
find_env(void *arg, const char *name)
{
	const struct ren_values *v = arg;

	return json_string_value(json_object_get(json_object_get(v->json, "env"), name));
}

static void
read_variable(struct ren_values *v, const json_t *from, struct template_variable *ret)
{
	json_t *items = json_object_get(from, "items"), *value;
	size_t n = json_object_size(items), i = 0;
	const char **keys = make_memory(v, n, sizeof *keys),
		   **values = make_memory(v, n, sizeof *values);
	const char *key;

	json_object_foreach (items, key, value) {
		keys[i] = key;
		values[i++] = json_is_string(value) ? json_string_value(value) : "";
	}
	*ret = (struct template_variable){ .ns = text_of(from, "namespace"),
		.path = text_of(from, "path"),
		.create_index = number_of(from, "create_index"),
		.modify_index = number_of(from, "modify_index"),
		.create_time = (int64_t)number_of(from, "create_time"),
		.modify_time = (int64_t)number_of(from, "modify_time"),
		.n_items = n,
		.keys = keys,
		.values = values };
}

static enum template_answer
find_variables(
    void *arg, const struct template_query *q, const struct template_variable **ret, size_t *ret_n)
{
	struct ren_values *v = arg;
	const json_t *list = find(v, q);
	size_t n = json_array_size(list);
	struct template_variable *variables;

	if (!list)
		return TEMPLATE_UNKNOWN;
	variables = make_memory(v, n, sizeof *variables);
	for (size_t i = 0; i < n; i++)
		read_variable(v, json_array_get(list, i), &variables[i]);
	*ret = variables;
	*ret_n = n;
	return TEMPLATE_THERE;
}

static enum template_answer
find_variable(void *arg, const struct template_query *q, const struct template_variable **ret)
{
	struct ren_values *v = arg;
	const json_t *variable = find(v, q);
	struct template_variable *found;

	if (!json_is_object(variable))
		return variable ? TEMPLATE_ABSENT : TEMPLATE_UNKNOWN;
	found = make_memory(v, 1, sizeof *found);
	read_variable(v, variable, found);
	*ret = found;
	return TEMPLATE_THERE;
}

static void
read_service(struct ren_values *v, const json_t *from, struct template_service *ret)
{
	const json_t *tags = json_object_get(from, "tags");
	size_t n = json_array_size(tags);
	const char **texts = make_memory(v, n, sizeof *texts);

	for (size_t i = 0; i < n; i++) {
		const char *s = json_string_value(json_array_get(tags, i));

		texts[i] = s ? s : "";
	}
	*ret = (struct template_service){ .id = text_of(from, "id"),
		.name = text_of(from, "name"),
		.node = text_of(from, "node"),
		.address = text_of(from, "address"),
		.datacenter = text_of(from, "datacenter"),
		.job_id = text_of(from, "job_id"),
		.alloc_id = text_of(from, "alloc_id"),
		.port = (int)number_of(from, "port"),
		.n_tags = n,
		.tags = texts };
}

static enum template_answer
find_services(
    void *arg, const struct template_query *q, const struct template_service **ret, size_t *ret_n)
{
	struct ren_values *v = arg;
	const json_t *list = find(v, q);
	size_t n = json_array_size(list);
	struct template_service *services;

	if (!list)
		return TEMPLATE_UNKNOWN;
	services = make_memory(v, n, sizeof *services);
	for (size_t i = 0; i < n; i++)
		read_service(v, json_array_get(list, i), &services[i]);
	*ret = services;
	*ret_n = n;
	return TEMPLATE_THERE;
}

/* A file's contents, or {"problem": "why it is refused"}. */
static enum template_answer
find_file(void *arg, const struct template_query *q, const char **ret, size_t *ret_len,
    const char **ret_problem)
{
	const json_t *file = find(arg, q);

	if (json_is_object(file)) {
		*ret_problem = text_of(file, "problem");
		return TEMPLATE_ABSENT;
	}
	if (!json_is_string(file))
		return TEMPLATE_UNKNOWN;
	*ret = json_string_value(file);
	*ret_len = json_string_length(file);
	return TEMPLATE_THERE;
}

static void
read_interfaces(struct ren_values *v)
{
	const json_t *list = json_object_get(v->json, "interfaces");
	size_t n = json_array_size(list);
	struct template_interface *all = make_memory(v, n, sizeof *all);

	for (size_t i = 0; i < n; i++) {
		const json_t *from = json_array_get(list, i);

		all[i] = (struct template_interface){ .name = text_of(from, "name"),
			.address = text_of(from, "address"),
			.hardware = text_of(from, "hardware"),
			.flags = text_of(from, "flags"),
			.index = (int)number_of(from, "index"),
			.mtu = (int)number_of(from, "mtu"),
			.is_default = json_is_true(json_object_get(from, "default")) };
	}
	v->data.interfaces = all;
	v->data.n_interfaces = n;
}

int
ren_values_read(struct ren_values *v, json_t *json, struct err *e)
{
	if (!json_is_object(json) || !json_is_object(json_object_get(json, "env")) ||
	    !json_is_object(json_object_get(json, "known")))
		return err_say(e, -EINVAL, "the values of a template are not what they must be");
	*v = (struct ren_values){ .json = json,
		.data = { .arg = v,
		    .ns = text_of(json, "namespace"),
		    .env = find_env,
		    .variable = find_variable,
		    .variables = find_variables,
		    .services = find_services,
		    .file = find_file,
		    .now_ns = (int64_t)number_of(json, "now_ns") } };
	read_interfaces(v);
	return 0;
}

void
ren_values_done(struct ren_values *v)
{
	struct ren_memory *m;

	while ((m = v->memory)) {
		v->memory = m->next;
		free(m);
	}
}
