// SPDX-License-Identifier: Apache-2.0
/* nomad_requests.c: requests of servers to this node and its allocs. Runs in: supervisor. */
#include "supervisor/cluster/serve/nomad_requests.h"

#include <errno.h>
#include <stdio.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "supervisor/alloc/alloc_orders.h"
#include "supervisor/alloc/hook_checks.h"
#include "supervisor/cluster/serve/nomad_csi.h"
#include "supervisor/cluster/serve/nomad_self.h"
#include "supervisor/cluster/serve/nomad_stats.h"
#include "supervisor/cluster/node/nomad_allocs.h"
#include "supervisor/cluster/rpc/rpc_serve.h"

static void
answer_with(struct sup *sup, uint64_t stream, const struct type *type, const void *rep,
    enum model_flags flags)
{
	struct text body = { 0 };

	model_to_msgpack(type, rep, flags, &body);
	link_answer(sup, stream, NULL, body.text, body.len);
	text_done(&body);
}

void
nomad_answer(struct sup *sup, uint64_t stream, const struct type *type, const void *rep)
{
	answer_with(sup, stream, type, rep, MODEL_COMPACT);
}

void
nomad_answer_whole(struct sup *sup, uint64_t stream, const struct type *type, const void *rep)
{
	answer_with(sup, stream, type, rep, 0);
}

void
nomad_answer_empty(struct sup *sup, uint64_t stream)
{
	static const uint8_t empty_map = 0x80;

	link_answer(sup, stream, NULL, &empty_map, 1);
}

uint64_t *
nomad_keep_stream(uint64_t stream)
{
	uint64_t *kept = mem_new(uint64_t);

	*kept = stream;
	return kept;
}

static void
refuse_request(struct sup *sup, uint64_t stream, const struct err *e)
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
		refuse_request(sup, stream, &e);
		return NULL;
	}
	if (id_from_uuid(str(req->alloc_id), &id))
		sa = alloc_find(sup, &id);
	if (!sa) {
		(void)err_say(&e, -ENOENT, "Unknown allocation \"%.64s\"", str(req->alloc_id));
		refuse_request(sup, stream, &e);
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
restart_alloc(struct sup *sup, uint64_t stream, const void *body, size_t len)
{
	cleanup_done(rpc_task_req) struct rpc_task_req req;
	struct sup_alloc *sa = take_request(sup, stream, body, len, &req);
	struct err e = { 0 };

	if (!sa)
		return;
	turn_durable(sup);
	if (alloc_restart(sa, str(req.task_name), req.all_tasks, &e) < 0)
		refuse_request(sup, stream, &e);
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
		refuse_request(sup, stream, &e);
	else
		answer_index(sup, stream);
}

/* Checks. */

static void
answer_checks(struct sup *sup, uint64_t stream, const void *body, size_t len)
{
	cleanup_done(rpc_task_req) struct rpc_task_req req;
	cleanup_done(rpc_checks_rep) struct rpc_checks_rep rep;
	struct sup_alloc *sa = take_request(sup, stream, body, len, &req);

	rpc_checks_rep_init(&rep);
	if (!sa)
		return;
	for (const struct check *c = sa->runner ? checks_next(alloc_checks(sa->runner), NULL)
						: NULL;
	     c; c = checks_next(alloc_checks(sa->runner), c)) {
		const struct check_result *res = check_result(c);

		check_result_copy(res, map_put(check_result, &rep.results, str(res->id)));
	}
	nomad_answer(sup, stream, &rpc_checks_rep_type, &rep);
}

/* Garbage collection. */

static void
collect_alloc(struct sup *sup, uint64_t stream, const void *body, size_t len)
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

/* A method for a CSI plugin, under the names of newer and older servers, which call it without a
 * token. */
#define CSI(method, fn)                                                                            \
	{ "CSI." method, false, fn, ACL_OPEN },                                                    \
	{                                                                                          \
		"ClientCSI." method, false, fn, ACL_OPEN                                           \
	}

/* Name, whether it is streaming, function, permission. */
const struct link_method nomad_methods[] = {
	{ "Allocations.Restart", false, restart_alloc, ACL_LIFECYCLE },
	{ "Allocations.Signal", false, signal_alloc, ACL_LIFECYCLE },
	{ "Allocations.Stats", false, nomad_stats_alloc, ACL_READ_JOB },
	{ "Allocations.Checks", false, answer_checks, ACL_READ_JOB },
	{ "Allocations.Exec", true, nomad_exec, ACL_EXEC },
	{ "ClientStats.Stats", false, nomad_stats_host, ACL_NODE_READ },
	{ "Allocations.GarbageCollect", false, collect_alloc, ACL_COLLECT },
	{ "Allocations.GarbageCollectAll", false, collect_all, ACL_NODE_WRITE },
	{ "FileSystem.List", false, nomad_fs_list, ACL_READ_FS },
	{ "FileSystem.Stat", false, nomad_fs_stat, ACL_READ_FS },
	{ "FileSystem.Stream", true, nomad_fs_stream, ACL_READ_FS },
	{ "FileSystem.Logs", true, nomad_fs_logs, ACL_READ_LOGS },
	{ "Agent.Host", false, nomad_self_host, ACL_AGENT_READ },
	{ "Agent.Monitor", true, nomad_monitor, ACL_AGENT_READ },
	{ "Agent.MonitorExport", true, nomad_monitor_export, ACL_AGENT_READ },
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
	{ "NodeMeta.Apply", false, nomad_self_apply_meta, ACL_NODE_WRITE },
	{ "NodeMeta.Read", false, nomad_self_read_meta, ACL_NODE_READ },
	{ "NodeIdentity.Get", false, nomad_self_get_identity, ACL_NODE_READ },
	{ "NodeIdentity.Renew", false, nomad_self_renew_identity, ACL_NODE_WRITE },
	{ 0 },
};
