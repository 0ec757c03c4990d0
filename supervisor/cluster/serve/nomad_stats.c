// SPDX-License-Identifier: Apache-2.0
/* nomad_stats.c: requests of servers for resource usage of this node and its allocs. Runs in:
 * supervisor. */
#include "supervisor/cluster/serve/nomad_stats.h"

#include "common/cleanup.h"
#include "supervisor/alloc/usage.h"
#include "supervisor/cluster/serve/nomad_requests.h"
#include "supervisor/cluster/rpc/rpc_serve.h"

/* All members are present, as in Go's structs: the command of 1.6 and 2.0 reads each without a
 * check. */
static void
on_usage(struct sup *sup, void *arg, const struct host_stats *host, const struct alloc_usage *alloc,
    const struct err *e)
{
	/* The list is only read, so it can point to the caller's memory. */
	const struct rpc_host_stats_rep of_host = { .host_stats =
							(struct host_stats *)(uintptr_t)host };
	const struct rpc_alloc_usage_rep of_alloc = { .stats =
							  (struct alloc_usage *)(uintptr_t)alloc };
	cleanup_free uint64_t *stream = arg;

	if (host)
		nomad_answer_whole(sup, *stream, &rpc_host_stats_rep_type, &of_host);
	else if (alloc)
		nomad_answer_whole(sup, *stream, &rpc_alloc_usage_rep_type, &of_alloc);
	else
		link_answer(sup, *stream, e->msg, NULL, 0);
}

void
nomad_stats_host(struct sup *sup, uint64_t stream, const void *body, size_t len)
{
	usage_ask_host(sup, on_usage, nomad_keep_stream(stream));
}

void
nomad_stats_alloc(struct sup *sup, uint64_t stream, const void *body, size_t len)
{
	cleanup_done(rpc_task_req) struct rpc_task_req req;
	struct err e = { 0 };
	struct id id;

	rpc_task_req_init(&req);
	if (model_from_msgpack(&rpc_task_req_type, body, len, &req, WIRE_MEMORY_MAX, &e) == 0 &&
	    !id_from_uuid(str(req.alloc_id), &id))
		(void)err_say(&e, -ENOENT, "Unknown allocation \"%.64s\"", str(req.alloc_id));
	if (e.code)
		link_answer(sup, stream, e.msg, NULL, 0);
	else
		usage_ask_alloc(sup, &id, str(req.task), on_usage, nomad_keep_stream(stream));
}
