// SPDX-License-Identifier: Apache-2.0
/* csl_snapshot.c: the Controller service: snapshots, which are copies. Runs in: drover-csi-local.
 */
#include <errno.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "contrib/csi-local/csl_check.h"
#include "contrib/csi-local/csl_loop.h"
#include "contrib/csi-local/csl_volume.h"

Csi__V1__Snapshot *
csl_snapshot_answer(struct csl_op *op, const CslSnapshot *s)
{
	Csi__V1__Snapshot *a = csl_alloc(&op->arena, 1, sizeof *a);

	csi__v1__snapshot__init(a);
	a->size_bytes = s->size_bytes;
	a->snapshot_id = s->id;
	a->source_volume_id = s->source_volume_id;
	a->creation_time = csl_alloc(&op->arena, 1, sizeof *a->creation_time);
	csi__v1__timestamp__init(a->creation_time);
	a->creation_time->seconds = s->created_ns / 1000000000;
	a->creation_time->nanos = (int32_t)(s->created_ns % 1000000000);
	a->ready_to_use = true;
	a->group_snapshot_id = s->group_id;
	return a;
}

static int
store_snapshot(struct csl_op *op, CslSnapshot *s, struct err *e)
{
	struct csl_store *store = op->csl->store;
	int r;

	s->unfinished = true;
	r = csl_store_save(store, CSL_SNAPSHOT, s, e);
	if (r == 0)
		r = csl_store_copy_data(
		    store, CSL_VOLUME, s->source_volume_id, CSL_SNAPSHOT, s->id, e);
	s->unfinished = false;
	if (r == 0)
		r = csl_store_save(store, CSL_SNAPSHOT, s, e);
	if (r < 0)
		(void)csl_store_remove(store, CSL_SNAPSHOT, s->id, NULL);
	return r;
}

int
csl_snapshot_make(struct csl_op *op, const char *volume_id, const char *name, const char *group,
    int64_t created_ns, CslSnapshot **ret)
{
	CslSnapshot *s = csl_alloc(&op->arena, 1, sizeof *s);
	cleanup_close int fd = -1;
	struct id id = id_random();
	char hex[ID_HEX_SIZE];
	struct err e = { 0 };
	CslVolume *v;
	int status = csl_volume_get(op, volume_id, &v);

	if (status != GRPC_STATUS_OK)
		return status;
	id_to_hex(&id, hex);
	csl_snapshot__init(s);
	s->version = 1;
	s->id = csl_copy(&op->arena, hex);
	s->name = csl_copy(&op->arena, name);
	s->size_bytes = v->capacity_bytes;
	s->source_volume_id = v->id;
	s->created_ns = created_ns;
	s->block = v->block;
	s->group_id = csl_copy(&op->arena, group);
	if (v->block) {
		fd = csl_store_data(op->csl->store, CSL_VOLUME, v->id, true, &e);
		if (fd < 0 || csl_loop_sync(fd, &e) < 0)
			return csl_internal(op, &e);
	}
	if (store_snapshot(op, s, &e) < 0)
		return csl_internal(op, &e);
	*ret = s;
	return GRPC_STATUS_OK;
}

int
csl_create_snapshot(struct csl_op *op, const void *request, void *rep)
{
	const Csi__V1__CreateSnapshotRequest *req = request;
	char id[ID_HEX_SIZE];
	struct err e = { 0 };
	CslSnapshot *s;
	int status = csl_check_name(op, "snapshot", req->name);

	if (status == GRPC_STATUS_OK && req->source_volume_id[0] == '\0')
		status = csl_invalid(op, "the source volume id is missing");
	if (status == GRPC_STATUS_OK && req->n_parameters > 0)
		status = csl_invalid(op, "unknown parameter '%.64s'", req->parameters[0]->key);
	if (status == GRPC_STATUS_OK)
		status = csl_hold(op, "snapshot-name", req->name);
	if (status != GRPC_STATUS_OK)
		return status;
	if (csl_store_find(op->csl->store, CSL_SNAPSHOT, req->name, id)) {
		s = csl_store_load(op->csl->store, CSL_SNAPSHOT, id, &op->arena, &e);
		if (!s)
			return csl_internal(op, &e);
		if (strcmp(s->source_volume_id, req->source_volume_id) != 0)
			return csl_fail(op, GRPC_STATUS_ALREADY_EXISTS,
			    "the snapshot '%s' exists of another volume, %s", s->name,
			    s->source_volume_id);
	} else {
		status = csl_hold(op, "controller", req->source_volume_id);
		if (status == GRPC_STATUS_OK)
			status = csl_snapshot_make(
			    op, req->source_volume_id, req->name, "", clock_real_ns(), &s);
		if (status != GRPC_STATUS_OK)
			return status;
	}
	((Csi__V1__CreateSnapshotResponse *)rep)->snapshot = csl_snapshot_answer(op, s);
	return GRPC_STATUS_OK;
}

