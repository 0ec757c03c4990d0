/* SPDX-License-Identifier: Apache-2.0 */
/* go_source.c: variables and services as values. Runs in: template-renderer. */
#include "template/go_source.h"

#include <string.h>

#include "template/go_function.h"
#include "template/go_time.h"

#define METHODS(list) .methods = (list), .n_methods = sizeof(list) / sizeof((list)[0])
#define FIELDS(list)  .fields = (list), .n_fields = sizeof(list) / sizeof((list)[0])

static const struct go_type nano_time, pair, pairs, var_pointer, var_meta_struct, service_struct,
    stub_struct, key_pair, key_pair_struct, health_struct, catalog_stub, catalog_stub_struct, node,
    node_struct;

static struct go_value
copy_text(struct arena *a, const char *s)
{
	return s ? go_string(arena_strndup(a, s, strlen(s)), strlen(s)) : go_text("");
}

static struct go_value
new_struct(struct arena *a, const struct go_type *type, size_t n)
{
	return (
	    struct go_value){ .type = type, .fields = arena_alloc(a, n * sizeof(struct go_value)) };
}

/* Times. */

static struct go_value
nano_text(struct arena *a, const struct go_value *v)
{
	struct go_value t = go_time(a, v->i);

	return t.type->string(a, &t);
}

static struct go_value
fn_nano_time(struct go_call *c)
{
	return go_time(c->arena, c->self.i);
}

/* String() of any type that has one. */
static struct go_value
fn_string(struct go_call *c)
{
	return c->self.type->string(c->arena, &c->self);
}

static const struct go_function nano_methods[] = { { "Time", "", fn_nano_time },
	{ "String", "", fn_string } };
static const struct go_type nano_time = {
	.kind = GO_INT, .name = "dependency.nanoTime", METHODS(nano_methods), .string = nano_text
};

/* Metadata of variables: {Namespace, Path, CreateIndex, ModifyIndex, CreateTime, ModifyTime}. */

enum { META_NAMESPACE, META_PATH, META_FIELDS = 6 };

static void
set_metadata(struct arena *a, struct go_value *fields, const struct template_variable *v)
{
	fields[META_NAMESPACE] = copy_text(a, v->ns);
	fields[META_PATH] = copy_text(a, v->path);
	fields[2] = go_uint64(v->create_index);
	fields[3] = go_uint64(v->modify_index);
	fields[4] = (struct go_value){ .type = &nano_time, .i = v->create_time };
	fields[5] = (struct go_value){ .type = &nano_time, .i = v->modify_time };
}

struct go_value
go_var_meta(struct arena *a, const struct template_variable *v)
{
	struct go_value meta = new_struct(a, &go_type_var_meta, META_FIELDS);

	set_metadata(a, meta.fields, v);
	return meta;
}

static struct go_value
meta_text(struct arena *a, const struct go_value *v)
{
	(void)a;
	return v->fields[META_PATH];
}

#define META                                                                                       \
	{ "Namespace", &go_type_string, false }, { "Path", &go_type_string, false },               \
	    { "CreateIndex", &go_type_uint64, false }, { "ModifyIndex", &go_type_uint64, false },  \
	    { "CreateTime", &nano_time, false },                                                   \
	{                                                                                          \
		"ModifyTime", &nano_time, false                                                    \
	}

static const struct go_field meta_fields[] = { META };
static const struct go_function meta_methods[] = { { "String", "", fn_string } };
static const struct go_type var_meta_struct = { .kind = GO_STRUCT,
	.name = "dependency.NomadVarMeta",
	FIELDS(meta_fields),
	METHODS(meta_methods),
	.string = meta_text };
const struct go_type go_type_var_meta = { .kind = GO_POINTER,
	.name = "*dependency.NomadVarMeta",
	.elem = &var_meta_struct,
	METHODS(meta_methods),
	.string = meta_text };
const struct go_type go_type_var_metas = {
	.kind = GO_SLICE, .name = "[]*dependency.NomadVarMeta", .elem = &go_type_var_meta
};

/* Variables: their metadata, and Items. */

static struct go_value
metadata_of(struct arena *a, struct go_value var)
{
	struct go_value meta = new_struct(a, &go_type_var_meta, META_FIELDS);

	memcpy(meta.fields, var.fields, META_FIELDS * sizeof *meta.fields);
	return meta;
}

static struct go_value
fn_var_metadata(struct go_call *c)
{
	return metadata_of(c->arena, c->self);
}

static const struct go_field var_fields[] = { META, { "Items", &go_type_var_items, false },
	{ "nVar", &go_type_any, true } };
