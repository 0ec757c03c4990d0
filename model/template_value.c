// SPDX-License-Identifier: Apache-2.0
/* template_value.c: variables and services in the form in which template-renderer takes them. Runs
 * in: supervisor. */
#include "model/template_value.h"

#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/mem.h"

json_t *
template_value_variable(const struct variable *var, bool items)
{
	json_t *o = json_pack("{s:s, s:s, s:I, s:I, s:I, s:I}", "namespace", str(var->namespace),
	    "path", str(var->path), "create_index", (json_int_t)var->create_index, "modify_index",
	    (json_int_t)var->modify_index, "create_time", (json_int_t)var->create_time,
	    "modify_time", (json_int_t)var->modify_time);
	json_t *map = items ? json_object() : NULL;

	for (size_t i = 0; items && i < var->items.n; i++)
		(void)json_object_set_new(
		    map, var->items.v[i].key, json_string(str(var->items.v[i].value)));
	if (map)
		(void)json_object_set_new(o, "items", map);
	return o;
}

static int
compare_texts(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static json_t *
describe_tags(const struct strings *tags)
{
	cleanup_free const char **sorted = mem_zeroed(tags->n + 1, sizeof *sorted);
	json_t *list = json_array();

	for (size_t i = 0; i < tags->n; i++)
		sorted[i] = tags->v[i];
	qsort(sorted, tags->n, sizeof *sorted, compare_texts);
	for (size_t i = 0; i < tags->n; i++)
		(void)json_array_append_new(list, json_string(sorted[i]));
	return list;
}

json_t *
template_value_service(const struct service_registration *reg)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:o}", "id", str(reg->id),
	    "name", str(reg->service_name), "node", str(reg->node_id), "address", str(reg->address),
	    "datacenter", str(reg->datacenter), "job_id", str(reg->job_id), "alloc_id",
	    str(reg->alloc_id), "port", (json_int_t)reg->port, "tags", describe_tags(&reg->tags));
}

json_t *
template_value_service_name(const char *name, const struct strings *tags)
{
	return json_pack("{s:s, s:o}", "name", name, "tags", describe_tags(tags));
}
