// SPDX-License-Identifier: Apache-2.0
/* call_args.c: the parts that CSI requests have in common, made from volumes and mounts. Runs in:
 * supervisor. */
#include "supervisor/volume/call_args.h"

#include <errno.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "proto/csi_limits.h"

/* Limit of the maps of a volume together; the rest is for ids, paths, capabilities and topologies.
 */
#define MAPS_BYTES_MAX (CSI_REQ_BYTES_MAX - 64 * 1024)
/* Tags and lengths of an entry of a map in a request. */
#define ENTRY_BYTES 16

struct call_part {
	struct call_part *next;
	alignas(max_align_t) char data[];
};

/* Returns n zeroed objects that are freed with *a. */
static void *
new_part(struct call_args *a, size_t n, size_t size)
{
	struct call_part *part = mem_zeroed(1, sizeof *part + n * size);

	part->next = a->parts;
	a->parts = part;
	return part->data;
}

void
call_args_done(struct call_args *a)
{
	while (a->parts) {
		struct call_part *part = a->parts;

		a->parts = part->next;
		free(part);
	}
}

static size_t
map_bytes(const struct string_map *m)
{
	size_t bytes = 0;

	for (size_t i = 0; i < m->n; i++)
		bytes += ENTRY_BYTES + strlen(str(m->v[i].key)) + strlen(str(m->v[i].value));
	return bytes;
}

int
call_args_check_secrets(const struct csi_volume *vol, struct err *e)
{
	const char *what = vol->flags_sealed ? "mount flags" : "secrets";

	if (!vol->secrets_lost)
		return 0;
	return err_say(e, -EKEYREJECTED,
	    "volume \"%.140s\": its %s cannot be read, because state/seal.key is not the key "
	    "they were encrypted with: bring that file back and restart the agent, or register the "
	    "volume again with its %s",
	    str(vol->id), what, what);
}

int
call_args_check(const struct csi_volume *vol, struct err *e)
{
	size_t bytes = map_bytes(&vol->secrets) + map_bytes(&vol->parameters) +
		       map_bytes(&vol->mutable_parameters) + map_bytes(&vol->context) +
		       map_bytes(&vol->publish_context);

	if (bytes <= MAPS_BYTES_MAX)
		return 0;
	return err_say(e, -EINVAL,
	    "volume \"%.140s\": its secrets, parameters and contexts have %zu bytes together, and "
	    "a "
	    "request to a plugin can have %d of them",
	    str(vol->id), bytes, MAPS_BYTES_MAX);
}

size_t
call_args_map(struct call_args *a, const struct string_map *m, Csi__V1__StringEntry ***ret)
{
	Csi__V1__StringEntry *entries = new_part(a, m->n, sizeof *entries);

	*ret = new_part(a, m->n, sizeof **ret);
	for (size_t i = 0; i < m->n; i++) {
		csi__v1__string_entry__init(&entries[i]);
		entries[i].key = m->v[i].key;
		entries[i].value = (char *)(uintptr_t)str(m->v[i].value);
		(*ret)[i] = &entries[i];
	}
	return m->n;
}

static Csi__V1__VolumeCapability__AccessMode__Mode
access_mode(enum csi_access access)
{
	switch (access) {
	case CSI_SINGLE_NODE_READER:
		return CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__SINGLE_NODE_READER_ONLY;
	case CSI_SINGLE_NODE_WRITER:
		return CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__SINGLE_NODE_WRITER;
	case CSI_MULTI_NODE_READER:
		return CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__MULTI_NODE_READER_ONLY;
	case CSI_MULTI_NODE_SINGLE_WRITER:
		return CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__MULTI_NODE_SINGLE_WRITER;
	case CSI_MULTI_NODE_MULTI_WRITER:
		return CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__MULTI_NODE_MULTI_WRITER;
	case CSI_ACCESS_NONE:
	case HOST_SINGLE_WRITER:
	case HOST_MULTI_WRITER:
		break;
	}
	return CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__UNKNOWN;
}

Csi__V1__VolumeCapability *
call_args_capability(
    struct call_args *a, const struct csi_capability *cap, const struct mount_options *options)
{
	Csi__V1__VolumeCapability *c = new_part(a, 1, sizeof *c);
	Csi__V1__VolumeCapability__MountVolume *mount;

