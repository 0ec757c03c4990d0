// SPDX-License-Identifier: Apache-2.0
/* cli_volume_spec.c: reads volume specifications, in HCL or as JSON, as Nomad's command reads them.
 * Runs in: cli. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/cli_file.h"
#include "cli/cli_volume.h"
#include "common/cleanup.h"
#include "common/similar.h"
#include "hcl/hcl_tree.h"
#include "model/engine/field.h"

struct member;

/* Reads a member's value into an object or list of the API. Adds problems to h. */
typedef void read_fn(
    struct hcl *h, const struct member *m, const struct hcl_node *value, json_t *into);

struct member {
	const char *file, *api; /* its names */
	read_fn *read;
};

/* The members that a block may have. */
struct block {
	const char *name; /* for sentences: "a capability block" */
	const struct member *members;
	size_t n;
};

#define BLOCK(text, table)                                                                         \
	{                                                                                          \
		.name = text, .members = table, .n = ELEMENTSOF(table)                             \
	}

/* --- members --- */

static void
refuse_member(struct hcl *h, const struct block *block, const struct hcl_node *node)
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

static void
read_block(struct hcl *h, const struct block *block, const struct hcl_node *object, json_t *into)
{
	for (const struct hcl_node *node = object->first; node; node = node->next) {
		const struct member *m = block->members;

		while (m < block->members + block->n && strcmp(m->file, node->key) != 0)
			m++;
		if (m < block->members + block->n)
			m->read(h, m, node, into);
		else
			refuse_member(h, block, node);
	}
}

/* The block after this one; in JSON a list of objects is as many blocks. */
static const struct hcl_node *
next_block(const struct hcl_node *value, const struct hcl_node *block)
{
	return value->kind == HCL_NODE_LIST ? block->next : NULL;
}

/* Returns the first block of a member, or NULL: there is none, or a problem was added. */
static const struct hcl_node *
first_block(struct hcl *h, const struct member *m, const struct hcl_node *value)
{
	const struct hcl_node *first = value->kind == HCL_NODE_LIST ? value->first : value;

	for (const struct hcl_node *node = first; node; node = next_block(value, node))
		if (node->kind != HCL_NODE_OBJECT) {
			hcl_error(h, node->at, "%s: expected a block, found %s", m->file,
			    hcl_node_kind_name(node->kind));
			return NULL;
		}
	return first;
}

#define block_foreach(block, h, m, value)                                                          \
	for (const struct hcl_node *block = first_block(h, m, value); block;                       \
	     block = next_block(value, block))

/* Returns the member of the API, made as an empty object or list if it is new. */
static json_t *
part_of(json_t *into, const char *name, json_t *(*make)(void))
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

/* Returns the text of a scalar; NULL after adding a problem. true is "1", as for Nomad. */
static const char *
scalar_text(struct hcl *h, const char *name, const struct hcl_node *value)
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

static void
set_once(
    struct hcl *h, const struct member *m, const struct hcl_node *value, json_t *into, json_t *made)
{
	if (json_object_get(into, m->api))
		hcl_error(h, value->key_at, "%s is set twice", m->file);
	(void)json_object_set_new(into, m->api, made);
}

static void
read_text(struct hcl *h, const struct member *m, const struct hcl_node *value, json_t *into)
{
	const char *text = scalar_text(h, m->file, value);

	if (text)
		set_once(h, m, value, into, json_string(text));
}

static void
read_texts(struct hcl *h, const struct member *m, const struct hcl_node *value, json_t *into)
{
	json_t *list;

	if (value->kind != HCL_NODE_LIST) {
		hcl_error(h, value->at, "%s: expected a list of strings, found %s", m->file,
		    hcl_node_kind_name(value->kind));
		return;
	}
	list = json_array();
	set_once(h, m, value, into, list);
	for (const struct hcl_node *node = value->first; node; node = node->next) {
		const char *text = scalar_text(h, m->file, node);

		if (text)
			(void)json_array_append_new(list, json_string(text));
	}
}

/* Returns the bytes of a unit such as "KiB", "k" or "" in any case; 0 if it is none. */
static double
unit_bytes(const char *unit, size_t len)
{
	static const char letters[] = "kmgtpe";
	const char *letter = len > 0 ? strchr(letters, tolower((unsigned char)*unit)) : NULL;
	double base = 1000, bytes = 1;

	if (letter) {
		unit++;
		len--;
		if (len > 0 && (*unit | 0x20) == 'i') {
			base = 1024;
			unit++;
			len--;
		}
		for (const char *l = letters; l <= letter; l++)
			bytes *= base;
	}
	return len == 0 || (len == 1 && (*unit | 0x20) == 'b') ? bytes : 0;
}

