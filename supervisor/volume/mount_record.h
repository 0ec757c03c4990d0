/* SPDX-License-Identifier: Apache-2.0 */
/* mount_record.h: the row of one mount of one volume for one alloc. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_VOLUME_MOUNT_RECORD_H
#define DROVER_SUPERVISOR_VOLUME_MOUNT_RECORD_H

#include "common/id.h"
#include "model/engine/field.h"
#include "model/volume.h"
#include "proto/ipc_records.h"
#include "supervisor/table/alloc_table.h"

struct plugin;

struct mount_record {
	char *alloc, *alias;
	struct id alloc_id;          /* that of alloc; not in the row */
	char *namespace, *volume_id; /* Nomad's */
	char *volume;                /* namespace and volume_id as one path component */
	char *external_id;           /* the plugin's */
	char *plugin, *usage, *container_root;
	char *staging; /* the usage that names the staging directory: that of its first user */
	char *staged_fs_type; /* what it was staged with, as far as other users depend on it */
	enum csi_access staged_access;
	bool staged_bare; /* the plugin has mounted nothing on the staging directory */
	char *boot_id;    /* the boot in which it was mounted */
	enum csi_plugin_kind kind;
	bool stages, read_only;
	bool block;   /* a block device, else a file system; also mount_proof.is_block */
	bool unsure;  /* a call that failed may have taken effect, or may still do so */
	int64_t lost; /* enum volume_lost: why it was mounted again last */
	int64_t step;
	/* struct mount_proof */
	uint64_t mnt_id, dev_major, dev_minor, ino, btime_nsec, fs_type, fs_id, fs_flags,
	    rdev_major, rdev_minor;
	int64_t btime_sec;
	bool mnt_id_unique;
};
MODEL_DECLARE(mount_record);

/*
 * Encodes the id of a volume, with its namespace unless that is the default one, as one path
 * component, so that different volumes stay different. An encoding of more than NAME_BYTES_MAX
 * bytes is shortened and followed by a SHA-256 of both.
 */
void mount_record_name(char ret[NAME_BYTES_MAX + 1], const char *namespace, const char *id);
/* Fills in an empty record, except for step and proof. */
void mount_record_fill(struct mount_record *rec, const struct sup_alloc *sa,
    const struct volume_request *request, const struct csi_volume *volume, const struct plugin *p,
    const char *boot_id);
void mount_record_to_proof(const struct mount_record *rec, struct mount_proof *ret);
void mount_record_from_proof(struct mount_record *rec, const struct mount_proof *proof);

#endif
