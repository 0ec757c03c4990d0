/* SPDX-License-Identifier: Apache-2.0 */
/* template_data.h: the data of fixtures/template_data.json for templates, and results as text. Runs
 * in: unit tests. */
#ifndef DROVER_TESTS_UNIT_TEMPLATE_DATA_H
#define DROVER_TESTS_UNIT_TEMPLATE_DATA_H

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "template/template.h"

#define DATA_MAX 64

struct test_data {
	json_t *json;
	struct template_variable variables[DATA_MAX], listed[DATA_MAX];
	struct template_service services[DATA_MAX], chosen[DATA_MAX];
	struct template_interface interfaces[DATA_MAX];
	size_t n_variables, n_services;
	const char *keys[DATA_MAX][DATA_MAX], *values[DATA_MAX][DATA_MAX],
	    *tags[DATA_MAX][DATA_MAX];
	struct template_data data;
};

static inline const char *
data_env(void *arg, const char *name)
{
	struct test_data *d = arg;

	return json_string_value(json_object_get(json_object_get(d->json, "env"), name));
}

static inline enum template_answer
data_variable(void *arg, const struct template_query *q, const struct template_variable **ret)
{
	struct test_data *d = arg;

	if (strcmp(q->ns, "default") != 0)
		return TEMPLATE_UNKNOWN;
	for (size_t i = 0; i < d->n_variables; i++)
		if (strcmp(d->variables[i].path, q->name) == 0) {
			*ret = &d->variables[i];
			return TEMPLATE_THERE;
		}
	return strncmp(q->name, "unknown", 7) == 0 ? TEMPLATE_UNKNOWN : TEMPLATE_ABSENT;
}

static inline enum template_answer
data_variables(
    void *arg, const struct template_query *q, const struct template_variable **ret, size_t *ret_n)
{
	struct test_data *d = arg;
	size_t n = 0;

	if (strncmp(q->name, "unknown", 7) == 0)
		return TEMPLATE_UNKNOWN;
	for (size_t i = 0; i < d->n_variables; i++)
		if (strncmp(d->variables[i].path, q->name, strlen(q->name)) == 0)
			d->listed[n++] = d->variables[i];
	*ret = d->listed;
	*ret_n = n;
	return TEMPLATE_THERE;
}

static inline bool
data_has_tag(const struct template_service *s, const char *tag)
{
	for (size_t i = 0; i < s->n_tags; i++)
		if (strcmp(s->tags[i], tag) == 0)
			return true;
	return !*tag;
}

static inline enum template_answer
data_services(
    void *arg, const struct template_query *q, const struct template_service **ret, size_t *ret_n)
{
	struct test_data *d = arg;
	size_t n = 0;

	if (strncmp(q->name, "unknown", 7) == 0)
		return TEMPLATE_UNKNOWN;
	for (size_t i = 0; i < d->n_services; i++) {
		const struct template_service *s = &d->services[i];
		bool first = i == 0 || strcmp(s->name, s[-1].name) != 0;

		if (q->kind == TEMPLATE_NEED_SERVICES
			? first
			: strcmp(s->name, q->name) == 0 && data_has_tag(s, q->tag) &&
			      (!q->key || n < (size_t)q->count))
			d->chosen[n++] = *s;
	}
	*ret = d->chosen;
	*ret_n = n;
	return TEMPLATE_THERE;
}

static inline enum template_answer
data_file(void *arg, const struct template_query *q, const char **ret, size_t *ret_len,
    const char **ret_problem)
{
	struct test_data *d = arg;

	*ret = json_string_value(json_object_get(json_object_get(d->json, "files"), q->name));
	if (!*ret) {
		*ret_problem = "no such file or directory";
		return TEMPLATE_ABSENT;
	}
	*ret_len = strlen(*ret);
	return TEMPLATE_THERE;
}

static inline const char *
data_text(json_t *o, const char *key)
{
	return json_string_value(json_object_get(o, key));
}

static inline void
data_load_variable(struct test_data *d, json_t *from)
{
	struct template_variable *v = &d->variables[d->n_variables];
	const char **keys = d->keys[d->n_variables], **values = d->values[d->n_variables];
	const char *key;
	json_t *value;

	*v = (struct template_variable){ .ns = "default",
		.path = data_text(from, "path"),
		.create_index = (uint64_t)json_integer_value(json_object_get(from, "create_index")),
		.modify_index = (uint64_t)json_integer_value(json_object_get(from, "modify_index")),
		.create_time = json_integer_value(json_object_get(from, "create_time")),
		.modify_time = json_integer_value(json_object_get(from, "modify_time")),
		.keys = keys,
		.values = values };
	json_object_foreach (json_object_get(from, "items"), key, value) {
		keys[v->n_items] = key;
		values[v->n_items++] = json_string_value(value);
	}
	d->n_variables++;
}

