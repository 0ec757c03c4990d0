// SPDX-License-Identifier: Apache-2.0
/* csl_group.c: the GroupController service: snapshots of several volumes. Runs in:
 * drover-csi-local. */
#include <errno.h>
#include <string.h>

#include "common/clock.h"
#include "contrib/csi-local/csl_check.h"
#include "contrib/csi-local/csl_volume.h"

static bool
contains(char *const *list, size_t n, const char *text)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(list[i], text) == 0)
			return true;
	return false;
}

/* Whether two lists without repetitions have the same members. */
static bool
same_set(char *const *a, size_t n_a, char *const *b, size_t n_b)
{
	for (size_t i = 0; i < n_a; i++)
		if (!contains(b, n_b, a[i]))
			return false;
	return n_a == n_b;
}

static Csi__V1__VolumeGroupSnapshot *
group_answer(struct csl_op *op, const CslGroup *g)
{
	Csi__V1__VolumeGroupSnapshot *a = csl_alloc(&op->arena, 1, sizeof *a);
	const CslSnapshot *s;
	struct err e;

	csi__v1__volume_group_snapshot__init(a);
	a->group_snapshot_id = g->id;
	a->snapshots = csl_alloc(&op->arena, g->n_snapshot_ids, sizeof *a->snapshots);
	for (size_t i = 0; i < g->n_snapshot_ids; i++) {
		s = csl_store_load(
		    op->csl->store, CSL_SNAPSHOT, g->snapshot_ids[i], &op->arena, &e);
		if (s)
			a->snapshots[a->n_snapshots++] = csl_snapshot_answer(op, s);
	}
	a->creation_time = csl_alloc(&op->arena, 1, sizeof *a->creation_time);
	csi__v1__timestamp__init(a->creation_time);
	a->creation_time->seconds = g->created_ns / 1000000000;
	a->creation_time->nanos = (int32_t)(g->created_ns % 1000000000);
	a->ready_to_use = true;
	return a;
}

/* Removes the snapshots, then the group. A start after a crash removes snapshots without a group.
 */
static int
remove_group(struct csl_op *op, const CslGroup *g, struct err *e)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < g->n_snapshot_ids; i++)
		r = csl_store_remove(op->csl->store, CSL_SNAPSHOT, g->snapshot_ids[i], e);
	return r < 0 ? r : csl_store_remove(op->csl->store, CSL_GROUP, g->id, e);
}

static int
make_group(struct csl_op *op, const Csi__V1__CreateVolumeGroupSnapshotRequest *req, CslGroup *g)
{
	struct id id = id_random();
	int status = GRPC_STATUS_OK;
	char hex[ID_HEX_SIZE];
	struct err e = { 0 };
	CslSnapshot *s;

	for (size_t i = 0; i < req->n_source_volume_ids; i++) {
		status = csl_hold(op, "controller", req->source_volume_ids[i]);
		if (status != GRPC_STATUS_OK)
			return status;
	}
	id_to_hex(&id, hex);
	csl_group__init(g);
	g->version = 1;
	g->id = csl_copy(&op->arena, hex);
	g->name = req->name;
	g->created_ns = clock_real_ns();
	g->volume_ids = req->source_volume_ids;
	g->n_volume_ids = req->n_source_volume_ids;
	g->snapshot_ids = csl_alloc(&op->arena, g->n_volume_ids, sizeof *g->snapshot_ids);
	g->unfinished = true;
	if (csl_store_save(op->csl->store, CSL_GROUP, g, &e) < 0)
		return csl_internal(op, &e);
	for (size_t i = 0; status == GRPC_STATUS_OK && i < g->n_volume_ids; i++) {
		status = csl_snapshot_make(op, g->volume_ids[i], "", g->id, g->created_ns, &s);
		if (status == GRPC_STATUS_OK)
			g->snapshot_ids[g->n_snapshot_ids++] = s->id;
	}
	g->unfinished = false;
	if (status == GRPC_STATUS_OK && csl_store_save(op->csl->store, CSL_GROUP, g, &e) < 0)
		status = csl_internal(op, &e);
	if (status != GRPC_STATUS_OK)
		(void)remove_group(op, g, &e);
	return status;
}

