/* SPDX-License-Identifier: Apache-2.0 */
/* csl_check.h: checks of requests, which several methods share. Runs in: drover-csi-local. */
#ifndef DROVER_CONTRIB_CSI_LOCAL_CSL_CHECK_H
#define DROVER_CONTRIB_CSI_LOCAL_CSL_CHECK_H

#include "contrib/csi-local/csl.h"

#define CSL_MODE(name) CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__##name

/* Each returns 0, or the status of the failure with the op's message. */

/* A name that a caller chooses for a new noun. */
int csl_check_name(struct csl_op *op, const char *noun, const char *name);
int csl_check_range(struct csl_op *op, const Csi__V1__CapacityRange *range);
/* Whether any volume of this plugin can have the capability. INVALID_ARGUMENT. */
int csl_check_capability(struct csl_op *op, const Csi__V1__VolumeCapability *cap);
int csl_check_capabilities(struct csl_op *op, Csi__V1__VolumeCapability *const *caps, size_t n);
/* Whether this volume is of the capability's access type; otherwise returns status. */
int csl_check_type(
    struct csl_op *op, const CslVolume *v, const Csi__V1__VolumeCapability *cap, int status);
/* Parameters that ControllerModifyVolume can change. */
int csl_check_mutable(struct csl_op *op, Csi__V1__StringEntry *const *at, size_t n);
/* Whether the caller's volume context is the one that CreateVolume returned. */
int csl_check_context(
    struct csl_op *op, const CslVolume *v, Csi__V1__StringEntry *const *at, size_t n);

static inline bool
csl_is_block(const Csi__V1__VolumeCapability *cap)
{
	return cap->access_type_case == CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_BLOCK;
}

/* Whether a mode permits one node only, and reading only. */
bool csl_mode_one_node(int mode);
bool csl_mode_reads(int mode);
/* Whether two nodes can have the volume, in these modes and read-only or not. */
bool csl_modes_agree(int mode, bool readonly, int other_mode, bool other_readonly);

/* Whether segments have all pairs of wanted. */
bool csl_topology_has(const struct csl_pairs *segments, const struct csl_pairs *wanted);

#endif
