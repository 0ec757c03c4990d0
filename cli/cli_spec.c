// SPDX-License-Identifier: Apache-2.0
/* cli_spec.c: reads specifications of objects, as Nomad's command reads them. Runs in: cli. */
#include "cli/cli_spec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "common/similar.h"

/* --- members --- */

static void
refuse_member(struct hcl *h, const struct cli_spec_block *block, const struct hcl_node *node)
{
	const char *names[20], *similar;
	size_t n = 0;

	while (n < block->n && n < ELEMENTSOF(names)) {
		names[n] = block->members[n].file;
		n++;
	}
	similar = similar_name(node->key, names, n);
	hcl_error(h, node->key_at, "%s has no \"%s\"%s%s%s", block->name, node->key,
	    similar ? ": did you mean \"" : "", similar ?: "", similar ? "\"?" : "");
}

void
cli_spec_read_block(
    struct hcl *h, const struct cli_spec_block *block, const struct hcl_node *object, json_t *into)
{
	for (const struct hcl_node *node = object->first; node; node = node->next) {
		const struct cli_spec_member *m = block->members;

		while (m < block->members + block->n && strcmp(m->file, node->key) != 0)
			m++;
		if (m < block->members + block->n)
			m->read(h, m, node, into);
		else
			refuse_member(h, block, node);
	}
}

const struct hcl_node *
cli_spec_next_block(const struct hcl_node *value, const struct hcl_node *block)
{
	return value->kind == HCL_NODE_LIST ? block->next : NULL;
}

const struct hcl_node *
cli_spec_first_block(struct hcl *h, const struct cli_spec_member *m, const struct hcl_node *value)
{
	const struct hcl_node *first = value->kind == HCL_NODE_LIST ? value->first : value;

	for (const struct hcl_node *node = first; node; node = cli_spec_next_block(value, node))
		if (node->kind != HCL_NODE_OBJECT) {
			hcl_error(h, node->at, "%s: expected a block, found %s", m->file,
			    hcl_node_kind_name(node->kind));
			return NULL;
		}
	return first;
}

json_t *
cli_spec_part(json_t *into, const char *name, json_t *(*make)(void))
{
	if (!json_object_get(into, name))
		(void)json_object_set_new(into, name, make());
	return json_object_get(into, name);
}

/* --- scalar values --- */

/* Returns a number as a text without exponent, as short as it can be. */
static const char *
number_text(struct hcl *h, const char *text)
{
	double value = strtod(text, NULL);
	char fixed[512];

	if (!strpbrk(text, ".eE"))
		return text;
	for (int digits = 0; digits < 100; digits++) {
		(void)snprintf(fixed, sizeof fixed, "%.*f", digits, value);
		if (strtod(fixed, NULL) == value)
			break;
	}
	return hcl_strndup(h, fixed, strlen(fixed));
}

const char *
cli_spec_text(struct hcl *h, const char *name, const struct hcl_node *value)
{
	switch (value->kind) {
	case HCL_NODE_STRING:
		return value->text;
	case HCL_NODE_NUMBER:
		return number_text(h, value->text);
	case HCL_NODE_BOOL:
		return strcmp(value->text, "true") == 0 ? "1" : "0";
	default:
		hcl_error(h, value->at, "%s: expected a string, found %s", name,
		    hcl_node_kind_name(value->kind));
		return NULL;
	}
}

void
cli_spec_set(struct hcl *h, const struct cli_spec_member *m, const struct hcl_node *value,
    json_t *into, json_t *made)
{
	if (json_object_get(into, m->api))
		hcl_error(h, value->key_at, "%s is set twice", m->file);
	(void)json_object_set_new(into, m->api, made);
}

void
cli_spec_read_text(
    struct hcl *h, const struct cli_spec_member *m, const struct hcl_node *value, json_t *into)
{
	const char *text = cli_spec_text(h, m->file, value);

	if (text)
		cli_spec_set(h, m, value, into, json_string(text));
}

void
cli_spec_read_map(
    struct hcl *h, const struct cli_spec_member *m, const struct hcl_node *value, json_t *into)
{
	json_t *map = cli_spec_part(into, m->api, json_object);

	cli_spec_foreach(block, h, m, value)
	{
		for (const struct hcl_node *node = block->first; node; node = node->next) {
			const char *text = cli_spec_text(h, node->key, node);

			if (text)
				(void)json_object_set_new(map, node->key, json_string(text));
		}
	}
}
