/* SPDX-License-Identifier: Apache-2.0 */
/* tpl_sprig_dict.c: sprig's functions about maps. set, unset and merge change the map that they
 * get. Where the original's order is random, keys are sorted. Runs in: template-renderer. */
#include <string.h>

#include "template/go_merge.h"
#include "template/go_strings.h"
#include "template/tpl_sprig.h"

struct go_value
tpl_fn_sprig_dict(struct go_call *c)
{
	struct go_value map = go_map(c->arena, &go_type_dict);

	for (size_t i = 0; i < c->n; i += 2)
		go_map_set(c->arena, map, go_to_text(c->arena, c->args[i]),
		    i + 1 < c->n ? c->args[i + 1] : go_text(""));
	return map;
}

struct go_value
tpl_fn_sprig_get(struct go_call *c)
{
	struct go_value *v = go_map_find(c->args[0].map, c->args[1]);

	return v ? *v : go_text("");
}

struct go_value
tpl_fn_sprig_set(struct go_call *c)
{
	if (!c->args[0].map)
		go_call_fail(c, "assignment to entry in nil map");
	go_map_set(c->arena, c->args[0], c->args[1], c->args[2]);
	return c->args[0];
}

struct go_value
tpl_fn_sprig_unset(struct go_call *c)
{
	go_map_remove(c->args[0].map, c->args[1]);
	return c->args[0];
}

struct go_value
tpl_fn_sprig_has_key(struct go_call *c)
{
	return go_bool(go_map_find(c->args[0].map, c->args[1]));
}

static struct go_value
new_list(struct go_call *c, const struct go_type *type)
{
	struct go_value list = go_slice(c->arena, type, 0);

	list.list.room = 0;
	return list;
}

struct go_value
tpl_fn_sprig_pluck(struct go_call *c)
{
	struct go_value list = new_list(c, &go_type_anys), *v;

	for (size_t i = 1; i < c->n; i++) {
		v = go_map_find(c->args[i].map, c->args[0]);
		if (v)
			list = go_append(c->arena, list, *v);
	}
	return list;
}

struct go_value
tpl_fn_sprig_keys(struct go_call *c)
{
	struct go_value list = new_list(c, &go_type_strings);

	for (size_t i = 0; i < c->n; i++)
		for (size_t k = 0; k < go_map_len(c->args[i]); k++)
			list = go_append(c->arena, list, c->args[i].map->v[k].key);
	return list;
}

struct go_value
tpl_fn_sprig_values(struct go_call *c)
{
	struct go_value list = new_list(c, &go_type_anys);

	for (size_t i = 0; i < go_map_len(c->args[0]); i++)
		list = go_append(c->arena, list, c->args[0].map->v[i].value);
	return list;
}

/* Those members whose keys are among the arguments, or those whose keys are not. */
static struct go_value
select_members(struct go_call *c, bool among)
{
	struct go_value from = c->args[0], map = go_map(c->arena, &go_type_dict);

	for (size_t i = 0; i < go_map_len(from); i++) {
		bool found = false;

		for (size_t k = 1; k < c->n; k++)
			found |= go_compare_text(c->args[k], from.map->v[i].key) == 0;
		if (found == among)
			go_map_set(c->arena, map, from.map->v[i].key, from.map->v[i].value);
	}
	return map;
}

struct go_value
tpl_fn_sprig_pick(struct go_call *c)
{
	return select_members(c, true);
}

struct go_value
tpl_fn_sprig_omit(struct go_call *c)
{
	return select_members(c, false);
}

static struct go_value
merge(struct go_call *c, bool overwrite)
{
	for (size_t i = 1; i < c->n; i++)
		go_merge(c->arena, &c->args[0], c->args[i], overwrite);
	return c->args[0];
}

struct go_value
tpl_fn_sprig_merge(struct go_call *c)
{
	return merge(c, false);
}

struct go_value
tpl_fn_sprig_merge_overwrite(struct go_call *c)
{
	return merge(c, true);
}

static struct go_value
deep_copy(struct arena *a, struct go_value v)
{
	struct go_value copied = v;

	arena_step(a, 1);
	arena_enter(a);
	if (go_kind(v) == GO_SLICE && v.list.items) {
		copied = go_slice(a, v.type, v.list.n);
		for (size_t i = 0; i < v.list.n; i++)
			copied.list.items[i] = deep_copy(a, v.list.items[i]);
	} else if (go_kind(v) == GO_MAP && v.map) {
		copied = go_map(a, v.type);
		for (size_t i = 0; i < v.map->n; i++)
			go_map_set(a, copied, v.map->v[i].key, deep_copy(a, v.map->v[i].value));
	}
	arena_exit(a);
	return copied;
}

struct go_value
tpl_fn_sprig_deep_copy(struct go_call *c)
{
	if (!c->args[0].type)
		go_call_fail(c, "reflect: call of reflect.Value.Type on zero Value");
	return deep_copy(c->arena, c->args[0]);
}

/* Keys, the value for a missing one, and the map. */
struct go_value
tpl_fn_sprig_dig(struct go_call *c)
{
	struct go_value map, *v;

	if (c->n < 3)
		go_call_fail(c, "dig needs at least three arguments");
	map = c->args[c->n - 1];
	for (size_t i = 0; i < c->n - 2; i++) {
		if (map.type != &go_type_dict)
			go_call_fail(c,
			    "interface conversion: interface {} is %s, not map[string]interface {}",
			    map.type ? map.type->name : "nil");
		if (go_kind(c->args[i]) != GO_STRING)
			go_call_fail(c, "interface conversion: interface {} is %s, not string",
			    c->args[i].type ? c->args[i].type->name : "nil");
		v = go_map_find(map.map, c->args[i]);
		if (!v)
			return c->args[c->n - 2];
		map = *v;
	}
	return map;
}
