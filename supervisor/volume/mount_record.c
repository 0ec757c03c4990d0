// SPDX-License-Identifier: Apache-2.0
/* mount_record.c: the row of one mount. Runs in: supervisor. */
#include "supervisor/volume/mount_record.h"

#include <ctype.h>
#include <sha2.h>
#include <stdio.h>
#include <string.h>

#include "model/engine/table.h"
#include "supervisor/volume/plugins.h"

#define S mount_record
static const struct field mount_record_fields[] = {
	F_STRING(alloc, "Alloc"),
	F_STRING(alias, "Alias"),
	F_STRING(namespace, "Namespace"),
	F_STRING(volume_id, "VolumeID"),
	F_STRING(volume, "Volume"),
	F_STRING(external_id, "ExternalID"),
	F_STRING(plugin, "Plugin"),
	F_STRING(usage, "Usage"),
	F_STRING(staging, "Staging"),
	F_STRING(staged_fs_type, "StagedFsType"),
	F_ENUM(staged_access, "StagedAccess", csi_access_names),
	F_BOOL(staged_bare, "StagedBare"),
	F_STRING(container_root, "ContainerRoot"),
	F_STRING(boot_id, "BootID"),
	F_ENUM(kind, "Kind", csi_plugin_kind_names),
	F_BOOL(stages, "Stages"),
	F_BOOL(read_only, "ReadOnly"),
	F_BOOL(unsure, "Unsure"),
	F_INT(lost, "Lost"),
	F_INT(step, "Step"),
	F_UINT(mnt_id, "MntID"),
	F_BOOL(mnt_id_unique, "MntIDUnique"),
	F_UINT(dev_major, "DevMajor"),
	F_UINT(dev_minor, "DevMinor"),
	F_UINT(ino, "Ino"),
	F_INT(btime_sec, "BtimeSec"),
	F_UINT(btime_nsec, "BtimeNsec"),
	F_UINT(fs_type, "FsType"),
	F_UINT(fs_id, "FsID"),
	F_UINT(fs_flags, "FsFlags"),
	F_BOOL(block, "Block"),
	F_UINT(rdev_major, "RdevMajor"),
	F_UINT(rdev_minor, "RdevMinor"),
};
MODEL_TYPE(mount_record, mount_record_fields, .name = "mount");
#undef S

/* Appends the encoded text to buf, which has *n bytes, up to the last byte that fits into max.
 * Letters, digits, '-' and dots after the first byte stay, any other byte becomes '_' and two hex
 * digits. Returns whether all fitted. */
static bool
encode_text(char *buf, size_t max, size_t *n, const char *text)
{
	for (const char *c = text; *c; c++) {
		bool plain = isalnum((unsigned char)*c) || *c == '-' || (*c == '.' && *n > 0);
		size_t len = plain ? 1 : 3;

		if (*n + len > max)
			return false;
		(void)snprintf(buf + *n, len + 1, plain ? "%c" : "_%02x", (unsigned char)*c);
		*n += len;
	}
	return true;
}

static bool
encode_name(char *buf, size_t max, size_t *n, const char *namespace, const char *id)
{
	*n = 0;
	buf[0] = '\0';
	if (strcmp(namespace, "default") != 0 &&
	    !(encode_text(buf, max, n, namespace) && encode_text(buf, max, n, "/")))
		return false;
	return encode_text(buf, max, n, id);
}

void
mount_record_name(char ret[NAME_BYTES_MAX + 1], const char *namespace, const char *id)
{
	uint8_t digest[SHA256_DIGEST_LENGTH];
	SHA2_CTX sha;
	size_t n;

	namespace = *namespace ? namespace : "default";
	if (encode_name(ret, NAME_BYTES_MAX, &n, namespace, id))
		return;
	SHA256Init(&sha);
	SHA256Update(&sha, (const uint8_t *)namespace, strlen(namespace) + 1);
	SHA256Update(&sha, (const uint8_t *)id, strlen(id));
	SHA256Final(digest, &sha);
	(void)encode_name(ret, NAME_BYTES_MAX - 2 - 2 * sizeof digest, &n, namespace, id);
	/* No short name contains "__", because in those '_' begins the code of a byte. */
	n += (size_t)snprintf(ret + n, 3, "__");
	for (size_t i = 0; i < sizeof digest; i++)
		n += (size_t)snprintf(ret + n, 3, "%02x", digest[i]);
}

void
mount_record_fill(struct mount_record *rec, const struct sup_alloc *sa,
    const struct volume_request *request, const struct csi_volume *volume, const struct plugin *p,
    const char *boot_id)
{
	char usage[USAGE_SIZE], name[NAME_BYTES_MAX + 1];

	csi_usage(usage, request->read_only, request->attachment_mode, request->access_mode,
	    volume->mount_options, request->mount_options);
	rec->alloc_id = sa->id;
	rec->kind = plugin_kind(p);
	rec->read_only = request->read_only;
	rec->block = request->attachment_mode == CSI_BLOCK_DEVICE;
	rec->stages = plugin_node_info(p)->node_info &&
		      plugin_node_info(p)->node_info->requires_node_stage_volume;
	str_set(&rec->alloc, sa->a.id);
	str_set(&rec->alias, request->name);
	str_set(&rec->namespace, volume->namespace);
	str_set(&rec->volume_id, volume->id);
	mount_record_name(name, str(volume->namespace), str(volume->id));
	str_set(&rec->volume, name);
	str_set(&rec->external_id, volume->external_id ? volume->external_id : volume->id);
	str_set(&rec->plugin, plugin_id(p));
	str_set(&rec->usage, usage);
	str_set(&rec->staging, usage);
	str_set(&rec->container_root, plugin_container_root(p));
	str_set(&rec->boot_id, boot_id);
}

void
mount_record_to_proof(const struct mount_record *rec, struct mount_proof *ret)
{
	*ret = (struct mount_proof){ 0 };
	ret->mnt_id = rec->mnt_id;
	ret->mnt_id_unique = rec->mnt_id_unique;
	ret->dev_major = (uint32_t)rec->dev_major;
	ret->dev_minor = (uint32_t)rec->dev_minor;
	ret->ino = rec->ino;
	ret->btime_sec = rec->btime_sec;
	ret->btime_nsec = (uint32_t)rec->btime_nsec;
	ret->fs_type = rec->fs_type;
	ret->fs_id = rec->fs_id;
	ret->fs_flags = rec->fs_flags;
	ret->is_block = rec->block;
	ret->rdev_major = (uint32_t)rec->rdev_major;
	ret->rdev_minor = (uint32_t)rec->rdev_minor;
}

void
mount_record_from_proof(struct mount_record *rec, const struct mount_proof *proof)
{
	rec->mnt_id = proof->mnt_id;
	rec->mnt_id_unique = proof->mnt_id_unique;
	rec->dev_major = proof->dev_major;
	rec->dev_minor = proof->dev_minor;
	rec->ino = proof->ino;
	rec->btime_sec = proof->btime_sec;
	rec->btime_nsec = proof->btime_nsec;
	rec->fs_type = proof->fs_type;
	rec->fs_id = proof->fs_id;
	rec->fs_flags = proof->fs_flags;
	rec->rdev_major = proof->rdev_major;
	rec->rdev_minor = proof->rdev_minor;
}