static int
check_create(struct csl_op *op, const Csi__V1__CreateVolumeGroupSnapshotRequest *req)
{
	int status = csl_check_name(op, "group snapshot", req->name);

	if (status != GRPC_STATUS_OK)
		return status;
	if (req->n_source_volume_ids == 0)
		return csl_invalid(op, "the source volume ids are missing");
	if (req->n_parameters > 0)
		return csl_invalid(op, "unknown parameter '%.64s'", req->parameters[0]->key);
	for (size_t i = 0; i < req->n_source_volume_ids; i++)
		if (contains(req->source_volume_ids, i, req->source_volume_ids[i]))
			return csl_invalid(op, "the source volume '%.128s' is named twice",
			    req->source_volume_ids[i]);
	return GRPC_STATUS_OK;
}

int
csl_create_group(struct csl_op *op, const void *request, void *rep)
{
	const Csi__V1__CreateVolumeGroupSnapshotRequest *req = request;
	CslGroup *g = csl_alloc(&op->arena, 1, sizeof *g);
	char id[ID_HEX_SIZE];
	struct err e = { 0 };
	int status = check_create(op, req);

	if (status == GRPC_STATUS_OK)
		status = csl_hold(op, "group-name", req->name);
	if (status != GRPC_STATUS_OK)
		return status;
	if (csl_store_find(op->csl->store, CSL_GROUP, req->name, id)) {
		g = csl_store_load(op->csl->store, CSL_GROUP, id, &op->arena, &e);
		if (!g)
			return csl_internal(op, &e);
		if (!same_set(g->volume_ids, g->n_volume_ids, req->source_volume_ids,
			req->n_source_volume_ids))
			return csl_fail(op, GRPC_STATUS_ALREADY_EXISTS,
			    "the group snapshot '%s' exists of other volumes", g->name);
	} else {
		status = make_group(op, req, g);
		if (status != GRPC_STATUS_OK)
			return status;
	}
	((Csi__V1__CreateVolumeGroupSnapshotResponse *)rep)->group_snapshot = group_answer(op, g);
	return GRPC_STATUS_OK;
}

/* Reads a group and compares its snapshots with the caller's. */
static int
get_group(struct csl_op *op, const char *id, char *const *snapshot_ids, size_t n, CslGroup **ret)
{
	struct err e = { 0 };

	if (id[0] == '\0')
		return csl_invalid(op, "the group snapshot id is missing");
	*ret = csl_store_load(op->csl->store, CSL_GROUP, id, &op->arena, &e);
	if (!*ret)
		return e.code == -ENOENT ? csl_fail(op, GRPC_STATUS_NOT_FOUND, "%s", e.msg)
					 : csl_internal(op, &e);
	if (!same_set((*ret)->snapshot_ids, (*ret)->n_snapshot_ids, snapshot_ids, n))
		return csl_invalid(
		    op, "the snapshot ids are not those of group snapshot %s", (*ret)->id);
	return GRPC_STATUS_OK;
}

int
csl_delete_group(struct csl_op *op, const void *request, void *rep)
{
	const Csi__V1__DeleteVolumeGroupSnapshotRequest *req = request;
	struct err e = { 0 };
	CslGroup *g;
	int status = csl_hold(op, "group", req->group_snapshot_id);

	if (status == GRPC_STATUS_OK)
		status = get_group(
		    op, req->group_snapshot_id, req->snapshot_ids, req->n_snapshot_ids, &g);
	if (status == GRPC_STATUS_NOT_FOUND)
		return GRPC_STATUS_OK;
	for (size_t i = 0; status == GRPC_STATUS_OK && i < g->n_snapshot_ids; i++)
		status = csl_hold(op, "snapshot", g->snapshot_ids[i]);
	if (status == GRPC_STATUS_OK && remove_group(op, g, &e) < 0)
		status = csl_internal(op, &e);
	return status;
}

int
csl_get_group(struct csl_op *op, const void *request, void *rep)
{
	const Csi__V1__GetVolumeGroupSnapshotRequest *req = request;
	CslGroup *g;
	int status =
	    get_group(op, req->group_snapshot_id, req->snapshot_ids, req->n_snapshot_ids, &g);

	if (status == GRPC_STATUS_OK)
		((Csi__V1__GetVolumeGroupSnapshotResponse *)rep)->group_snapshot =
		    group_answer(op, g);
	return status;
}