/* Parses "10GiB", "1.5 GB" or "1,024". Returns bytes, or -1. */
static json_int_t
parse_bytes(const char *text)
{
	char digits[64], *end;
	const char *unit = text;
	size_t n = 0, len;
	double bytes;

	for (; *unit && strchr("0123456789.,", *unit); unit++)
		if (*unit != ',' && n < sizeof digits - 1)
			digits[n++] = *unit;
	digits[n] = '\0';
	bytes = strtod(digits, &end);
	if (n == 0 || n == sizeof digits - 1 || *end)
		return -1;
	unit += strspn(unit, " ");
	for (len = strlen(unit); len > 0 && unit[len - 1] == ' ';)
		len--;
	if (unit_bytes(unit, len) == 0)
		return -1;
	bytes *= unit_bytes(unit, len);
	return bytes < 9.2e18 ? (json_int_t)bytes : -1;
}

static void
read_bytes(struct hcl *h, const struct member *m, const struct hcl_node *value, json_t *into)
{
	bool has_text = value->kind == HCL_NODE_STRING || value->kind == HCL_NODE_NUMBER;
	json_int_t bytes = !has_text ? -1 : *value->text ? parse_bytes(value->text) : 0;

	if (bytes < 0)
		hcl_error(h, value->at, "%s: expected a size such as \"10GiB\"", m->file);
	else
		set_once(h, m, value, into, json_integer(bytes));
}

/* Files for Nomad 1.0 have these outside of a capability block; later versions ignore them there.
 */
static void
warn_mode(struct hcl *h, const struct member *m, const struct hcl_node *value, json_t *into)
{
	(void)into;
	hcl_warn(h, value->key_at,
	    "%s has no effect here, as for Nomad: it belongs into a capability block", m->file);
}

/* --- blocks --- */

static void
read_map(struct hcl *h, const struct member *m, const struct hcl_node *value, json_t *into)
{
	json_t *map = part_of(into, m->api, json_object);

	block_foreach (block, h, m, value) {
		for (const struct hcl_node *node = block->first; node; node = node->next) {
			const char *text = scalar_text(h, node->key, node);

			if (text)
				(void)json_object_set_new(map, node->key, json_string(text));
		}
	}
}

static void
read_capabilities(struct hcl *h, const struct member *m, const struct hcl_node *value, json_t *into)
{
	static const struct member members[] = {
		{ "access_mode", "AccessMode", read_text },
		{ "attachment_mode", "AttachmentMode", read_text },
	};
	static const struct block capability = BLOCK("a capability block", members);
	json_t *list = part_of(into, m->api, json_array);

	block_foreach (block, h, m, value) {
		json_t *made = json_object();

		(void)json_array_append_new(list, made);
		read_block(h, &capability, block, made);
	}
}

static void
warn_ignored(struct hcl *h, const struct member *m, struct hcl_range at, const char *which)
{
	hcl_warn(h, at, "only the %s %s block counts, as for Nomad: this one is ignored", which,
	    m->file);
}

static void
read_mount_options(
    struct hcl *h, const struct member *m, const struct hcl_node *value, json_t *into)
{
	static const struct member members[] = {
		{ "fs_type", "FSType", read_text },
		{ "mount_flags", "MountFlags", read_texts },
	};
	static const struct block options = BLOCK("a mount_options block", members);

	block_foreach (block, h, m, value) {
		json_t *ignored = json_object();
		bool again = json_object_get(into, m->api) != NULL;

		if (again)
			warn_ignored(h, m, block->at, "first");
		read_block(
		    h, &options, block, again ? ignored : part_of(into, m->api, json_object));
		json_decref(ignored);
	}
}

static void
read_segments(struct hcl *h, const struct member *m, const struct hcl_node *value, json_t *into)
{
	block_foreach (block, h, m, value) {
		json_t *topology = json_object();

		read_map(h, m, block, topology);
		if (json_object_size(json_object_get(topology, m->api)) > 0)
			(void)json_array_append(into, topology);
		json_decref(topology);
	}
}

static void
read_topology(struct hcl *h, const struct member *m, const struct hcl_node *value, json_t *into)
{
	static const struct member members[] = { { "segments", "Segments", read_segments } };
	static const struct block topology = BLOCK("a topology block", members);

	block_foreach (block, h, m, value)
		read_block(h, &topology, block, into);
}

/* Nomad takes the topologies of the first such block that has some, also where JSON has a list. */
static void
read_topologies(struct hcl *h, const struct member *m, const struct hcl_node *value, json_t *into)
{
	static const struct member members[] = { { "topology", NULL, read_topology } };
	const struct block topologies = BLOCK(m->file, members);

	block_foreach (block, h, m, value) {
		json_t *list = json_array();

		read_block(h, &topologies, block, list);
		if (json_array_size(list) > 0 && json_object_get(into, m->api))
			warn_ignored(h, m, block->at, "first");
		else if (json_array_size(list) > 0)
			(void)json_object_set(into, m->api, list);
		json_decref(list);
	}
}

