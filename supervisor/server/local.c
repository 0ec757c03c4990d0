// SPDX-License-Identifier: Apache-2.0
/* local.c: the embedded one-node server as a source of work: puts its rooms together. Runs in:
 * supervisor. */
#include <stdlib.h>

#include "common/mem.h"
#include "supervisor/server/acl/local_acl.h"
#include "supervisor/server/acl/local_identity.h"
#include "supervisor/server/api/local_api.h"
#include "supervisor/server/api/local_gate.h"
#include "supervisor/server/capacity/local_cores.h"
#include "supervisor/server/capacity/local_ports.h"
#include "supervisor/server/claim/local_attach.h"
#include "supervisor/server/claim/local_claims.h"
#include "supervisor/server/claim/local_release.h"
#include "supervisor/server/claim/local_expand.h"
#include "supervisor/server/claim/local_services.h"
#include "supervisor/server/deploy/local_deployment.h"
#include "supervisor/server/drive/local_age.h"
#include "supervisor/server/drive/local_client.h"
#include "supervisor/server/drive/local_pass.h"
#include "supervisor/server/drive/local_periodic.h"
#include "supervisor/server/feed/local_changes.h"
#include "supervisor/server/feed/local_events.h"
#include "supervisor/server/job/local_family.h"
#include "supervisor/server/job/local_marks.h"
#include "supervisor/server/job/local_namespaces.h"
#include "supervisor/server/place/local_drain.h"
#include "supervisor/server/place/local_unplaced.h"
#include "supervisor/server/place/local_why.h"
#include "supervisor/server/sign/local_keys.h"
#include "supervisor/server/sign/local_sign.h"
#include "supervisor/server/variable/local_values.h"
#include "supervisor/server/variable/local_variables.h"
#include "supervisor/source/source_api.h"

/* The parts of struct local. Each is made after the parts that it uses, and freed before them. */
static const struct {
	void (*init)(struct local *l);
	void (*free)(struct local *l);
} parts[] = {
	{ local_index_init, local_index_free },
	{ local_changes_init, local_changes_free },
	{ local_events_init, local_events_free },
	{ local_event_streams_init, local_event_streams_free },
	{ local_keys_init, local_keys_free },
	{ local_signings_init, local_signings_free },
	{ local_identities_init, local_identities_free },
	{ local_acl_init, local_acl_free },
	{ local_usage_init, local_usage_free },
	{ local_cores_init, local_cores_free },
	{ local_ports_init, local_ports_free },
	{ local_pass_init, local_marks_free },
	{ local_namespaces_init, local_namespaces_free },
	{ local_families_init, local_families_free },
	{ local_jobs_init, local_jobs_free },
	{ local_evals_init, local_evals_free },
	{ local_allocs_init, local_allocs_free },
	{ local_volumes_init, local_volumes_free },
	{ local_releases_init, local_releases_free },
	{ local_services_init, local_services_free },
	{ local_variables_init, local_variables_free },
	{ local_values_init, local_values_free },
	{ local_deployments_init, local_deployments_free },
	{ local_unplaced_init, local_unplaced_free },
	{ local_drain_init, local_drain_free },
	{ local_periodic_init, local_periodic_free },
};

static int
load_parts(struct source *s, struct err *e)
{
	struct local *l = local_of(s);
	int r;

	if ((r = local_index_load(l, e)) < 0)
		return r;
	local_changes_load(l);
	if ((r = local_drain_load(l, e)) < 0 || (r = local_namespaces_load(l, e)) < 0 ||
	    (r = local_keys_load(l, e)) < 0 || (r = local_acl_load(l, e)) < 0 ||
	    (r = local_jobs_load(l, e)) < 0 || (r = local_deployments_load(l, e)) < 0 ||
	    (r = local_evals_load(l, e)) < 0 || (r = local_allocs_load(l, e)) < 0 ||
	    (r = local_periodic_load(l, e)) < 0 || (r = local_volumes_load(l, e)) < 0 ||
	    (r = local_variables_load(l, e)) < 0)
		return r;
	local_claims_load(l);
	local_expand_resume(l);
	return 0;
}

static int
start_parts(struct source *s, struct err *e)
{
	struct local *l = local_of(s);

	local_releases_start(l);
	local_drain_start(l);
	local_pass_start(l);
	local_age_start(l);
	return local_periodic_start(l, e);
}

static void
on_node_updated(struct source *s)
{
	local_node_changed(local_of(s));
	local_mark_node(local_of(s));
}

static void
on_node_event(struct source *s, const struct node_event *ev)
{
	local_node_changed(local_of(s));
}

static uint64_t
get_index(struct sup *sup)
{
	return local_of_sup(sup)->index;
}

static void
local_free(struct source *s)
{
	struct local *l = local_of(s);

	local_age_free(l);
	for (size_t i = ELEMENTSOF(parts); i > 0; i--)
		parts[i - 1].free(l);
	free(l);
}

/* Decides about all earlier changes of this turn, so that the request sees the result. */
static void
on_request(struct sup *sup, struct api_req *req)
{
	if (!local_gate_admit(sup, req))
		return;
	local_pass_run(local_of_sup(sup));
	api_serve(req);
}

static const struct source_ops local_ops = {
	.name = "local",
	.load = load_parts,
	.start = start_parts,
	.is_lost = local_alloc_stopped_by_lease,
	.alloc_updated = local_alloc_updated,
	.alloc_written = local_alloc_written,
	.alloc_destroyed = local_alloc_destroyed,
	.collect = local_alloc_collect,
	.collect_oldest = local_alloc_collect_oldest,
	.node_updated = on_node_updated,
	.node_event = on_node_event,
	.claim = local_claim_acquire,
	.claim_cancel = local_attach_cancel,
	.release = local_claim_release,
	.services_set = local_services_set,
	.sign = local_sign,
	.sign_cancel = local_sign_cancel,
	.watch = local_watch,
	.unwatch = local_unwatch,
	.set_drain = local_set_drain,
	.why = local_why,
	.free = local_free,
};

static const struct source_api local_api = {
	.backend = { .index = get_index,
	    .index_of = local_index_of,
	    .admit = on_request,
	    .authenticate = local_gate_authenticate,
	    .permits = local_gate_permits,
	    .describe = local_gate_describe,
	    .elsewhere = local_elsewhere },
	.handler = local_api_handler,
	.shows = local_gate_shows,
};

struct source *
source_local_new(struct sup *sup, struct err *e)
{
	struct local *l = mem_new(struct local);

	l->base = (struct source){ .ops = &local_ops, .api = &local_api, .sup = sup };
	for (size_t i = 0; i < ELEMENTSOF(parts); i++)
		parts[i].init(l);
	return &l->base;
}
