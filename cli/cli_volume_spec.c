// SPDX-License-Identifier: Apache-2.0
/* cli_volume_spec.c: converts volume specification files to the API's form. Runs in: cli. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/cli_file.h"
#include "common/cleanup.h"

enum value_kind { VALUE_TEXT, VALUE_BYTES, VALUE_MAP, VALUE_MOUNT, VALUE_CAPABILITIES };

/* Names in the file and in the API. A block may be an object or a list with one object. */
static const struct {
	const char *file, *api;
	enum value_kind kind;
} keys[] = {
	{ "id", "ID", VALUE_TEXT },
	{ "name", "Name", VALUE_TEXT },
	{ "namespace", "Namespace", VALUE_TEXT },
	{ "plugin_id", "PluginID", VALUE_TEXT },
	{ "external_id", "ExternalID", VALUE_TEXT },
	{ "snapshot_id", "SnapshotID", VALUE_TEXT },
	{ "clone_id", "CloneID", VALUE_TEXT },
	{ "capacity_min", "RequestedCapacityMin", VALUE_BYTES },
	{ "capacity_max", "RequestedCapacityMax", VALUE_BYTES },
	{ "capability", "RequestedCapabilities", VALUE_CAPABILITIES },
	{ "mount_options", "MountOptions", VALUE_MOUNT },
	{ "secrets", "Secrets", VALUE_MAP },
	{ "parameters", "Parameters", VALUE_MAP },
	{ "context", "Context", VALUE_MAP },
};

static const char *const mount_keys[][2] = { { "fs_type", "FSType" },
	{ "mount_flags", "MountFlags" }, { NULL, NULL } };
static const char *const capability_keys[][2] = { { "access_mode", "AccessMode" },
	{ "attachment_mode", "AttachmentMode" }, { NULL, NULL } };

/* Parses "10GiB", "500MB" or "1024". Returns bytes, or -1. */
static json_int_t
parse_bytes(const char *text)
{
	static const char units[] = "KMGTPE";
	double value, factor = 1;
	const char *unit;
	char *end;

	value = strtod(text, &end);
	if (end == text || value < 0)
		return -1;
	while (*end == ' ')
		end++;
	if (*end && (unit = strchr(units, *end & ~0x20))) {
		double base = strncasecmp(end + 1, "ib", 2) == 0 ? 1024 : 1000;

		for (const char *u = units; u <= unit; u++)
			factor *= base;
		end += base == 1024 ? 2 : 1;
	}
	if (strcasecmp(end, "b") != 0 && *end != '\0')
		return -1;
	return value * factor < 9e18 ? (json_int_t)(value * factor) : -1;
}

/* Returns the object of a block; HCL converters may have wrapped it in a list. */
static json_t *
block_of(json_t *value)
{
	return json_is_array(value) && json_array_size(value) == 1 ? json_array_get(value, 0)
								   : value;
}

static json_t *
rename_keys(json_t *block, const char *const names[][2], const char *what, struct err *e)
{
	json_t *made = json_object(), *value;
	const char *key;
	size_t i;

	json_object_foreach (block, key, value) {
		for (i = 0; names[i][0] && strcmp(names[i][0], key) != 0; i++)
			;
		if (!names[i][0]) {
			json_decref(made);
			(void)err_say(e, -EINVAL, "%s has no \"%s\"", what, key);
			return NULL;
		}
		(void)json_object_set(made, names[i][1], value);
	}
	return made;
}

static json_t *
convert_capabilities(json_t *value, struct err *e)
{
	json_t *list = json_array(), *made;
	size_t n = json_is_array(value) ? json_array_size(value) : 1;

	for (size_t i = 0; i < n; i++) {
		json_t *block = json_is_array(value) ? json_array_get(value, i) : value;

		made = json_is_object(block)
			   ? rename_keys(block, capability_keys, "a capability", e)
			   : NULL;
		if (!made) {
			json_decref(list);
			if (!json_is_object(block))
				(void)err_say(e, -EINVAL, "\"capability\" is not a block");
			return NULL;
		}
		(void)json_array_append_new(list, made);
	}
	return list;
}

static json_t *
convert_value(const char *key, enum value_kind kind, json_t *value, struct err *e)
{
	json_int_t bytes;

	switch (kind) {
	case VALUE_TEXT:
		if (json_is_string(value))
			return json_incref(value);
		(void)err_say(e, -EINVAL, "\"%s\" is not a string", key);
		return NULL;
	case VALUE_BYTES:
		bytes = json_is_integer(value) ? json_integer_value(value)
					       : parse_bytes(json_string_value(value) ?: "");
		if (bytes >= 0)
			return json_integer(bytes);
		(void)err_say(e, -EINVAL, "\"%s\" is not a size like \"10GiB\"", key);
		return NULL;
	case VALUE_CAPABILITIES:
		return convert_capabilities(value, e);
	default:
		value = block_of(value);
		if (!json_is_object(value)) {
			(void)err_say(e, -EINVAL, "\"%s\" is not a block", key);
			return NULL;
		}
		return kind == VALUE_MOUNT ? rename_keys(value, mount_keys, "mount_options", e)
					   : json_incref(value);
	}
}

/* Converts one specification to a volume of the API. NULL with *e. */
static json_t *
convert_spec(const json_t *spec, struct err *e)
{
	json_t *volume = json_object(), *value, *made;
	const char *key;
	size_t i;

	json_object_foreach ((json_t *)spec, key, value) {
		if (strcmp(key, "type") == 0 && strcmp(json_string_value(value) ?: "", "csi") == 0)
			continue;
		for (i = 0; i < ELEMENTSOF(keys) && strcmp(keys[i].file, key) != 0; i++)
			;
		made = i < ELEMENTSOF(keys) ? convert_value(key, keys[i].kind, value, e) : NULL;
		if (!made) {
			if (i == ELEMENTSOF(keys))
				(void)err_say(e, -EINVAL, "a CSI volume has no \"%s\"%s", key,
				    strcmp(key, "type") == 0 ? " but \"csi\"" : "");
			json_decref(volume);
			return NULL;
		}
		(void)json_object_set_new(volume, keys[i].api, made);
	}
	return volume;
}

int
cli_volume_spec(const json_t *file, json_t **ret, struct err *e)
{
	json_t *volume;

	if (json_is_array(json_object_get(file, "Volumes"))) {
		*ret = json_incref((json_t *)file);
		return 0;
	}
	if (json_object_get(file, "ID"))
		volume = json_incref((json_t *)file);
	else if (json_object_get(file, "id"))
		volume = convert_spec(file, e);
	else
		return err_say(e, -EINVAL,
		    "the file holds no volume: it has neither \"id\" nor \"ID\" nor \"Volumes\"");
	if (!volume)
		return e->code;
	*ret = json_pack("{s:[o]}", "Volumes", volume);
	return 0;
}
