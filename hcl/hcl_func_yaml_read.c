/* SPDX-License-Identifier: Apache-2.0 */
/* hcl_func_yaml_read.c: YAML as values. Runs in: cli, job-parser. */
#include "hcl/hcl_doc.h"
#include "hcl/hcl_func.h"
#include "hcl/hcl_yaml_scalar.h"
#include "lang/yaml_read.h"

static void
fail(void *call, size_t line, const char *why)
{
	hcl_refuse_argument(call, 0, "line %zu of the YAML: %s", line + 1, why);
}

/* A block without a tag is a string, but is resolved before: "yes" in one becomes "true". */
static void *
make_scalar(void *call, const struct yaml_scalar *s)
{
	struct hcl_call *c = call;
	const char *why = NULL;
	struct hcl_value *v = hcl_yaml_scalar(c->h, s->tag, s->s, s->len, s->quoted, &why);

	if (!v)
		fail(c, s->line, why);
	if (s->key && hcl_is_null(v))
		fail(c, s->line, "the key of a mapping must not be null");
	if (s->key || (!*s->tag && !s->plain))
		v = hcl_convert(c->h, v, &hcl_type_string, NULL);
	return v;
}

static void *
make_list(void *call, void **items, size_t n)
{
	struct hcl_call *c = call;

	return hcl_tuple(c->h, (struct hcl_value **)items, n);
}

struct members {
	struct hcl_items keys, values;
};

static void
merge_members(struct hcl_call *c, struct members *m, const struct hcl_value *from, size_t line)
{
	if (from->state != HCL_KNOWN || !hcl_is_mapping(from))
		fail(c, line, "\"<<\" can only merge mappings");
	for (size_t i = 0; i < from->len; i++) {
		hcl_items_add(
		    &m->keys, hcl_string(c->h, from->members[i].key, from->members[i].key_len));
		hcl_items_add(&m->values, from->members[i].value);
	}
}

static void
merge(struct hcl_call *c, struct members *m, const struct yaml_pair *pair)
{
	struct hcl_value *from = pair->value;

	if (from->state != HCL_KNOWN || from->kind != HCL_TUPLE) {
		merge_members(c, m, from, pair->line);
		return;
	}
	for (size_t i = 0; i < from->len; i++)
		merge_members(c, m, from->items[i], pair->line);
}

static void *
make_map(void *call, struct yaml_pair *pairs, size_t n)
{
	struct hcl_call *c = call;
	struct members m = { { .h = c->h }, { .h = c->h } };
	struct hcl_member *members;

	for (size_t i = 0; i < n; i++) {
		if (!pairs[i].key) {
			merge(c, &m, &pairs[i]);
			continue;
		}
		hcl_items_add(&m.keys, pairs[i].key);
		hcl_items_add(&m.values, pairs[i].value);
	}
	members = hcl_alloc(c->h, m.keys.n * sizeof *members);
	for (size_t i = 0; i < m.keys.n; i++)
		members[i] =
		    (struct hcl_member){ m.keys.v[i]->string, m.keys.v[i]->len, m.values.v[i] };
	return hcl_object(c->h, members, m.keys.n);
}

struct hcl_value *
hcl_fn_yamldecode(struct hcl_call *c)
{
	static const struct yaml_maker maker = { .scalar = make_scalar,
		.list = make_list,
		.map = make_map,
		.enter = hcl_call_enter,
		.leave = hcl_call_leave,
		.fail = fail,
		.scalar_keys = true,
		.one_document = true };

	return yaml_read(hcl_arena(c->h), c->args[0]->string, c->args[0]->len, &maker, c);
}
