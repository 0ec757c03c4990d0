// SPDX-License-Identifier: Apache-2.0
/* nomad_requests.c: requests of servers to this node and its allocs. Runs in: supervisor. */
#include "supervisor/cluster/asked/nomad_requests.h"

#include <errno.h>
#include <stdio.h>

#include "common/cleanup.h"
#include "supervisor/alloc/alloc_orders.h"
#include "supervisor/alloc/alloc_runner.h"
#include "supervisor/alloc/hook_checks.h"
#include "supervisor/cluster/asked/nomad_csi.h"
#include "supervisor/cluster/asked/nomad_self.h"
#include "supervisor/cluster/asked/nomad_stats.h"
#include "supervisor/cluster/node/nomad_allocs.h"
#include "supervisor/cluster/rpc/rpc_serve.h"

void
nomad_answer(struct sup *sup, uint64_t stream, const struct type *type, const void *rep)
{
	struct text body = { 0 };

	model_to_msgpack(type, rep, MODEL_COMPACT, &body);
	link_answer(sup, stream, NULL, body.text, body.len);
	text_done(&body);
}

void
nomad_answer_empty(struct sup *sup, uint64_t stream)
{
	static const uint8_t empty_map = 0x80;

	link_answer(sup, stream, NULL, &empty_map, 1);
}

static void
refuse(struct sup *sup, uint64_t stream, const struct err *e)
{
	link_answer(sup, stream, e->msg, NULL, 0);
}

/* Finds the alloc that the request names; NULL if the request was answered with an error. */
static struct sup_alloc *
take_request(
    struct sup *sup, uint64_t stream, const void *body, size_t len, struct rpc_task_req *req)
{
	struct sup_alloc *sa = NULL;
	struct err e = { 0 };
	struct id id;

	rpc_task_req_init(req);
	if (model_from_msgpack(&rpc_task_req_type, body, len, req, WIRE_MEMORY_MAX, &e) < 0) {
		refuse(sup, stream, &e);
		return NULL;
	}
	if (id_from_uuid(str(req->alloc_id), &id))
		sa = alloc_find(sup, &id);
	if (!sa) {
		(void)err_say(&e, -ENOENT, "Unknown allocation \"%.64s\"", str(req->alloc_id));
		refuse(sup, stream, &e);
	}
	return sa;
}

static void
answer_index(struct sup *sup, uint64_t stream)
{
	const struct rpc_meta_rep rep = { 0 };

	nomad_answer(sup, stream, &rpc_meta_rep_type, &rep);
}

/* Restart and signal. */

static void
restart(struct sup *sup, uint64_t stream, const void *body, size_t len)
{
	cleanup_done(rpc_task_req) struct rpc_task_req req;
	struct sup_alloc *sa = take_request(sup, stream, body, len, &req);
	struct err e = { 0 };

	if (!sa)
		return;
	turn_durable(sup);
	if (alloc_restart(sa, str(req.task_name), req.all_tasks, &e) < 0)
		refuse(sup, stream, &e);
	else
		answer_index(sup, stream);
}

static void
signal_alloc(struct sup *sup, uint64_t stream, const void *body, size_t len)
{
	cleanup_done(rpc_task_req) struct rpc_task_req req;
	struct sup_alloc *sa = take_request(sup, stream, body, len, &req);
	struct err e = { 0 };

	if (!sa)
		return;
	if (alloc_signal(sa, str(req.task), str(req.signal), "the servers", &e) < 0)
		refuse(sup, stream, &e);
	else
		answer_index(sup, stream);
}

/* Checks. */

static int
add_result(struct rpc_checks_rep *rep, const struct check_result *res)
{
	struct check_result *copy = map_put(check_result, &rep->results, str(res->id));

	return copy ? check_result_copy(res, copy) : -ENOMEM;
}

