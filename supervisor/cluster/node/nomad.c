// SPDX-License-Identifier: Apache-2.0
/* nomad.c: a cluster of Nomad servers as a source of work. Runs in: supervisor. */
#include "supervisor/cluster/node/nomad.h"

#include <errno.h>
#include <stdlib.h>

#include "common/mem.h"
#include "supervisor/cluster/acl/acl_token.h"
#include "supervisor/cluster/acl/nomad_acl.h"
#include "supervisor/cluster/acl/nomad_task.h"
#include "supervisor/cluster/api/nomad_mapped.h"
#include "supervisor/cluster/serve/nomad_csi.h"
#include "supervisor/cluster/serve/nomad_requests.h"
#include "supervisor/cluster/serve/nomad_self.h"
#include "supervisor/cluster/node/nomad_allocs.h"
#include "supervisor/cluster/node/nomad_claims.h"
#include "supervisor/cluster/node/nomad_clock.h"
#include "supervisor/cluster/node/nomad_events.h"
#include "supervisor/cluster/node/nomad_needs.h"
#include "supervisor/cluster/node/nomad_leave.h"
#include "supervisor/cluster/node/nomad_node.h"
#include "supervisor/cluster/node/nomad_register.h"
#include "supervisor/cluster/node/nomad_services.h"
#include "supervisor/cluster/node/nomad_sign.h"
#include "supervisor/cluster/node/nomad_update.h"
#include "supervisor/cluster/node/nomad_values.h"
#include "supervisor/cluster/node/nomad_volume_watch.h"
#include "supervisor/cluster/node/nomad_watch.h"
#include "supervisor/node/node_state.h"

static int
load_all(struct source *s, struct err *e)
{
	struct nomad *n = nomad_of(s);
	int r = nomad_register_load(n, e);

	if (r < 0 || (r = nomad_events_load(n, e)) < 0)
		return r;
	r = nomad_allocs_load(n, e);
	return r < 0 ? r : nomad_services_load(n, e);
}

static int
start_all(struct source *s, struct err *e)
{
	nomad_allocs_start(nomad_of(s));
	nomad_services_start(nomad_of(s));
	nomad_node_start(nomad_of(s));
	return 0;
}

static void
on_node_updated(struct source *s)
{
	nomad_node_changed(nomad_of(s));
}

static void
on_node_event(struct source *s, const struct node_event *ev)
{
	nomad_event_add(nomad_of(s));
}

/* In a cluster the servers drain a node; an agent that ends stops its allocs by itself. */
static void
set_drain(struct source *s, bool on)
{
}

static uint64_t
get_index(struct sup *sup)
{
	uint64_t index = nomad_of_sup(sup)->watch_index;

	return index ? index : 1;
}

/* The servers check requests that are passed on to them. */
static void
serve_request(struct sup *sup, struct api_req *req)
{
	if (nomad_api_is_mapped(req))
		api_serve(req);
	else
		nomad_acl_serve(sup, req, api_param(req, 0), NULL);
}

static void
on_identified(struct sup *sup, void *arg, int r, const struct err *e)
{
	if (r != -ECANCELED) /* then the request is gone */
		serve_request(sup, arg);
}

/* The audit log says whose token a request has, so that is found out also for a request that only
 * the servers check. */
static void
admit_request(struct sup *sup, struct api_req *req)
{
	const char *token = str(api_token(req));

	if (sup->audit && *token && nomad_api_is_mapped(req))
		acl_check_always(
		    nomad_of_sup(sup), token, ACL_LIST_JOBS, "default", on_identified, req);
	else
		serve_request(sup, req);
}

static void
nomad_free(struct source *s)
{
	struct nomad *n = nomad_of(s);

	link_free(&n->src);
	nomad_watch_free(n);
	nomad_update_free(n);
	nomad_claims_free(n);
	nomad_volume_watch_free(n);
	nomad_values_free(n);
	nomad_detach_free(n);
	nomad_tasks_free(n);
	acl_tokens_free(n);
	nomad_services_free(n);
	nomad_sign_free(n);
	if (s->sup->allocs)
		nomad_allocs_free(n);
	nomad_node_free(n);
	nomad_events_free(n);
	nomad_leave_free(n);
	nomad_register_free(n);
	free(n);
}

static const struct source_ops nomad_ops = {
	.name = "nomad",
	.health_of_all = true,
	.load = load_all,
	.start = start_all,
	.alloc_updated = nomad_alloc_updated,
	.alloc_destroyed = nomad_alloc_destroyed,
	.collect = nomad_alloc_collect,
	.collect_oldest = nomad_alloc_collect_oldest,
	.node_updated = on_node_updated,
	.node_event = on_node_event,
	.check = nomad_check,
	.claim = nomad_claim,
	.claim_cancel = nomad_claim_cancel,
	.release = nomad_release,
	.services_set = nomad_services_set,
	.watch = nomad_watch_value,
	.unwatch = nomad_unwatch_value,
	.sign = nomad_sign,
	.sign_cancel = nomad_sign_cancel,
	.leave = nomad_leave,
	.deregister = nomad_deregister,
	.come_back = nomad_come_back,
	.set_drain = set_drain,
	.free = nomad_free,
};

static const struct source_api nomad_api = {
	.backend = { .index = get_index,
	    .admit = admit_request,
	    .authenticate = nomad_task_authenticate,
	    .describe = acl_describe,
	    .elsewhere = nomad_elsewhere },
	.handler = nomad_api_handler,
	.remote = true,
	.shows = nomad_acl_shows,
	.server = link_server,
	.server_known = link_server_known,
	.server_lost_since = link_lost_since,
	.clock_ahead_s = nomad_clock_ahead_s,
	.link = link_counts,
};

struct source *
source_nomad_new(struct sup *sup, struct err *e)
{
	struct nomad *n = mem_new(struct nomad);

	n->src.base = (struct source){ .ops = &nomad_ops, .api = &nomad_api, .sup = sup };
	TAILQ_INIT(&n->done);
	TAILQ_INIT(&n->tokens);
	nomad_values_init(n);
	link_new(&n->src, &nomad_link_events, nomad_methods, nomad_acl_gate);
	return &n->src.base;
}
