// SPDX-License-Identifier: Apache-2.0
/* call_args.c: what CSI requests have in common, out of volumes and mounts. Runs in: supervisor. */
#include "supervisor/volume/call_args.h"

#include <stdio.h>

#define PATH_SIZE        1024
#define ENTRIES_MAX      64
#define CAPABILITIES_MAX 16
#define TOPOLOGIES_MAX   16
#define SEGMENTS_MAX     64

/* A request while it is made: what its pointers point to. Messages are copied when they are sent,
 * so one is enough. */
static struct {
	Csi__V1__StringEntry entries[4][ENTRIES_MAX], *lists[4][ENTRIES_MAX];
	Csi__V1__VolumeCapability caps[CAPABILITIES_MAX], *cap_list[CAPABILITIES_MAX];
	Csi__V1__VolumeCapability__BlockVolume block;
	Csi__V1__VolumeCapability__MountVolume mounts[CAPABILITIES_MAX];
	Csi__V1__VolumeCapability__AccessMode modes[CAPABILITIES_MAX];
	Csi__V1__TopologyRequirement topology;
	Csi__V1__Topology places[2][TOPOLOGIES_MAX], *place_lists[2][TOPOLOGIES_MAX];
	Csi__V1__StringEntry segments[SEGMENTS_MAX], *segment_list[SEGMENTS_MAX];
	char staging[PATH_SIZE], target[PATH_SIZE];
} scratch;

size_t
call_args_map(unsigned slot, const struct string_map *m, Csi__V1__StringEntry ***ret)
{
	size_t n = m->n < ENTRIES_MAX ? m->n : ENTRIES_MAX;

	for (size_t i = 0; i < n; i++) {
		csi__v1__string_entry__init(&scratch.entries[slot][i]);
		scratch.entries[slot][i].key = m->v[i].key;
		scratch.entries[slot][i].value = (char *)(uintptr_t)str(m->v[i].value);
		scratch.lists[slot][i] = &scratch.entries[slot][i];
	}
	*ret = scratch.lists[slot];
	return n;
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
		break;
	}
	return CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__UNKNOWN;
}

Csi__V1__VolumeCapability *
call_args_capability(
    unsigned at, const struct csi_capability *cap, const struct mount_options *options)
{
	Csi__V1__VolumeCapability *c = &scratch.caps[at];
	Csi__V1__VolumeCapability__MountVolume *mount = &scratch.mounts[at];

	csi__v1__volume_capability__init(c);
	csi__v1__volume_capability__access_mode__init(&scratch.modes[at]);
	scratch.modes[at].mode = access_mode(cap->access_mode);
	c->access_mode = &scratch.modes[at];
	if (cap->attachment_mode == CSI_BLOCK_DEVICE) {
		csi__v1__volume_capability__block_volume__init(&scratch.block);
		c->access_type_case = CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_BLOCK;
		c->block = &scratch.block;
	} else {
		csi__v1__volume_capability__mount_volume__init(mount);
		if (options && options->fs_type)
			mount->fs_type = options->fs_type;
		if (options) {
			mount->mount_flags = options->mount_flags.v;
			mount->n_mount_flags = options->mount_flags.n;
		}
		c->access_type_case = CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_MOUNT;
		c->mount = mount;
	}
	scratch.cap_list[at] = c;
	return c;
}

size_t
call_args_capabilities(const struct csi_volume *vol, Csi__V1__VolumeCapability ***ret)
{
	size_t n = vol->requested_capabilities.n;

	n = n < CAPABILITIES_MAX ? n : CAPABILITIES_MAX;
	for (unsigned i = 0; i < n; i++)
		(void)call_args_capability(
		    i, &vol->requested_capabilities.v[i], vol->mount_options);
	*ret = scratch.cap_list;
	return n;
}

/* A list of topologies into place `at`; *used counts the segments of both. */
static size_t
put_topologies(unsigned at, const struct csi_topology *from, size_t n, size_t *used)
{
	size_t made = 0;

	for (; made < n && made < TOPOLOGIES_MAX; made++) {
		Csi__V1__Topology *t = &scratch.places[at][made];
		const struct string_map *m = &from[made].segments;

		if (m->n > SEGMENTS_MAX - *used)
			break;
		csi__v1__topology__init(t);
		t->segments = &scratch.segment_list[*used];
		t->n_segments = m->n;
		for (size_t i = 0; i < m->n; i++, ++*used) {
			csi__v1__string_entry__init(&scratch.segments[*used]);
			scratch.segments[*used].key = m->v[i].key;
			scratch.segments[*used].value = (char *)(uintptr_t)str(m->v[i].value);
			scratch.segment_list[*used] = &scratch.segments[*used];
		}
		scratch.place_lists[at][made] = t;
	}
	return made;
}

Csi__V1__TopologyRequirement *
call_args_topologies(const struct csi_topology_request *request)
{
	Csi__V1__TopologyRequirement *t = &scratch.topology;
	size_t used = 0;

	if (!request || request->required.n + request->preferred.n == 0)
		return NULL;
	csi__v1__topology_requirement__init(t);
	t->n_requisite = put_topologies(0, request->required.v, request->required.n, &used);
	t->requisite = scratch.place_lists[0];
	t->n_preferred = put_topologies(1, request->preferred.v, request->preferred.n, &used);
	t->preferred = scratch.place_lists[1];
	return t;
}

void
call_args_paths(const struct mount_record *rec, char **ret_staging, char **ret_target)
{
	(void)snprintf(scratch.staging, sizeof scratch.staging, "%s/staging/%s/%s",
	    rec->container_root, rec->volume, rec->usage);
	(void)snprintf(scratch.target, sizeof scratch.target, "%s/per-alloc/%s/%s/%s",
	    rec->container_root, rec->alloc, rec->volume, rec->usage);
	*ret_staging = scratch.staging;
	*ret_target = scratch.target;
}
