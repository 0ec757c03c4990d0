/* SPDX-License-Identifier: Apache-2.0 */
/* tpl_func_list.c: functions about lists and maps. Runs in: template-renderer. */
#include <stdio.h>
#include <string.h>

#include "template/go_merge.h"
#include "template/go_print.h"
#include "template/go_source.h"
#include "template/go_strings.h"
#include "template/go_text.h"
#include "template/tpl_functions.h"

/* A nil cannot be compared with a text. */
static void
check_typed(struct go_call *c, struct go_value v)
{
	if (!v.type)
		go_call_fail(c, "reflect: call of reflect.Value.Type on zero Value");
}

/* Whether an element of a list is the value: integers of any size, and of other kinds those of the
 * same type. */
static bool
is_element(struct go_call *c, struct go_value elem, struct go_value v)
{
	switch (go_kind(elem)) {
	case GO_INT:
		return go_kind(v) == GO_INT && v.i == elem.i;
	case GO_FLOAT:
		return go_kind(v) == GO_FLOAT && v.f == elem.f;
	case GO_STRING:
		check_typed(c, v);
		return v.type == elem.type && go_compare_text(v, elem) == 0;
	default:
		return false;
	}
}

static bool
is_in(struct go_call *c, struct go_value list, struct go_value v)
{
	if (go_kind(list) == GO_STRING) {
		check_typed(c, v);
		return v.type == list.type && go_contains(c->arena, list, v);
	}
	if (go_kind(list) != GO_SLICE)
		return false;
	for (size_t i = 0; i < list.list.n; i++) {
		arena_step(c->arena, 1);
		if (is_element(c, list.list.items[i], v))
			return true;
	}
	return false;
}

struct go_value
tpl_fn_in(struct go_call *c)
{
	return go_bool(is_in(c, c->args[0], c->args[1]));
}

struct go_value
tpl_fn_contains(struct go_call *c)
{
	return go_bool(is_in(c, c->args[1], c->args[0]));
}

/* Whether for all of them it is true (or false) that they are in the list. */
static bool
each_in(struct go_call *c, bool wanted)
{
	for (size_t i = 0; i < c->args[0].list.n; i++)
		if (is_in(c, c->args[1], c->args[0].list.items[i]) != wanted)
			return false;
	return true;
}

struct go_value
tpl_fn_contains_all(struct go_call *c)
{
	return go_bool(each_in(c, true));
}

struct go_value
tpl_fn_contains_any(struct go_call *c)
{
	return go_bool(!each_in(c, false));
}

struct go_value
tpl_fn_contains_none(struct go_call *c)
{
	return go_bool(each_in(c, false));
}

struct go_value
tpl_fn_contains_not_all(struct go_call *c)
{
	return go_bool(!each_in(c, true));
}

static const char *
quoted(struct go_call *c, struct go_value v)
{
	struct text t = { .arena = c->arena };

	go_printf(&t, "%q", 2, &v, 1);
	return t.text;
}

/* Puts the value into the maps that a key such as a/b/c names. */
static void
set_nested(struct go_call *c, struct go_value map, struct go_value key, struct go_value value)
{
	struct go_value path = key, top, *found;
	const char *slash;

	while ((slash = memchr(key.s, '/', key.len))) {
		arena_step(c->arena, 1);
		top = go_string(key.s, (size_t)(slash - key.s));
		found = go_map_find(map.map, top);
		if (!found) {
			go_map_set(c->arena, map, top, go_map(c->arena, &go_type_dict));
			found = go_map_find(map.map, top);
		}
		if (found->type != &go_type_dict || !found->map)
			go_call_fail(c, "%s: not a map: %s: %s already has value " TPL_VALUE("%s"),
			    c->name, quoted(c, path), quoted(c, top), quoted(c, *found));
		map = *found;
		path = key;
		key = go_string(slash + 1, key.len - top.len - 1);
	}
	if (key.len > 0)
		go_map_set(c->arena, map, key, value);
}

struct go_value
tpl_fn_explode_map(struct go_call *c)
{
	struct go_value map = go_map(c->arena, &go_type_dict);

	for (size_t i = 0; i < go_map_len(c->args[0]); i++)
		set_nested(c, map, c->args[0].map->v[i].key, c->args[0].map->v[i].value);
	return map;
}

/* Keys of Consul, which are never there. */
struct go_value
tpl_fn_explode(struct go_call *c)
{
	return go_map(c->arena, &go_type_dict);
}

struct go_value
tpl_fn_by_key(struct go_call *c)
{
	static const struct go_type pairs = { .kind = GO_MAP,
		.name = "map[string]map[string]*dependency.KeyPair",
		.key = &go_type_string,
		.elem = &go_type_dict };

	return go_map(c->arena, &pairs);
}

struct go_value
tpl_fn_by_meta(struct go_call *c)
{
	static const struct go_type services = { .kind = GO_MAP,
		.name = "map[string][]*dependency.HealthService",
		.key = &go_type_string,
		.elem = &go_type_health_services };

	return go_map(c->arena, &services);
}

static void
add_to_group(struct go_call *c, struct go_value groups, struct go_value key, struct go_value v)
{
	struct go_value *group = go_map_find(groups.map, key);

	if (group)
		*group = go_append(c->arena, *group, v);
	else
		go_map_set(c->arena, groups, key,
		    go_append(c->arena, (struct go_value){ .type = &go_type_anys }, v));
}

struct go_value
tpl_fn_by_tag(struct go_call *c)
{
	struct go_value list = c->args[0], groups = go_map(c->arena, &go_type_anys_map), tags;
	int field;

	if (!list.type || list.type == &go_type_health_services ||
	    list.type == &go_type_catalog_stubs)
		return groups;
	if (list.type != &go_type_services && list.type != &go_type_service_stubs)
		go_call_fail(c, "byTag: wrong argument type %s", list.type->name);
	field = go_field(list.type->elem, "Tags");
	for (size_t i = 0; i < list.list.n; i++) {
		tags = list.list.items[i].fields[field];
		for (size_t k = 0; k < tags.list.n; k++)
			add_to_group(c, groups, tags.list.items[k], list.list.items[i]);
	}
	return groups;
}

struct go_value
tpl_fn_by_port(struct go_call *c)
{
	struct go_value list = c->args[0], groups = go_map(c->arena, &go_type_port_map);
	int field;

	if (!list.type || list.type == &go_type_health_services)
		return groups;
	if (list.type != &go_type_services)
		go_call_fail(c, "byPort: wrong argument type %s", list.type->name);
	field = go_field(list.type->elem, "Port");
	for (size_t i = 0; i < list.list.n; i++)
		add_to_group(c, groups, list.list.items[i].fields[field], list.list.items[i]);
	return groups;
}

/* The first map with what the second one has besides. */
struct go_value
tpl_fn_merge_map(struct go_call *c)
{
	if (c->n != 2)
		go_call_fail(c, "a third argument is not supported");
	go_merge(c->arena, &c->args[0], c->args[1], false);
	return c->args[0];
}

struct go_value
tpl_fn_merge_map_with_override(struct go_call *c)
{
	go_merge(c->arena, &c->args[0], c->args[1], true);
	return c->args[0];
}
