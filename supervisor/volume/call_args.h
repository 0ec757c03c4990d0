/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call_args.h: the parts that CSI requests have in common, made from volumes and mounts. They point
 * to what they are made of, and are freed with their struct; plugin_call() copies the request. Runs
 * in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_VOLUME_CALL_ARGS_H
#define DROVER_SUPERVISOR_VOLUME_CALL_ARGS_H

#include "model/volume.h"
#include "proto/csi.pb-c.h"
#include "supervisor/volume/mount_record.h"

struct call_part;

/* Checks that the volume's secrets could be read. Returns 0 or -EKEYREJECTED with the sentence. */
int call_args_check_secrets(const struct csi_volume *vol, struct err *e);
/* Checks that every request about the volume can have all its secrets, parameters and contexts.
 * Returns 0, or -EINVAL with *e. */
int call_args_check(const struct csi_volume *vol, struct err *e);

/* `cleanup_call_args struct call_args args = { 0 };` */
struct call_args {
	struct call_part *parts;
};
void call_args_done(struct call_args *a);
#define cleanup_call_args __attribute__((__cleanup__(call_args_done)))

/* Makes the repeated field of a map and returns its length. */
size_t call_args_map(struct call_args *a, const struct string_map *m, Csi__V1__StringEntry ***ret);
/* options may be NULL. */
Csi__V1__VolumeCapability *call_args_capability(
    struct call_args *a, const struct csi_capability *cap, const struct mount_options *options);
/* Makes the requested capabilities of the volume and returns how many there are. */
size_t call_args_capabilities(
    struct call_args *a, const struct csi_volume *vol, Csi__V1__VolumeCapability ***ret);
/* Makes the requested topologies; NULL if there are none, so that the plugin chooses. */
Csi__V1__TopologyRequirement *call_args_topologies(
    struct call_args *a, const struct csi_topology_request *request);
/* Makes the snapshot or volume that a new volume is copied from; NULL if it begins empty. */
Csi__V1__VolumeContentSource *call_args_source(struct call_args *a, const struct csi_volume *vol);
/* Return the paths of the mount as the plugin sees them. */
char *call_args_staging(struct call_args *a, const struct mount_record *rec);
char *call_args_target(struct call_args *a, const struct mount_record *rec);

#endif
