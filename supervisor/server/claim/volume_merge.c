// SPDX-License-Identifier: Apache-2.0
/* volume_merge.c: what a volume becomes when it is registered again. Runs in: supervisor. */
#include "supervisor/server/claim/volume_merge.h"

#include <errno.h>
#include <string.h>

#include "common/cleanup.h"
#include "supervisor/server/claim/claims.h"

#define REDACTED "[REDACTED]"

#define SWAP(a, b)                                                                                 \
	do {                                                                                       \
		__typeof__(a) swapped = (a);                                                       \
		(a) = (b);                                                                         \
		(b) = swapped;                                                                     \
	} while (0)

static void
keep_values(const struct string_map *has, bool given, struct string_map *map)
{
	for (size_t i = 0; i < has->n; i++) {
		const char *key = has->v[i].key;

		if (!given || str_eq(string_map_get(map, key), REDACTED))
			string_map_set(map, key, has->v[i].value);
	}
}

static bool
is_redacted(const struct mount_options *options)
{
	return options && options->mount_flags.n == 1 &&
	       strcmp(options->mount_flags.v[0], REDACTED) == 0;
}

static void
keep_flags(const struct mount_options *has, struct mount_options *options)
{
	struct strings *flags = options ? &options->mount_flags : NULL;

	if (!is_redacted(options))
		return;
	strings_done(flags);
	for (size_t i = 0; has && i < has->mount_flags.n; i++)
		strings_add(flags, has->mount_flags.v[i]);
}

/* Returns whether something is lost that the request does not give again. */
static bool
stays_lost(const struct csi_volume *has, bool secrets_given, const struct csi_volume *vol)
{
	if (!has->secrets_lost || is_redacted(vol->mount_options))
		return has->secrets_lost;
	if (has->flags_sealed && vol->mount_options && vol->mount_options->mount_flags.n > 0)
		return false;
	return !secrets_given;
}

void
volume_keep_hidden(const struct csi_volume *has, bool secrets_given, struct csi_volume *vol)
{
	keep_values(&has->secrets, secrets_given, &vol->secrets);
	vol->secrets_lost = stays_lost(has, secrets_given, vol);
	vol->flags_sealed = has->flags_sealed;
	keep_flags(has->mount_options, vol->mount_options);
	if (vol->context.n == 0)
		keep_values(&has->context, false, &vol->context);
}

static int
refuse_change(const struct csi_volume *has, const char *field, struct err *e)
{
	return err_say(e, -EEXIST,
	    "volume \"%s\" exists with another %s, which cannot change: deregister it first",
	    has->id, field);
}

static int
check_texts(const struct csi_volume *has, struct csi_volume *vol, struct err *e)
{
	const struct {
		const char *name, *has;
		char **asked;
	} texts[] = {
		{ "Name", has->name, &vol->name },
		{ "ExternalID", has->external_id, &vol->external_id },
		{ "PluginID", has->plugin_id, &vol->plugin_id },
		{ "CloneID", has->clone_id, &vol->clone_id },
		{ "SnapshotID", has->snapshot_id, &vol->snapshot_id },
	};

	for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
		if (!*str(*texts[i].asked))
			str_set(texts[i].asked, texts[i].has);
		else if (!str_eq(*texts[i].asked, texts[i].has))
			return refuse_change(has, texts[i].name, e);
	}
	return 0;
}

static bool
permits_modes_in_use(const struct csi_volume *has, const struct csi_volume *vol)
{
	if (!has->access_mode && !has->attachment_mode)
		return true;
	for (size_t i = 0; i < vol->requested_capabilities.n; i++) {
		const struct csi_capability *c = &vol->requested_capabilities.v[i];

		if (c->access_mode == has->access_mode &&
		    c->attachment_mode == has->attachment_mode)
			return true;
	}
	return false;
}

static int
check_options(const struct csi_volume *has, struct csi_volume *vol, struct err *e)
{
	if (!volume_in_use(has) || has->secrets_lost)
		return 0;
	if (!vol->mount_options && has->mount_options) {
		vol->mount_options = mount_options_new();
		mount_options_copy(has->mount_options, vol->mount_options);
	}
	if (!vol->mount_options)
		return 0;
	if (!has->mount_options ||
	    !model_equal(&mount_options_type, has->mount_options, vol->mount_options))
		return err_say(e, -EBUSY,
		    "volume in use: %s: its MountOptions can only change while no allocation "
		    "claims it",
		    has->id);
	return 0;
}

/* A volume with topologies was placed by its first request. */
static int
check_topologies(const struct csi_volume *has, struct csi_volume *vol, struct err *e)
{
	const struct csi_topology_request *old = has->requested_topologies;

	if (!vol->requested_topologies && old) {
		vol->requested_topologies = csi_topology_request_new();
		csi_topology_request_copy(old, vol->requested_topologies);
	} else if (vol->requested_topologies && has->topologies.n > 0 &&
		   (!old ||
		       !model_equal(&csi_topology_request_type, old, vol->requested_topologies))) {
		return refuse_change(has, "RequestedTopologies", e);
	}
	return 0;
}

/* Moves the fields of a request from *vol to *to. */
static void
move_request(struct csi_volume *vol, struct csi_volume *to)
{
	SWAP(vol->requested_topologies, to->requested_topologies);
	SWAP(vol->mount_options, to->mount_options);
	SWAP(vol->secrets, to->secrets);
	SWAP(vol->secrets_lost, to->secrets_lost);
	SWAP(vol->context, to->context);
	SWAP(vol->requested_capabilities, to->requested_capabilities);
	if (vol->requested_capacity_min || vol->requested_capacity_max) {
		to->requested_capacity_min = vol->requested_capacity_min;
		to->requested_capacity_max = vol->requested_capacity_max;
	}
}

int
volume_merge(const struct csi_volume *has, struct csi_volume *vol, struct err *e)
{
	cleanup_done(csi_volume) struct csi_volume merged;
	int r;

	csi_volume_init(&merged);
	if ((r = check_texts(has, vol, e)) < 0 || (r = check_options(has, vol, e)) < 0 ||
	    (r = check_topologies(has, vol, e)) < 0)
		return r;
	if (vol->parameters.n > 0 && string_maps_differ(&has->parameters, &vol->parameters))
		return refuse_change(has, "Parameters", e);
	if (vol->mutable_parameters.n > 0 &&
	    string_maps_differ(&has->mutable_parameters, &vol->mutable_parameters))
		return refuse_change(has, "MutableParameters", e);
	if (!permits_modes_in_use(has, vol))
		return err_say(e, -EBUSY,
		    "volume in use: %s: its capabilities must still contain %s with %s, which is "
		    "in use",
		    has->id, csi_access_names[has->access_mode],
		    csi_attachment_names[has->attachment_mode]);
	csi_volume_copy(has, &merged);
	move_request(vol, &merged);
	SWAP(*vol, merged);
	return 0;
}