static const struct go_function var_methods[] = { { "Metadata", "", fn_var_metadata } };
const struct go_type go_type_var = { .kind = GO_STRUCT,
	.name = "dependency.NomadVariable",
	FIELDS(var_fields),
	METHODS(var_methods) };
static const struct go_type var_pointer = { .kind = GO_POINTER,
	.name = "*dependency.NomadVariable",
	.elem = &go_type_var,
	METHODS(var_methods) };

/* An item: {Key, Value, parent}. */

enum { ITEM_KEY, ITEM_VALUE, ITEM_PARENT };

static struct go_value
item_text(struct arena *a, const struct go_value *v)
{
	(void)a;
	return v->fields[ITEM_VALUE];
}

static struct go_value
fn_item_parent(struct go_call *c)
{
	return c->self.fields[ITEM_PARENT];
}

static struct go_value
fn_item_metadata(struct go_call *c)
{
	struct go_value parent = c->self.fields[ITEM_PARENT];

	if (!parent.fields)
		go_call_fail(c, "runtime error: invalid memory address or nil pointer dereference");
	return metadata_of(c->arena, parent);
}

static const struct go_field item_fields[] = { { "Key", &go_type_string, false },
	{ "Value", &go_type_string, false }, { "parent", &var_pointer, true } };
static const struct go_function item_methods[] = { { "String", "", fn_string },
	{ "Parent", "", fn_item_parent }, { "Metadata", "", fn_item_metadata } };
const struct go_type go_type_var_item = { .kind = GO_STRUCT,
	.name = "dependency.NomadVarItem",
	FIELDS(item_fields),
	METHODS(item_methods),
	.string = item_text };

/* The items of a variable, a map. */

static struct go_value
fn_items_keys(struct go_call *c)
{
	size_t n = go_map_len(c->self);
	struct go_value keys = go_slice(c->arena, &go_type_strings, n);

	for (size_t i = 0; i < n; i++)
		keys.list.items[i] = c->self.map->v[i].key;
	return keys;
}

static struct go_value
fn_items_values(struct go_call *c)
{
	size_t n = go_map_len(c->self);
	struct go_value values = go_slice(c->arena, &go_type_strings, n);

	for (size_t i = 0; i < n; i++)
		values.list.items[i] = c->self.map->v[i].value.fields[ITEM_VALUE];
	return values;
}

static const struct go_field pair_fields[] = { { "K", &go_type_string, false },
	{ "V", &go_type_string, false } };
static const struct go_type pair = {
	.kind = GO_STRUCT, .name = "struct { K string; V string }", FIELDS(pair_fields)
};
static const struct go_type pairs = {
	.kind = GO_SLICE, .name = "[]struct { K string; V string }", .elem = &pair
};

static struct go_value
fn_items_tuples(struct go_call *c)
{
	size_t n = go_map_len(c->self);
	struct go_value tuples = go_slice(c->arena, &pairs, n);

	for (size_t i = 0; i < n; i++)
		memcpy(tuples.list.items[i].fields, c->self.map->v[i].value.fields,
		    2 * sizeof(struct go_value));
	return tuples;
}

static struct go_value
fn_items_map(struct go_call *c)
{
	size_t n = go_map_len(c->self);
	struct go_value map = { .type = &go_type_dict };

	if (n > 0)
		map = go_map(c->arena, &go_type_dict);
	for (size_t i = 0; i < n; i++)
		go_map_set(c->arena, map, c->self.map->v[i].key,
		    c->self.map->v[i].value.fields[ITEM_VALUE]);
	return map;
}

static struct go_value
fn_items_parent(struct go_call *c)
{
	return go_map_len(c->self) > 0 ? c->self.map->v[0].value.fields[ITEM_PARENT]
				       : (struct go_value){ .type = &var_pointer };
}

static struct go_value
fn_items_metadata(struct go_call *c)
{
	return go_map_len(c->self) > 0
		   ? metadata_of(c->arena, c->self.map->v[0].value.fields[ITEM_PARENT])
		   : (struct go_value){ .type = &go_type_var_meta };
}

static const struct go_function items_methods[] = { { "Keys", "", fn_items_keys },
	{ "Values", "", fn_items_values }, { "Tuples", "", fn_items_tuples },
	{ "Metadata", "", fn_items_metadata }, { "Parent", "", fn_items_parent },
	{ "ItemsMap", "", fn_items_map } };
const struct go_type go_type_var_items = { .kind = GO_MAP,
	.name = "dependency.NomadVarItems",
	.key = &go_type_string,
	.elem = &go_type_var_item,
	METHODS(items_methods) };