	csi__v1__volume_capability__init(c);
	c->access_mode = new_part(a, 1, sizeof *c->access_mode);
	csi__v1__volume_capability__access_mode__init(c->access_mode);
	c->access_mode->mode = access_mode(cap->access_mode);
	if (cap->attachment_mode == CSI_BLOCK_DEVICE) {
		c->access_type_case = CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_BLOCK;
		c->block = new_part(a, 1, sizeof *c->block);
		csi__v1__volume_capability__block_volume__init(c->block);
		return c;
	}
	mount = new_part(a, 1, sizeof *mount);
	csi__v1__volume_capability__mount_volume__init(mount);
	if (options && options->fs_type)
		mount->fs_type = options->fs_type;
	if (options) {
		mount->mount_flags = options->mount_flags.v;
		mount->n_mount_flags = options->mount_flags.n;
	}
	c->access_type_case = CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_MOUNT;
	c->mount = mount;
	return c;
}

size_t
call_args_capabilities(
    struct call_args *a, const struct csi_volume *vol, Csi__V1__VolumeCapability ***ret)
{
	size_t n = vol->requested_capabilities.n;

	*ret = new_part(a, n, sizeof **ret);
	for (size_t i = 0; i < n; i++)
		(*ret)[i] =
		    call_args_capability(a, &vol->requested_capabilities.v[i], vol->mount_options);
	return n;
}

static Csi__V1__Topology **
make_topologies(struct call_args *a, const struct csi_topology *from, size_t n)
{
	Csi__V1__Topology *made = new_part(a, n, sizeof *made);
	Csi__V1__Topology **list = new_part(a, n, sizeof *list);

	for (size_t i = 0; i < n; i++) {
		csi__v1__topology__init(&made[i]);
		made[i].n_segments = call_args_map(a, &from[i].segments, &made[i].segments);
		list[i] = &made[i];
	}
	return list;
}

Csi__V1__TopologyRequirement *
call_args_topologies(struct call_args *a, const struct csi_topology_request *request)
{
	Csi__V1__TopologyRequirement *t;

	if (!request || request->required.n + request->preferred.n == 0)
		return NULL;
	t = new_part(a, 1, sizeof *t);
	csi__v1__topology_requirement__init(t);
	t->n_requisite = request->required.n;
	t->requisite = make_topologies(a, request->required.v, request->required.n);
	t->n_preferred = request->preferred.n;
	t->preferred = make_topologies(a, request->preferred.v, request->preferred.n);
	return t;
}

Csi__V1__VolumeContentSource *
call_args_source(struct call_args *a, const struct csi_volume *vol)
{
	Csi__V1__VolumeContentSource *source = new_part(a, 1, sizeof *source);

	csi__v1__volume_content_source__init(source);
	if (*str(vol->snapshot_id)) {
		source->type_case = CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_SNAPSHOT;
		source->snapshot = new_part(a, 1, sizeof *source->snapshot);
		csi__v1__volume_content_source__snapshot_source__init(source->snapshot);
		source->snapshot->snapshot_id = vol->snapshot_id;
		return source;
	}
	if (*str(vol->clone_id)) {
		source->type_case = CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_VOLUME;
		source->volume = new_part(a, 1, sizeof *source->volume);
		csi__v1__volume_content_source__volume_source__init(source->volume);
		source->volume->volume_id = vol->clone_id;
		return source;
	}
	return NULL;
}

__attribute__((format(printf, 2, 3))) static char *
new_text(struct call_args *a, const char *fmt, ...)
{
	va_list args, again;
	char *text;
	int len;

	va_start(args, fmt);
	va_copy(again, args);
	len = vsnprintf(NULL, 0, fmt, args);
	text = new_part(a, (size_t)len + 1, 1);
	(void)vsnprintf(text, (size_t)len + 1, fmt, again);
	va_end(again);
	va_end(args);
	return text;
}

char *
call_args_staging(struct call_args *a, const struct mount_record *rec)
{
	return new_text(a, "%s/staging/%s/%s", rec->container_root, rec->volume, rec->staging);
}

char *
call_args_target(struct call_args *a, const struct mount_record *rec)
{
	return new_text(
	    a, "%s/per-alloc/%s/%s/%s", rec->container_root, rec->alloc, rec->volume, rec->usage);
}
