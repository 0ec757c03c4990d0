// SPDX-License-Identifier: Apache-2.0
/* csl_volume.c: a volume, its use and its condition. Runs in: drover-csi-local. */
#include "contrib/csi-local/csl_volume.h"

#include <errno.h>
#include <unistd.h>

#include "common/cleanup.h"

int
csl_volume_get(struct csl_op *op, const char *id, CslVolume **ret)
{
	struct err e = { 0 };

	if (id[0] == '\0')
		return csl_invalid(op, "the volume id is missing");
	*ret = csl_store_load(op->csl->store, CSL_VOLUME, id, &op->arena, &e);
	if (*ret)
		return GRPC_STATUS_OK;
	return e.code == -ENOENT ? csl_fail(op, GRPC_STATUS_NOT_FOUND, "%s", e.msg)
				 : csl_internal(op, &e);
}

static Csi__V1__VolumeContentSource *
content_source(struct csl_op *op, const CslVolume *v)
{
	Csi__V1__VolumeContentSource *s = csl_alloc(&op->arena, 1, sizeof *s);

	csi__v1__volume_content_source__init(s);
	if (v->source_volume_id[0] != '\0') {
		s->type_case = CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_VOLUME;
		s->volume = csl_alloc(&op->arena, 1, sizeof *s->volume);
		csi__v1__volume_content_source__volume_source__init(s->volume);
		s->volume->volume_id = v->source_volume_id;
	} else {
		s->type_case = CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_SNAPSHOT;
		s->snapshot = csl_alloc(&op->arena, 1, sizeof *s->snapshot);
		csi__v1__volume_content_source__snapshot_source__init(s->snapshot);
		s->snapshot->snapshot_id = v->source_snapshot_id;
	}
	return s;
}

Csi__V1__Volume *
csl_volume_answer(struct csl_op *op, const CslVolume *v)
{
	Csi__V1__Volume *a = csl_alloc(&op->arena, 1, sizeof *a);
	Csi__V1__Topology *topology;

	csi__v1__volume__init(a);
	a->volume_id = v->id;
	a->capacity_bytes = v->capacity_bytes;
	a->volume_context = v->context;
	a->n_volume_context = v->n_context;
	if (v->source_volume_id[0] != '\0' || v->source_snapshot_id[0] != '\0')
		a->content_source = content_source(op, v);
	if (v->n_topology > 0) {
		topology = csl_alloc(&op->arena, 1, sizeof *topology);
		csi__v1__topology__init(topology);
		topology->segments = v->topology;
		topology->n_segments = v->n_topology;
		a->accessible_topology = csl_grown(&op->arena, NULL, 0);
		a->accessible_topology[a->n_accessible_topology++] = topology;
	}
	return a;
}

size_t
csl_volume_nodes(struct csl_op *op, const CslVolume *v, char ***ret)
{
	struct csl_store *s = op->csl->store;
	const char **nodes;
	size_t n = 0, n_nodes;

	*ret = NULL;
	if (op->csl->attach) {
		for (; n < v->n_attachments; n++) {
			*ret = csl_grown(&op->arena, *ret, n);
			(*ret)[n] = v->attachments[n]->node_id;
		}
		return n;
	}
	n_nodes = csl_store_nodes(s, &op->arena, &nodes);
	for (size_t i = 0; i < n_nodes; i++)
		if (csl_store_mounts(s, nodes[i], v->id, &op->arena)->n_mounts > 0) {
			*ret = csl_grown(&op->arena, *ret, n);
			(*ret)[n++] = csl_copy(&op->arena, nodes[i]);
		}
	return n;
}

const CslMount *
csl_volume_mounted(struct csl_op *op, const char *id, const char **ret_node)
{
	const CslNodeVolume *mounts;
	const char **nodes;
	size_t n = csl_store_nodes(op->csl->store, &op->arena, &nodes);

	for (size_t i = 0; i < n; i++) {
		mounts = csl_store_mounts(op->csl->store, nodes[i], id, &op->arena);
		if (mounts->n_mounts > 0) {
			*ret_node = nodes[i];
			return mounts->mounts[0];
		}
	}
	return NULL;
}

Csi__V1__VolumeCondition *
csl_volume_condition(struct csl_op *op, const CslVolume *v)
{
	static char normal[] = "the volume is normal";
	Csi__V1__VolumeCondition *c = csl_alloc(&op->arena, 1, sizeof *c);
	const char *said =
	    csl_pairs_get(v->mutable_parameters, v->n_mutable_parameters, "abnormal");
	struct err e;
	cleanup_close int fd = csl_store_data(op->csl->store, CSL_VOLUME, v->id, v->block != 0, &e);

	csi__v1__volume_condition__init(c);
	c->abnormal = fd < 0 || (said && said[0] != '\0');
	c->message = fd < 0        ? csl_copy(&op->arena, e.msg)
		     : c->abnormal ? csl_copy(&op->arena, said)
				   : normal;
	return c;
}

int64_t
csl_volumes_size(struct csl_op *op)
{
	char(*ids)[ID_HEX_SIZE];
	size_t n = csl_store_list(op->csl->store, CSL_VOLUME, "", 0, &op->arena, &ids);
	const CslVolume *v;
	int64_t sum = 0;
	struct err e;

	for (size_t i = 0; i < n; i++) {
		v = csl_store_load(op->csl->store, CSL_VOLUME, ids[i], &op->arena, &e);
		if (v && v->capacity_bytes <= INT64_MAX - sum)
			sum += v->capacity_bytes;
	}
	return sum;
}
