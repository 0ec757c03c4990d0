// SPDX-License-Identifier: Apache-2.0
/* csl_access.c: who may have a volume, by its access modes and attachments. Runs in:
 * drover-csi-local. */
#include <string.h>
#include <sys/mount.h>

#include "contrib/csi-local/csl_check.h"
#include "contrib/csi-local/csl_node.h"

/* Whether a mount writes. A staged volume does not yet. */
static bool
writes(const CslMount *m)
{
	return !m->staging && !(m->attrs & MOUNT_ATTR_RDONLY);
}

/* With -attach the controller decides which nodes have the volume. */
static int
check_other_nodes(struct csl_op *op, const struct csl_local *l, int mode, bool readonly)
{
	struct csl_store *s = op->csl->store;
	const CslNodeVolume *mounts;
	const char **nodes;
	size_t n = op->csl->attach ? 0 : csl_store_nodes(s, &op->arena, &nodes);

	for (size_t i = 0; i < n; i++) {
		if (strcmp(nodes[i], op->csl->node_id) == 0)
			continue;
		mounts = csl_store_mounts(s, nodes[i], l->volume->id, &op->arena);
		for (size_t k = 0; k < mounts->n_mounts; k++)
			if (!csl_modes_agree(mode, readonly, mounts->mounts[k]->access_mode,
				!writes(mounts->mounts[k])))
				return csl_fail(op, GRPC_STATUS_FAILED_PRECONDITION,
				    "volume %s is in use on node %s", l->volume->id, nodes[i]);
	}
	return GRPC_STATUS_OK;
}

static int
check_single_writer(struct csl_op *op, const struct csl_local *l, int mode, const char *target)
{
	const CslMount *m;

	for (size_t i = 0; i < l->mounts->n_mounts; i++) {
		m = l->mounts->mounts[i];
		if (!m->staging && strcmp(m->target, target) != 0 &&
		    (mode == CSL_MODE(SINGLE_NODE_SINGLE_WRITER) ||
			m->access_mode == CSL_MODE(SINGLE_NODE_SINGLE_WRITER)))
			return csl_fail(op, GRPC_STATUS_FAILED_PRECONDITION,
			    "volume %s has a single writer, on %s", l->volume->id, m->target);
	}
	return GRPC_STATUS_OK;
}

int
csl_access_check(struct csl_op *op, const struct csl_local *l, const Csi__V1__VolumeCapability *cap,
    const char *target, bool readonly)
{
	const struct csl_pairs wanted = { l->volume->topology, l->volume->n_topology };
	int mode = (int)cap->access_mode->mode;
	int status = csl_check_type(op, l->volume, cap, GRPC_STATUS_FAILED_PRECONDITION);

	if (status == GRPC_STATUS_OK && !csl_topology_has(&op->csl->topology, &wanted))
		status = csl_fail(op, GRPC_STATUS_FAILED_PRECONDITION,
		    "volume %s is not accessible from the topology of this node", l->volume->id);
	if (status == GRPC_STATUS_OK)
		status = check_other_nodes(op, l, mode, readonly);
	if (status == GRPC_STATUS_OK && target)
		status = check_single_writer(op, l, mode, target);
	return status;
}

int
csl_attachment_check(struct csl_op *op, const CslVolume *v, Csi__V1__StringEntry *const *at,
    size_t n, bool wants_to_write)
{
	const char *token = csl_pairs_get(at, n, CSL_CONTEXT_ENTRY);
	const CslAttachment *a = NULL;

	if (!op->csl->attach)
		return GRPC_STATUS_OK;
	for (size_t i = 0; i < v->n_attachments && !a; i++)
		if (strcmp(v->attachments[i]->node_id, op->csl->node_id) == 0)
			a = v->attachments[i];
	if (!a)
		return csl_fail(op, GRPC_STATUS_FAILED_PRECONDITION,
		    "volume %s is not attached to this node", v->id);
	if (!token || strcmp(token, a->token) != 0)
		return csl_fail(op, GRPC_STATUS_FAILED_PRECONDITION,
		    "the publish context of volume %s is not that of its attachment", v->id);
	if (wants_to_write && a->readonly)
		return csl_fail(op, GRPC_STATUS_FAILED_PRECONDITION,
		    "volume %s is attached to this node read-only", v->id);
	return GRPC_STATUS_OK;
}
