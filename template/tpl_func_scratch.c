/* SPDX-License-Identifier: Apache-2.0 */
/* tpl_func_scratch.c: scratch, the values that a template keeps by name. Runs in:
 * template-renderer. */
#include "template/go_source.h"
#include "template/go_text.h"
#include "template/tpl_functions.h"
#include "template/tpl_run.h"

static struct go_value
fn_key(struct go_call *c)
{
	return go_bool(go_map_find(c->run->scratch.map, c->args[0]));
}

static struct go_value
fn_get(struct go_call *c)
{
	struct go_value *v = go_map_find(c->run->scratch.map, c->args[0]);

	return v ? *v : go_nothing;
}

static struct go_value
fn_set(struct go_call *c)
{
	go_map_set(c->arena, c->run->scratch, c->args[0], c->args[1]);
	return go_text("");
}

static struct go_value
fn_set_x(struct go_call *c)
{
	return go_map_find(c->run->scratch.map, c->args[0]) ? go_text("") : fn_set(c);
}

static struct go_value
set_in_map(struct go_call *c, bool overwrite)
{
	struct go_value *v = go_map_find(c->run->scratch.map, c->args[0]);
	struct text name = { .arena = c->arena };

	if (!v) {
		go_map_set(c->arena, c->run->scratch, c->args[0], go_map(c->arena, &go_type_dict));
		v = go_map_find(c->run->scratch.map, c->args[0]);
	}
	if (v->type != &go_type_dict || !v->map) {
		go_quote(&name, c->args[0].s, c->args[0].len, false);
		go_call_fail(c, "%s is not a map", name.text);
	}
	if (overwrite || !go_map_find(v->map, c->args[1]))
		go_map_set(c->arena, *v, c->args[1], c->args[2]);
	return go_text("");
}

static struct go_value
fn_map_set(struct go_call *c)
{
	return set_in_map(c, true);
}

static struct go_value
fn_map_set_x(struct go_call *c)
{
	return set_in_map(c, false);
}

static struct go_value
fn_map_values(struct go_call *c)
{
	struct go_value *map = go_map_find(c->run->scratch.map, c->args[0]), values;

	if (!map || map->type != &go_type_dict)
		return (struct go_value){ .type = &go_type_anys };
	values = go_slice(c->arena, &go_type_anys, go_map_len(*map));
	for (size_t i = 0; i < values.list.n; i++)
		values.list.items[i] = map->map->v[i].value;
	return values;
}

static const struct go_function methods[] = { { "Key", "s", fn_key }, { "Get", "s", fn_get },
	{ "Set", "sa", fn_set }, { "SetX", "sa", fn_set_x }, { "MapSet", "ssa", fn_map_set },
	{ "MapSetX", "ssa", fn_map_set_x }, { "MapValues", "s", fn_map_values } };

const struct go_type go_type_scratch = { .kind = GO_STRUCT,
	.name = "*template.Scratch",
	.methods = methods,
	.n_methods = sizeof methods / sizeof methods[0] };

/* Its own values are in the execution. */
struct go_value
tpl_fn_scratch(struct go_call *c)
{
	return (struct go_value){ .type = &go_type_scratch,
		.fields = arena_new(c->arena, struct go_value) };
}
