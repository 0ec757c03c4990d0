// SPDX-License-Identifier: Apache-2.0
/* local_fit.c: checks whether an alloc fits on the node beside the other allocs. Runs in:
 * supervisor. */
#include "supervisor/server/place/local_fit.h"

#include <errno.h>

#include "common/clock.h"
#include "supervisor/node/node_state.h"
#include "supervisor/server/capacity/local_ports.h"
#include "supervisor/server/claim/local_claims.h"
#include "supervisor/server/job/local_allocs.h"
#include "supervisor/server/job/local_slots.h"
#include "supervisor/server/place/local_drain.h"
#include "supervisor/server/place/local_fit_node.h"

static bool
volumes_can_be_claimed(struct local *l, const struct local_fit *f)
{
	for (size_t i = 0; i < f->group->volumes.n; i++) {
		const struct volume_request *vr = &f->group->volumes.v[i].value;
		struct err e = { 0 };

		if (vr->type == VOLUME_CSI &&
		    local_claim_check(l, f->job->namespace, f->index, vr, &e) < 0)
			return local_fit_add_filtered(f, "%s", e.msg);
	}
	return true;
}

static bool
ports_are_free(struct local *l, const struct local_fit *f, struct local_shortage *shortage)
{
	cleanup_done(alloc_resources) struct alloc_resources tried;
	struct err e = { 0 };
	int r;

	alloc_resources_init(&tried);
	r = local_ports_fill(l, &tried, f->group, shortage, &e);
	if (r == -ENOENT)
		return local_fit_add_filtered(f, "%s", e.msg);
	return r == 0 || local_fit_add_exhausted(f, e.msg);
}

struct local_peers
local_peers_count(const struct local_job *j, const char *group)
{
	struct local_peers peers = { 0 };
	const struct local_alloc *la;

	if (!j)
		return peers;
	LIST_FOREACH (la, &j->allocs, of_job) {
		if (la->over || la->sa->a.desired_status != DESIRED_RUN)
			continue;
		peers.of_job++;
		peers.of_group += str_eq(la->sa->a.task_group, group);
	}
	return peers;
}

bool
local_fit_check(struct local *l, const struct local_beside *beside, const struct job *job,
    const char *group, int64_t index, struct alloc_metric *m, struct local_shortage *ret_shortage)
{
	int64_t began = clock_real_ns();
	struct local_shortage shortage = { .kind = LOCAL_SHORT_OTHER };
	const struct local_fit f = { .node = node_get(l->base.sup),
		.job = job,
		.group = job_group(job, group),
		.index = index,
		.m = m };
	bool fits = false;

	if (local_fit_datacenter(&f) && !local_drain_is_on(l)) {
		m->nodes_evaluated = 1;
		fits = local_fit_node(&f) && local_fit_peers(&f, &beside->peers) &&
		       volumes_can_be_claimed(l, &f) &&
		       local_fit_usage(&f, &beside->used, &shortage) &&
		       ports_are_free(l, &f, &shortage);
		m->allocation_time = clock_real_ns() - began;
	}
	if (ret_shortage)
		*ret_shortage = shortage;
	return fits;
}