static inline void
data_load_service(struct test_data *d, json_t *from)
{
	struct template_service *s = &d->services[d->n_services];
	const char **tags = d->tags[d->n_services];
	json_t *tag;
	size_t i;

	*s = (struct template_service){ .id = data_text(from, "id"),
		.name = data_text(from, "name"),
		.node = data_text(from, "node"),
		.address = data_text(from, "address"),
		.datacenter = data_text(from, "datacenter"),
		.job_id = data_text(from, "job_id"),
		.alloc_id = data_text(from, "alloc_id"),
		.port = (int)json_integer_value(json_object_get(from, "port")),
		.tags = tags };
	json_array_foreach (json_object_get(from, "tags"), i, tag)
		tags[s->n_tags++] = json_string_value(tag);
	d->n_services++;
}

static inline void
data_load_interface(struct test_data *d, json_t *from)
{
	d->interfaces[d->data.n_interfaces++] =
	    (struct template_interface){ .name = data_text(from, "name"),
		    .address = data_text(from, "address"),
		    .hardware = data_text(from, "hardware"),
		    .flags = data_text(from, "flags"),
		    .index = (int)json_integer_value(json_object_get(from, "index")),
		    .mtu = (int)json_integer_value(json_object_get(from, "mtu")),
		    .is_default = json_is_true(json_object_get(from, "default")) };
}

/* Returns NULL if the file cannot be read. */
static inline struct test_data *
data_load(const char *path)
{
	struct test_data *d = calloc(1, sizeof *d);
	json_t *o;
	size_t i;

	d->json = json_load_file(path, 0, NULL);
	json_array_foreach (json_object_get(d->json, "variables"), i, o)
		data_load_variable(d, o);
	json_array_foreach (json_object_get(d->json, "services"), i, o)
		data_load_service(d, o);
	d->data = (struct template_data){ .arg = d,
		.ns = "default",
		.env = data_env,
		.variable = data_variable,
		.variables = data_variables,
		.services = data_services,
		.file = data_file,
		.now_ns = 1700000000000000000,
		.interfaces = d->interfaces };
	json_array_foreach (json_object_get(d->json, "interfaces"), i, o)
		data_load_interface(d, o);
	return d;
}

static inline void
data_free(struct test_data *d)
{
	json_decref(d->json);
	free(d);
}

/* In a line of a fixture \n is a newline, \\ a backslash, \xNN a byte. */
static inline size_t
data_unescape(char *s)
{
	char *to = s, *from = s;

	for (; *s; s++) {
		if (*s != '\\') {
			*to++ = *s;
			continue;
		}
		s++;
		if (*s == 'x') {
			*to++ = (char)strtol((char[]){ s[1], s[2], '\0' }, NULL, 16);
			s += 2;
		} else {
			*to++ = *s == 'n' ? '\n' : *s;
		}
	}
	*to = '\0';
	return (size_t)(to - from);
}

static inline void
data_escape(FILE *f, const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)s[i];

		if (c == '\n')
			fputs("\\n", f);
		else if (c == '\\')
			fputs("\\\\", f);
		else if (c < ' ' || c == 0x7f)
			fprintf(f, "\\x%02x", c);
		else
			fputc(c, f);
	}
}

/* Returns "= OUTPUT", with "\?[A, B]" if A and B are missing, or "! SENTENCE"; the caller frees it.
 */
static inline char *
data_render(struct test_data *d, const char *text, size_t len, const struct template_options *o)
{
	char *found = NULL, *problem = NULL;
	size_t size;
	FILE *f = open_memstream(&found, &size);
	struct template *t = template_parse(text, len, o, &problem);
	const struct template_result *r = t ? template_render(t, &d->data) : NULL;

	if (!r || r->problem) {
		fputs("! ", f);
		data_escape(f, r ? r->problem : problem, strlen(r ? r->problem : problem));
	} else {
		fputs("= ", f);
		data_escape(f, r->output, r->len);
		if (r->n_missing > 0)
			fputs("\\?[", f);
		for (size_t i = 0, n = 0; i < r->n_needs; i++)
			if (r->needs[i].missing)
				fprintf(f, "%s%s", n++ > 0 ? ", " : "", r->needs[i].name);
		if (r->n_missing > 0)
			fputs("]", f);
	}
	(void)fclose(f);
	free(problem);
	template_free(t);
	return found;
}

#endif