int
csl_delete_snapshot(struct csl_op *op, const void *request, void *rep)
{
	const Csi__V1__DeleteSnapshotRequest *req = request;
	struct err e = { 0 };
	const CslSnapshot *s;
	int status;

	if (req->snapshot_id[0] == '\0')
		return csl_invalid(op, "the snapshot id is missing");
	status = csl_hold(op, "snapshot", req->snapshot_id);
	if (status != GRPC_STATUS_OK)
		return status;
	s = csl_store_load(op->csl->store, CSL_SNAPSHOT, req->snapshot_id, &op->arena, &e);
	if (!s)
		return e.code == -ENOENT ? GRPC_STATUS_OK : csl_internal(op, &e);
	if (s->group_id[0] != '\0')
		return csl_invalid(op,
		    "snapshot %s belongs to the group %s and can only be deleted with it", s->id,
		    s->group_id);
	return csl_store_remove(op->csl->store, CSL_SNAPSHOT, s->id, &e) < 0 ? csl_internal(op, &e)
									     : GRPC_STATUS_OK;
}

/* Adds the snapshot to the list if it passes the filters. */
static void
list_snapshot(struct csl_op *op, const Csi__V1__ListSnapshotsRequest *req, const CslSnapshot *s,
    Csi__V1__ListSnapshotsResponse *r)
{
	Csi__V1__ListSnapshotsResponse__Entry *entry;

	if ((req->snapshot_id[0] != '\0' && strcmp(req->snapshot_id, s->id) != 0) ||
	    (req->source_volume_id[0] != '\0' &&
		strcmp(req->source_volume_id, s->source_volume_id) != 0))
		return;
	if (req->max_entries > 0 && r->n_entries == (size_t)req->max_entries) {
		r->next_token = s->id;
		return;
	}
	entry = csl_alloc(&op->arena, 1, sizeof *entry);
	csi__v1__list_snapshots_response__entry__init(entry);
	entry->snapshot = csl_snapshot_answer(op, s);
	r->entries = csl_grown(&op->arena, r->entries, r->n_entries);
	r->entries[r->n_entries++] = entry;
}

int
csl_list_snapshots(struct csl_op *op, const void *request, void *rep)
{
	const Csi__V1__ListSnapshotsRequest *req = request;
	Csi__V1__ListSnapshotsResponse *r = rep;
	char(*ids)[ID_HEX_SIZE];
	const CslSnapshot *s;
	struct id token;
	struct err e;
	size_t n;

	if (req->max_entries < 0)
		return csl_invalid(op, "max_entries is negative");
	if (req->starting_token[0] != '\0' && !id_from_hex(req->starting_token, &token))
		return csl_fail(op, GRPC_STATUS_ABORTED, "the starting token is invalid");
	n = csl_store_list(op->csl->store, CSL_SNAPSHOT, req->starting_token, 0, &op->arena, &ids);
	for (size_t i = 0; i < n && r->next_token[0] == '\0'; i++) {
		s = csl_store_load(op->csl->store, CSL_SNAPSHOT, ids[i], &op->arena, &e);
		if (s) /* not deleted meanwhile */
			list_snapshot(op, req, s, r);
	}
	return GRPC_STATUS_OK;
}
