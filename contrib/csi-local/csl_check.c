// SPDX-License-Identifier: Apache-2.0
/* csl_check.c: checks of requests, which several methods share. Runs in: drover-csi-local. */
#include "contrib/csi-local/csl_check.h"

#include <string.h>

#include "common/utf8.h"

int
csl_check_name(struct csl_op *op, const char *noun, const char *name)
{
	if (name[0] == '\0')
		return csl_invalid(op, "the name of the %s is missing", noun);
	if (strlen(name) > CSL_NAME_BYTES)
		return csl_invalid(
		    op, "the name of the %s is longer than %d bytes", noun, CSL_NAME_BYTES);
	if (!utf8_is_text(name, strlen(name)))
		return csl_invalid(op, "the name of the %s is not UTF-8", noun);
	for (const char *p = name; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			return csl_invalid(op, "the name of the %s has control characters", noun);
	return GRPC_STATUS_OK;
}

int
csl_check_range(struct csl_op *op, const Csi__V1__CapacityRange *range)
{
	if (range->required_bytes < 0 || range->limit_bytes < 0)
		return csl_invalid(op, "the capacity is negative");
	if (range->limit_bytes > 0 && range->required_bytes > range->limit_bytes)
		return csl_fail(
		    op, GRPC_STATUS_OUT_OF_RANGE, "the required capacity is above the limit");
	return GRPC_STATUS_OK;
}

int
csl_check_capability(struct csl_op *op, const Csi__V1__VolumeCapability *cap)
{
	if (!cap)
		return csl_invalid(op, "the volume capability is missing");
	if (!csl_is_block(cap) &&
	    cap->access_type_case != CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_MOUNT)
		return csl_invalid(op, "the access type is missing");
	if (!cap->access_mode || cap->access_mode->mode <= CSL_MODE(UNKNOWN) ||
	    cap->access_mode->mode > CSL_MODE(SINGLE_NODE_MULTI_WRITER))
		return csl_invalid(op, "the access mode is missing or unknown");
	if (csl_is_block(cap))
		return GRPC_STATUS_OK;
	if (cap->mount->fs_type[0] != '\0')
		return csl_invalid(op,
		    "volumes are directories: they have no file system type '%.32s'",
		    cap->mount->fs_type);
	if (cap->mount->volume_mount_group[0] != '\0')
		return csl_invalid(op, "a volume mount group is not supported");
	return GRPC_STATUS_OK;
}

int
csl_check_capabilities(struct csl_op *op, Csi__V1__VolumeCapability *const *caps, size_t n)
{
	int status = GRPC_STATUS_OK;

	if (n == 0)
		return csl_invalid(op, "the volume capabilities are missing");
	for (size_t i = 0; status == GRPC_STATUS_OK && i < n; i++) {
		status = csl_check_capability(op, caps[i]);
		if (status == GRPC_STATUS_OK && csl_is_block(caps[i]) != csl_is_block(caps[0]))
			status = csl_invalid(
			    op, "a volume is either a directory or a block device, not both");
	}
	return status;
}

int
csl_check_type(
    struct csl_op *op, const CslVolume *v, const Csi__V1__VolumeCapability *cap, int status)
{
	if (csl_is_block(cap) == (v->block != 0))
		return GRPC_STATUS_OK;
	return csl_fail(op, status, "volume %s is a %s, so it cannot be used as a %s", v->id,
	    v->block ? "block device" : "directory", v->block ? "directory" : "block device");
}

int
csl_check_mutable(struct csl_op *op, Csi__V1__StringEntry *const *at, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (strcmp(at[i]->key, "label") != 0 && strcmp(at[i]->key, "abnormal") != 0)
			return csl_invalid(op,
			    "unknown mutable parameter '%.64s': there are label and abnormal",
			    at[i]->key);
		if (!utf8_is_text(at[i]->value, strlen(at[i]->value)))
			return csl_invalid(
			    op, "the mutable parameter '%s' is not UTF-8", at[i]->key);
	}
	return GRPC_STATUS_OK;
}

int
csl_check_context(struct csl_op *op, const CslVolume *v, Csi__V1__StringEntry *const *at, size_t n)
{
	const char *value;

	if (v->n_context == 0)
		return GRPC_STATUS_OK; /* whoever registered the volume may add to nothing */
	if (n != v->n_context)
		return csl_invalid(op, "the volume context has %zu entries; volume %s has %zu", n,
		    v->id, v->n_context);
	for (size_t i = 0; i < n; i++) {
		value = csl_pairs_get(at, n, v->context[i]->key);
		if (!value || strcmp(value, v->context[i]->value) != 0)
			return csl_invalid(op,
			    "the entry '%.64s' of the volume context is not that of volume %s",
			    v->context[i]->key, v->id);
	}
	return GRPC_STATUS_OK;
}

bool
csl_mode_one_node(int mode)
{
	return mode == CSL_MODE(SINGLE_NODE_WRITER) || mode == CSL_MODE(SINGLE_NODE_READER_ONLY) ||
	       mode == CSL_MODE(SINGLE_NODE_SINGLE_WRITER) ||
	       mode == CSL_MODE(SINGLE_NODE_MULTI_WRITER);
}

bool
csl_mode_reads(int mode)
{
	return mode == CSL_MODE(SINGLE_NODE_READER_ONLY) ||
	       mode == CSL_MODE(MULTI_NODE_READER_ONLY);
}

bool
csl_modes_agree(int mode, bool readonly, int other_mode, bool other_readonly)
{
	if (csl_mode_one_node(mode) || csl_mode_one_node(other_mode))
		return false;
	return mode != CSL_MODE(MULTI_NODE_SINGLE_WRITER) || readonly || other_readonly ||
	       csl_mode_reads(other_mode);
}

bool
csl_topology_has(const struct csl_pairs *segments, const struct csl_pairs *wanted)
{
	const char *value;

	for (size_t i = 0; i < wanted->n; i++) {
		value = csl_pairs_get(segments->at, segments->n, wanted->at[i]->key);
		if (!value || strcmp(value, wanted->at[i]->value) != 0)
			return false;
	}
	return true;
}
