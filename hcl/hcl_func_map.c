/* SPDX-License-Identifier: Apache-2.0 */
/* hcl_func_map.c: functions about maps and objects. Runs in: cli, job-parser. */
#include <string.h>

#include "hcl/hcl_func.h"

static void
check_mapping(struct hcl_call *c, size_t i)
{
	if (!hcl_is_mapping(c->args[i]))
		hcl_refuse_argument(c, i, "argument %zu must be a map or object, not %s", i + 1,
		    hcl_value_type_name(c->h, c->args[i]));
}

/* Makes a list of the map's type, or a tuple for an object, of which fn gives the elements. */
static struct hcl_value *
list_members(struct hcl_call *c, const struct hcl_type *item,
    struct hcl_value *(*fn)(struct hcl *h, const struct hcl_member *m))
{
	const struct hcl_value *map = c->args[0];
	struct hcl_value **items;

	hcl_step(c->h, map->len);
	items = hcl_alloc(c->h, map->len * sizeof *items);
	for (size_t i = 0; i < map->len; i++)
		items[i] = fn(c->h, &map->members[i]);
	return map->kind == HCL_MAP ? hcl_list(c->h, item, items, map->len)
				    : hcl_tuple(c->h, items, map->len);
}

static struct hcl_value *
key_of(struct hcl *h, const struct hcl_member *m)
{
	return hcl_string(h, m->key, m->key_len);
}

static struct hcl_value *
value_of(struct hcl *h, const struct hcl_member *m)
{
	(void)h;
	return m->value;
}

struct hcl_value *
hcl_fn_keys(struct hcl_call *c)
{
	check_mapping(c, 0);
	return list_members(c, &hcl_type_string, key_of);
}

struct hcl_value *
hcl_fn_values(struct hcl_call *c)
{
	check_mapping(c, 0);
	return list_members(
	    c, c->args[0]->kind == HCL_MAP ? c->args[0]->type->item : NULL, value_of);
}

struct hcl_value *
hcl_fn_lookup(struct hcl_call *c)
{
	const struct hcl_value *map = c->args[0], *key = c->args[1];
	struct hcl_value *other = c->args[2], *found;
	const char *why = "";

	check_mapping(c, 0);
	found = hcl_get(map, key->string, key->len);
	if (map->kind == HCL_MAP) {
		other = hcl_convert(c->h, other, map->type->item, &why);
		if (!other)
			hcl_refuse_argument(
			    c, 2, "the default must have the type of the map's elements: %s", why);
	}
	if (!hcl_is_wholly_known(map))
		return hcl_unknown(c->h, &hcl_type_any);
	return found ? found : other;
}

/* The type of all arguments if they are maps of one type; NULL for an object. */
static const struct hcl_type *
common_map_type(struct hcl_call *c)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->args[i]->kind != HCL_MAP ||
		    !hcl_type_equal(c->args[i]->type, c->args[0]->type))
			return NULL;
	return c->n > 0 ? c->args[0]->type : NULL;
}

struct hcl_value *
hcl_fn_merge(struct hcl_call *c)
{
	const struct hcl_type *type = common_map_type(c);
	struct hcl_member *members;
	size_t total = 0, n = 0;

	for (size_t i = 0; i < c->n; i++) {
		if (!hcl_is_null(c->args[i]) || c->args[i]->kind != HCL_ANY)
			check_mapping(c, i);
		total += hcl_is_null(c->args[i]) ? 0 : c->args[i]->len;
	}
	members = hcl_alloc(c->h, total * sizeof *members);
	for (size_t i = 0; i < c->n; i++)
		for (size_t j = 0; j < c->args[i]->len && !hcl_is_null(c->args[i]); j++)
			members[n++] = c->args[i]->members[j];
	return type ? hcl_map(c->h, type->item, members, n) : hcl_object(c->h, members, n);
}

struct hcl_value *
hcl_fn_zipmap(struct hcl_call *c)
{
	struct hcl_value *keys = hcl_arg_list(c, 0, &hcl_type_string), *values = c->args[1];
	struct hcl_member *members;

	if (values->kind != HCL_LIST && values->kind != HCL_TUPLE)
		hcl_refuse_argument(c, 1, "the values must be a list or tuple");
	if (!hcl_is_wholly_known(keys))
		return hcl_unknown(c->h, &hcl_type_any);
	if (keys->len != values->len)
		hcl_refuse_argument(
		    c, 1, "there are %zu keys, but %zu values", keys->len, values->len);
	members = hcl_alloc(c->h, keys->len * sizeof *members);
	for (size_t i = 0; i < keys->len; i++) {
		if (hcl_is_null(keys->items[i]))
			hcl_refuse_argument(c, 0, "key %zu is null", i);
		members[i] = (struct hcl_member){
			.key = keys->items[i]->string,
			.key_len = keys->items[i]->len,
			.value = values->items[i],
		};
	}
	return values->kind == HCL_LIST ? hcl_map(c->h, values->type->item, members, keys->len)
					: hcl_object(c->h, members, keys->len);
}