struct go_value
go_var_items(struct arena *a, const struct template_variable *v)
{
	struct go_value items = go_map(a, &go_type_var_items);
	struct go_value var = new_struct(a, &var_pointer, META_FIELDS + 2), item;

	set_metadata(a, var.fields, v);
	var.fields[META_FIELDS] = items;
	var.fields[META_FIELDS + 1] = var; /* it only has to be a pointer */
	for (size_t i = 0; i < v->n_items; i++) {
		item = new_struct(a, &go_type_var_item, 3);
		item.fields[ITEM_KEY] = copy_text(a, v->keys[i]);
		item.fields[ITEM_VALUE] = copy_text(a, v->values[i]);
		item.fields[ITEM_PARENT] = var;
		go_map_set(a, items, item.fields[ITEM_KEY], item);
	}
	return items;
}

/* Services. */

const struct go_type go_type_tags = { .kind = GO_SLICE,
	.name = "dependency.ServiceTags",
	.elem = &go_type_string,
	.base = &go_type_strings };

static struct go_value
tags(struct arena *a, const struct template_service *s)
{
	struct go_value v = go_slice(a, &go_type_tags, s->n_tags);

	for (size_t i = 0; i < s->n_tags; i++)
		v.list.items[i] = copy_text(a, s->tags[i]);
	return v;
}

static const struct go_field service_fields[] = { { "ID", &go_type_string, false },
	{ "Name", &go_type_string, false }, { "Node", &go_type_string, false },
	{ "Address", &go_type_string, false }, { "Port", &go_type_int, false },
	{ "Datacenter", &go_type_string, false }, { "Tags", &go_type_tags, false },
	{ "JobID", &go_type_string, false }, { "AllocID", &go_type_string, false } };
static const struct go_type service_struct = {
	.kind = GO_STRUCT, .name = "dependency.NomadService", FIELDS(service_fields)
};
const struct go_type go_type_service = {
	.kind = GO_POINTER, .name = "*dependency.NomadService", .elem = &service_struct
};
const struct go_type go_type_services = {
	.kind = GO_SLICE, .name = "[]*dependency.NomadService", .elem = &go_type_service
};

struct go_value
go_service(struct arena *a, const struct template_service *s)
{
	struct go_value v = new_struct(a, &go_type_service, 9);

	v.fields[0] = copy_text(a, s->id);
	v.fields[1] = copy_text(a, s->name);
	v.fields[2] = copy_text(a, s->node);
	v.fields[3] = copy_text(a, s->address);
	v.fields[4] = go_int(s->port);
	v.fields[5] = copy_text(a, s->datacenter);
	v.fields[6] = tags(a, s);
	v.fields[7] = copy_text(a, s->job_id);
	v.fields[8] = copy_text(a, s->alloc_id);
	return v;
}

static const struct go_field stub_fields[] = { { "Name", &go_type_string, false },
	{ "Tags", &go_type_tags, false } };
static const struct go_type stub_struct = {
	.kind = GO_STRUCT, .name = "dependency.NomadServicesSnippet", FIELDS(stub_fields)
};
const struct go_type go_type_service_stub = {
	.kind = GO_POINTER, .name = "*dependency.NomadServicesSnippet", .elem = &stub_struct
};
const struct go_type go_type_service_stubs = { .kind = GO_SLICE,
	.name = "[]*dependency.NomadServicesSnippet",
	.elem = &go_type_service_stub };

struct go_value
go_service_stub(struct arena *a, const struct template_service *s)
{
	struct go_value v = new_struct(a, &go_type_service_stub, 2);

	v.fields[0] = copy_text(a, s->name);
	v.fields[1] = tags(a, s);
	return v;
}

/* Of Consul, whose lists are empty. */

#define LIST(symbol, text, element, structure)                                                     \
	static const struct go_type structure = { .kind = GO_STRUCT, .name = "dependency." text }; \
	static const struct go_type element = {                                                    \
		.kind = GO_POINTER, .name = "*dependency." text, .elem = &(structure)              \
	};                                                                                         \
	const struct go_type symbol = {                                                            \
		.kind = GO_SLICE, .name = "[]*dependency." text, .elem = &(element)                \
	}

LIST(go_type_key_pairs, "KeyPair", key_pair, key_pair_struct);
LIST(go_type_catalog_stubs, "CatalogSnippet", catalog_stub, catalog_stub_struct);
LIST(go_type_nodes, "Node", node, node_struct);
static const struct go_type health_struct = { .kind = GO_STRUCT,
	.name = "dependency.HealthService" };
const struct go_type go_type_health_service = {
	.kind = GO_POINTER, .name = "*dependency.HealthService", .elem = &health_struct
};
const struct go_type go_type_health_services = {
	.kind = GO_SLICE, .name = "[]*dependency.HealthService", .elem = &go_type_health_service
};
