// SPDX-License-Identifier: Apache-2.0
/* nomad_detach.c: CSI.NodeDetachVolume: servers want to release a claim, which is allowed only if
 * the volume is not mounted. The node unmounts volumes by itself when an alloc ends, never under a
 * running task; after a failure the request retries it. Runs in: supervisor. */
#include <errno.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/mem.h"
#include "supervisor/cluster/rpc/rpc_csi.h"
#include "supervisor/cluster/rpc/rpc_serve.h"
#include "supervisor/cluster/serve/nomad_csi.h"
#include "supervisor/cluster/serve/nomad_requests.h"
#include "supervisor/volume/volumes.h"

#define CHECK_USEC 200000
#define WAIT_MS    100000 /* servers wait for two minutes */

/* A request that waits for the volume to be unmounted. */
struct nomad_detach {
	LIST_ENTRY(nomad_detach) link;
	struct sup *sup;
	uint64_t stream, until_ms;
	char *alloc_id, *namespace, *volume_id;
	unsigned tries; /* failures of the unmount before the request */
	struct sup_timer timer;
};

static void
free_detach(struct nomad_detach *d)
{
	LIST_REMOVE(d, link);
	sup_timer_cancel(&d->timer);
	free(d->alloc_id);
	free(d->namespace);
	free(d->volume_id);
	free(d);
}

static void
refuse_detach(struct sup *sup, uint64_t stream, const struct err *e)
{
	link_answer(sup, stream, e->msg, NULL, 0);
}

static const struct volume_trouble *
find_trouble(const struct nomad_detach *d)
{
	const char *alloc = NULL;
	const struct volume_trouble *t =
	    volume_trouble_of(d->sup, d->namespace, d->volume_id, &alloc);

	return t && str_eq(alloc, d->alloc_id) ? t : NULL;
}

static void
check_detach(void *arg)
{
	struct nomad_detach *d = arg;
	const struct volume_trouble *t = find_trouble(d);
	struct err e = { 0 };

	if (!volume_is_mounted_for(d->sup, d->alloc_id, d->namespace, d->volume_id)) {
		nomad_answer_empty(d->sup, d->stream);
		free_detach(d);
		return;
	}
	if (t && t->tries > d->tries)
		(void)err_say(&e, -EBUSY, "volume %.128s: %s; tried %u times", d->volume_id,
		    t->error, t->tries);
	else if (clock_ms() >= d->until_ms)
		(void)err_say(&e, -EBUSY,
		    "CSI client error (retryable): volume %.128s is still being unmounted for "
		    "allocation %.8s",
		    d->volume_id, d->alloc_id);
	if (e.code < 0) {
		refuse_detach(d->sup, d->stream, &e);
		free_detach(d);
		return;
	}
	sup_timer_set(d->sup, &d->timer, CLOCK_MONOTONIC, CHECK_USEC, check_detach, d);
}

/* Servers before 2.0 do not send the volume's namespace, which is that of the job. */
static void
begin_detach(struct nomad *n, uint64_t stream, const struct rpc_csi_node_req *req,
    const struct sup_alloc *sa)
{
	const char *namespace = *str(req->volume_namespace) ? req->volume_namespace
				: sa                        ? str(sa->job->job.namespace)
							    : "default";
	struct nomad_detach *d = mem_new(struct nomad_detach);
	const struct volume_trouble *t;

	*d = (struct nomad_detach){
		.sup = n->src.base.sup, .stream = stream, .until_ms = clock_ms() + WAIT_MS
	};
	str_set(&d->alloc_id, req->alloc_id);
	str_set(&d->namespace, namespace);
	str_set(&d->volume_id, req->volume_id);
	LIST_INSERT_HEAD(&n->detaches, d, link);
	t = find_trouble(d);
	d->tries = t ? t->tries : 0;
	if (t)
		volume_retry_unmounts(d->sup, namespace, d->volume_id);
	check_detach(d);
}

void
nomad_csi_detach_here(struct sup *sup, uint64_t stream, const void *body, size_t len)
{
	cleanup_done(rpc_csi_node_req) struct rpc_csi_node_req req;
	struct sup_alloc *sa = NULL;
	struct err e = { 0 };
	struct id id;

	rpc_csi_node_req_init(&req);
	if (model_from_msgpack(&rpc_csi_node_req_type, body, len, &req, WIRE_MEMORY_MAX, &e) < 0) {
		refuse_detach(sup, stream, &e);
		return;
	}
	if (id_from_uuid(str(req.alloc_id), &id))
		sa = alloc_find(sup, &id);
	if (sa && !alloc_client_terminal(&sa->a) &&
	    volume_is_mounted_for(sup, sa->a.id, str(sa->job->job.namespace), str(req.volume_id))) {
		(void)err_say(&e, -EBUSY,
		    "CSI client error (retryable): volume %.128s is mounted for allocation %.8s",
		    str(req.volume_id), sa->a.id);
		refuse_detach(sup, stream, &e);
		return;
	}
	begin_detach(nomad_of_sup(sup), stream, &req, sa);
}

void
nomad_detach_free(struct nomad *n)
{
	while (!LIST_EMPTY(&n->detaches))
		free_detach(LIST_FIRST(&n->detaches));
}