static void
read_request(struct hcl *h, const struct member *m, const struct hcl_node *value, json_t *into)
{
	static const struct member members[] = {
		{ "preferred", "Preferred", read_topologies },
		{ "required", "Required", read_topologies },
	};
	static const struct block request = BLOCK("a topology_request block", members);

	block_foreach (block, h, m, value) {
		json_t *made = json_object();

		if (json_object_get(into, m->api))
			hcl_warn(h, block->at,
			    "only this topology_request block counts, as for Nomad: those before "
			    "it are ignored");
		(void)json_object_set_new(into, m->api, made);
		read_block(h, &request, block, made);
	}
}

static void
read_type(struct hcl *h, const struct member *m, const struct hcl_node *value, json_t *into)
{
	const char *type = scalar_text(h, m->file, value);

	(void)into;
	if (type && strcasecmp(type, "host") == 0)
		hcl_fail(h, value->at,
		    "host volumes are not made by a command: write them into the agent's "
		    "configuration, client { host_volume \"NAME\" { path = \"…\" } }");
	if (type && strcasecmp(type, "csi") != 0)
		hcl_fail(h, value->at, "unknown type \"%s\" of a volume: expected \"csi\"", type);
}

static const struct member volume_members[] = {
	{ "access_mode", NULL, warn_mode },
	{ "attachment_mode", NULL, warn_mode },
	{ "capability", "RequestedCapabilities", read_capabilities },
	{ "capacity_max", "RequestedCapacityMax", read_bytes },
	{ "capacity_min", "RequestedCapacityMin", read_bytes },
	{ "clone_id", "CloneID", read_text },
	{ "context", "Context", read_map },
	{ "external_id", "ExternalID", read_text },
	{ "id", "ID", read_text },
	{ "mount_options", "MountOptions", read_mount_options },
	{ "mutable_parameters", "MutableParameters", read_map },
	{ "name", "Name", read_text },
	{ "namespace", "Namespace", read_text },
	{ "parameters", "Parameters", read_map },
	{ "plugin_id", "PluginID", read_text },
	{ "secrets", "Secrets", read_map },
	{ "snapshot_id", "SnapshotID", read_text },
	{ "topology_request", "RequestedTopologies", read_request },
	{ "type", NULL, read_type },
};
static const struct block volume_block = BLOCK("a volume", volume_members);

struct volume_call {
	const struct hcl_node *root;
	json_t *volume;
};

/* The type first: members of another type are unknown. */
static void
read_volume(struct hcl *h, void *arg)
{
	struct volume_call *c = arg;

	for (const struct hcl_node *node = c->root->first; node; node = node->next)
		if (strcmp(node->key, "type") == 0)
			read_type(h, &volume_members[ELEMENTSOF(volume_members) - 1], node, NULL);
	read_block(h, &volume_block, c->root, c->volume);
	if (!json_object_get(c->volume, "ID"))
		hcl_error(h, c->root->at, "the file holds no volume: it has no \"id\"");
}

static int
read_spec(const struct cli_file *file, json_t **ret, struct err *e)
{
	struct hcl *h = hcl_new(&hcl_tree_limits);
	struct hcl_source source = { file->name, file->text, file->len };
	struct volume_call c = { hcl_tree_parse_literal(h, &source), json_object() };
	int r;

	if (c.root)
		(void)hcl_try(h, read_volume, &c);
	r = cli_file_problems(file, h, e);
	hcl_free(h);
	if (r == 0)
		*ret = json_pack("{s:[O]}", "Volumes", c.volume);
	json_decref(c.volume);
	return r;
}

/* Leaves the volumes of a file that has the API's form in *ret; NULL if it has another form. */
static void
read_api_form(const struct cli_file *file, json_t **ret)
{
	cleanup_json json_t *value = json_loadb(file->text, file->len, 0, NULL);

	if (json_is_array(json_object_get(value, "Volumes")))
		*ret = json_incref(value);
	else if (json_object_get(value, "ID"))
		*ret = json_pack("{s:[O]}", "Volumes", value);
}

int
cli_volume_read(const char *path, json_t **ret, struct err *e)
{
	struct cli_file file = { 0 };
	int r = cli_file_open_filled(path, &file, e);

	*ret = NULL;
	if (r == 0 && cli_file_is_json(&file))
		read_api_form(&file, ret);
	if (r == 0 && !*ret)
		r = read_spec(&file, ret, e);
	cli_file_done(&file);
	return r;
}
