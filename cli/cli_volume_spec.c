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
#include "cli/cli_spec.h"
#include "cli/cli_volume.h"
#include "common/cleanup.h"
#include "hcl/hcl_tree.h"
#include "model/engine/field.h"

static void
read_texts(
    struct hcl *h, const struct cli_spec_member *m, const struct hcl_node *value, json_t *into)
{
	json_t *list;

	if (value->kind != HCL_NODE_LIST) {
		hcl_error(h, value->at, "%s: expected a list of strings, found %s", m->file,
		    hcl_node_kind_name(value->kind));
		return;
	}
	list = json_array();
	cli_spec_set(h, m, value, into, list);
	for (const struct hcl_node *node = value->first; node; node = node->next) {
		const char *text = cli_spec_text(h, m->file, node);

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
read_bytes(
    struct hcl *h, const struct cli_spec_member *m, const struct hcl_node *value, json_t *into)
{
	bool has_text = value->kind == HCL_NODE_STRING || value->kind == HCL_NODE_NUMBER;
	json_int_t bytes = !has_text ? -1 : *value->text ? parse_bytes(value->text) : 0;

	if (bytes < 0)
		hcl_error(h, value->at, "%s: expected a size such as \"10GiB\"", m->file);
	else
		cli_spec_set(h, m, value, into, json_integer(bytes));
}

/* Files for Nomad 1.0 have these outside of a capability block; later versions ignore them there.
 */
static void
warn_mode(
    struct hcl *h, const struct cli_spec_member *m, const struct hcl_node *value, json_t *into)
{
	(void)into;
	hcl_warn(h, value->key_at,
	    "%s has no effect here, as for Nomad: it belongs into a capability block", m->file);
}

/* --- blocks --- */

static void
read_capabilities(
    struct hcl *h, const struct cli_spec_member *m, const struct hcl_node *value, json_t *into)
{
	static const struct cli_spec_member members[] = {
		{ "access_mode", "AccessMode", cli_spec_read_text },
		{ "attachment_mode", "AttachmentMode", cli_spec_read_text },
	};
	static const struct cli_spec_block capability =
	    CLI_SPEC_BLOCK("a capability block", members);
	json_t *list = cli_spec_part(into, m->api, json_array);

	cli_spec_foreach(block, h, m, value)
	{
		json_t *made = json_object();

		(void)json_array_append_new(list, made);
		cli_spec_read_block(h, &capability, block, made);
	}
}

static void
warn_ignored(struct hcl *h, const struct cli_spec_member *m, struct hcl_range at, const char *which)
{
	hcl_warn(h, at, "only the %s %s block counts, as for Nomad: this one is ignored", which,
	    m->file);
}

static void
read_mount_options(
    struct hcl *h, const struct cli_spec_member *m, const struct hcl_node *value, json_t *into)
{
	static const struct cli_spec_member members[] = {
		{ "fs_type", "FSType", cli_spec_read_text },
		{ "mount_flags", "MountFlags", read_texts },
	};
	static const struct cli_spec_block options =
	    CLI_SPEC_BLOCK("a mount_options block", members);

	cli_spec_foreach(block, h, m, value)
	{
		json_t *ignored = json_object();
		bool again = json_object_get(into, m->api) != NULL;

		if (again)
			warn_ignored(h, m, block->at, "first");
		cli_spec_read_block(
		    h, &options, block, again ? ignored : cli_spec_part(into, m->api, json_object));
		json_decref(ignored);
	}
}

static void
read_segments(
    struct hcl *h, const struct cli_spec_member *m, const struct hcl_node *value, json_t *into)
{
	cli_spec_foreach(block, h, m, value)
	{
		json_t *topology = json_object();

		cli_spec_read_map(h, m, block, topology);
		if (json_object_size(json_object_get(topology, m->api)) > 0)
			(void)json_array_append(into, topology);
		json_decref(topology);
	}
}

static void
read_topology(
    struct hcl *h, const struct cli_spec_member *m, const struct hcl_node *value, json_t *into)
{
	static const struct cli_spec_member members[] = { { "segments", "Segments",
	    read_segments } };
	static const struct cli_spec_block topology = CLI_SPEC_BLOCK("a topology block", members);

	cli_spec_foreach(block, h, m, value) cli_spec_read_block(h, &topology, block, into);
}

/* Nomad takes the topologies of the first such block that has some, also where JSON has a list. */
static void
read_topologies(
    struct hcl *h, const struct cli_spec_member *m, const struct hcl_node *value, json_t *into)
{
	static const struct cli_spec_member members[] = { { "topology", NULL, read_topology } };
	const struct cli_spec_block topologies = CLI_SPEC_BLOCK(m->file, members);

	cli_spec_foreach(block, h, m, value)
	{
		json_t *list = json_array();

		cli_spec_read_block(h, &topologies, block, list);
		if (json_array_size(list) > 0 && json_object_get(into, m->api))
			warn_ignored(h, m, block->at, "first");
		else if (json_array_size(list) > 0)
			(void)json_object_set(into, m->api, list);
		json_decref(list);
	}
}

static void
read_request(
    struct hcl *h, const struct cli_spec_member *m, const struct hcl_node *value, json_t *into)
{
	static const struct cli_spec_member members[] = {
		{ "preferred", "Preferred", read_topologies },
		{ "required", "Required", read_topologies },
	};
	static const struct cli_spec_block request =
	    CLI_SPEC_BLOCK("a topology_request block", members);

	cli_spec_foreach(block, h, m, value)
	{
		json_t *made = json_object();

		if (json_object_get(into, m->api))
			hcl_warn(h, block->at,
			    "only this topology_request block counts, as for Nomad: those before "
			    "it are ignored");
		(void)json_object_set_new(into, m->api, made);
		cli_spec_read_block(h, &request, block, made);
	}
}

static void
read_type(
    struct hcl *h, const struct cli_spec_member *m, const struct hcl_node *value, json_t *into)
{
	const char *type = cli_spec_text(h, m->file, value);

	(void)into;
	if (type && strcasecmp(type, "host") == 0)
		hcl_fail(h, value->at,
		    "host volumes are not made by a command: write them into the agent's "
		    "configuration, client { host_volume \"NAME\" { path = \"…\" } }");
	if (type && strcasecmp(type, "csi") != 0)
		hcl_fail(h, value->at, "unknown type \"%s\" of a volume: expected \"csi\"", type);
}

static const struct cli_spec_member volume_members[] = {
	{ "access_mode", NULL, warn_mode },
	{ "attachment_mode", NULL, warn_mode },
	{ "capability", "RequestedCapabilities", read_capabilities },
	{ "capacity_max", "RequestedCapacityMax", read_bytes },
	{ "capacity_min", "RequestedCapacityMin", read_bytes },
	{ "clone_id", "CloneID", cli_spec_read_text },
	{ "context", "Context", cli_spec_read_map },
	{ "external_id", "ExternalID", cli_spec_read_text },
	{ "id", "ID", cli_spec_read_text },
	{ "mount_options", "MountOptions", read_mount_options },
	{ "mutable_parameters", "MutableParameters", cli_spec_read_map },
	{ "name", "Name", cli_spec_read_text },
	{ "namespace", "Namespace", cli_spec_read_text },
	{ "parameters", "Parameters", cli_spec_read_map },
	{ "plugin_id", "PluginID", cli_spec_read_text },
	{ "secrets", "Secrets", cli_spec_read_map },
	{ "snapshot_id", "SnapshotID", cli_spec_read_text },
	{ "topology_request", "RequestedTopologies", read_request },
	{ "type", NULL, read_type },
};
static const struct cli_spec_block volume_block = CLI_SPEC_BLOCK("a volume", volume_members);

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
	cli_spec_read_block(h, &volume_block, c->root, c->volume);
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