static void
answer_checks(struct sup *sup, uint64_t stream, const void *body, size_t len)
{
	cleanup_done(rpc_task_req) struct rpc_task_req req;
	cleanup_done(rpc_checks_rep) struct rpc_checks_rep rep;
	struct sup_alloc *sa = take_request(sup, stream, body, len, &req);
	int r = 0;

	rpc_checks_rep_init(&rep);
	if (!sa)
		return;
	for (const struct check *c = sa->runner ? checks_next(alloc_checks(sa->runner), NULL)
						: NULL;
	     c && r == 0; c = checks_next(alloc_checks(sa->runner), c))
		r = add_result(&rep, check_result(c));
	if (r < 0)
		link_answer(sup, stream, "out of memory for the answer", NULL, 0);
	else
		nomad_answer(sup, stream, &rpc_checks_rep_type, &rep);
}

/* Garbage collection. */

static void
collect(struct sup *sup, uint64_t stream, const void *body, size_t len)
{
	cleanup_done(rpc_task_req) struct rpc_task_req req;
	struct sup_alloc *sa = take_request(sup, stream, body, len, &req);

	if (!sa)
		return;
	if (nomad_alloc_collect(sup->source, sa))
		answer_index(sup, stream);
	else
		link_answer(sup, stream,
		    "No such allocation on client, or allocation not eligible for GC", NULL, 0);
}

static void
collect_all(struct sup *sup, uint64_t stream, const void *body, size_t len)
{
	alloc_foreach(sup, sa)
	{
		(void)nomad_alloc_collect(sup->source, sa);
	}
	answer_index(sup, stream);
}

/* Older servers use the service name of their own side. */
#define CSI(method, fn)                                                                            \
	{ "CSI." method, false, fn },                                                              \
	{                                                                                          \
		"ClientCSI." method, false, fn                                                     \
	}

const struct link_method nomad_methods[] = {
	{ "Allocations.Restart", false, restart },
	{ "Allocations.Signal", false, signal_alloc },
	{ "Allocations.Stats", false, nomad_stats_alloc },
	{ "Allocations.Checks", false, answer_checks },
	{ "Allocations.Exec", true, nomad_exec },
	{ "ClientStats.Stats", false, nomad_stats_host },
	{ "Allocations.GarbageCollect", false, collect },
	{ "Allocations.GarbageCollectAll", false, collect_all },
	{ "FileSystem.List", false, nomad_fs_list },
	{ "FileSystem.Stat", false, nomad_fs_stat },
	{ "FileSystem.Stream", true, nomad_fs_stream },
	{ "FileSystem.Logs", true, nomad_fs_logs },
	{ "Agent.Host", false, nomad_self_host },
	{ "Agent.Monitor", true, nomad_monitor },
	{ "Agent.MonitorExport", true, nomad_monitor_export },
	CSI("ControllerValidateVolume", nomad_csi_validate_volume),
	CSI("ControllerAttachVolume", nomad_csi_attach_volume),
	CSI("ControllerDetachVolume", nomad_csi_detach_volume),
	CSI("ControllerCreateVolume", nomad_csi_create_volume),
	CSI("ControllerDeleteVolume", nomad_csi_delete_volume),
	CSI("ControllerExpandVolume", nomad_csi_expand_volume),
	CSI("ControllerListVolumes", nomad_csi_list_volumes),
	CSI("ControllerCreateSnapshot", nomad_csi_create_snapshot),
	CSI("ControllerDeleteSnapshot", nomad_csi_delete_snapshot),
	CSI("ControllerListSnapshots", nomad_csi_list_snapshots),
	CSI("NodeDetachVolume", nomad_csi_detach_here),
	CSI("NodeExpandVolume", nomad_csi_expand_here),
	{ "NodeMeta.Apply", false, nomad_self_apply_meta },
	{ "NodeMeta.Read", false, nomad_self_read_meta },
	{ "NodeIdentity.Get", false, nomad_self_get_identity },
	{ "NodeIdentity.Renew", false, nomad_self_renew_identity },
	{ 0 },
};
