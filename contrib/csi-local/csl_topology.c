// SPDX-License-Identifier: Apache-2.0
/* csl_topology.c: from where volumes can be reached. Runs in: drover-csi-local. */
#include "contrib/csi-local/csl_topology.h"

#include "contrib/csi-local/csl_check.h"

bool
csl_topology_known(struct csl_op *op, const Csi__V1__Topology *topology)
{
	const struct csl_pairs wanted = { topology->segments, topology->n_segments };
	const CslNode *node;
	const char **nodes;
	size_t n;

	if (csl_topology_has(&op->csl->topology, &wanted))
		return true;
	n = csl_store_nodes(op->csl->store, &op->arena, &nodes);
	for (size_t i = 0; i < n; i++) {
		node = csl_store_node(op->csl->store, nodes[i], &op->arena);
		if (node && csl_topology_has(
				&(struct csl_pairs){ node->topology, node->n_topology }, &wanted))
			return true;
	}
	return false;
}

static const Csi__V1__Topology *
first_known(struct csl_op *op, Csi__V1__Topology *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (csl_topology_known(op, list[i]))
			return list[i];
	return NULL;
}

int
csl_topology_choose(struct csl_op *op, const Csi__V1__TopologyRequirement *wanted, CslVolume *v)
{
	const Csi__V1__Topology *chosen;

	if (op->csl->topology.n == 0)
		return GRPC_STATUS_OK; /* without the capability */
	if (!wanted || wanted->n_requisite + wanted->n_preferred == 0) {
		v->topology = op->csl->topology.at;
		v->n_topology = op->csl->topology.n;
		return GRPC_STATUS_OK;
	}
	chosen = first_known(op, wanted->preferred, wanted->n_preferred);
	if (!chosen)
		chosen = first_known(op, wanted->requisite, wanted->n_requisite);
	if (!chosen)
		return csl_fail(op, GRPC_STATUS_RESOURCE_EXHAUSTED,
		    "no node has one of the %zu topologies that the volume must be accessible from",
		    wanted->n_requisite + wanted->n_preferred);
	v->topology = chosen->segments;
	v->n_topology = chosen->n_segments;
	return GRPC_STATUS_OK;
}
