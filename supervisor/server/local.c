// SPDX-License-Identifier: Apache-2.0
/* local.c: the embedded one-node server as a source of work. Runs in: supervisor. */
#include "supervisor/server/local.h"
#include "supervisor/server/feed/local_events.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-event.h>
#include <time.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "supervisor/node/node_state.h"
#include "supervisor/server/deploy/local_deployment.h"
#include "supervisor/core/store.h"
#include "supervisor/server/api/local_api.h"

/* The row of the index is behind what was handed out when the agent ended: by the updates of the
 * client since. */
#define INDEX_GAP 100000

int64_t
local_now_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

uint64_t
local_index_next(struct local *l)
{
	turn_write(l->base.sup, &l->index_row);
	return ++l->index;
}

static int
write_index(struct sup *sup, struct dirty *d, struct err *e)
{
	char text[24];

	(void)snprintf(text, sizeof text, "%" PRIu64, local_of_sup(sup)->index);
	return store_meta_put(sup->store, "local_index", text, e);
}

static int
load_meta(struct local *l, struct err *e)
{
	struct store *store = l->base.sup->store;
	cleanup_free char *index = NULL;
	int r = store_meta_get(store, "local_index", &index, e);

	if (r < 0 && r != -ENOENT)
		return r;
	if (r >= 0)
		l->index = strtoull(index, NULL, 10) + INDEX_GAP;
	local_changes_init(l);
	return local_drain_load(l, e);
}

static int
load(struct source *s, struct err *e)
{
	struct local *l = local_of(s);
	int r;

	if ((r = load_meta(l, e)) < 0 || (r = local_jobs_load(l, e)) < 0 ||
	    (r = local_deployments_load(l, e)) < 0 || (r = local_evals_load(l, e)) < 0 ||
	    (r = local_allocs_load(l, e)) < 0 || (r = local_periodic_load(l, e)) < 0)
		return r;
	return local_volumes_load(l, e);
}

static int
start(struct source *s, struct err *e)
{
	struct local *l = local_of(s);
	int r;

	local_drain_start(l);
	local_reconcile_start(l);
	r = local_age_start(l, e);
	return r < 0 ? r : local_periodic_start(l, e);
}

static void
on_node_updated(struct source *s)
{
	local_node_changed(local_of(s));
	local_mark_node(local_of(s));
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
	struct sup *sup = s->sup;

	l->age = sd_event_source_disable_unref(l->age);
	local_periodic_free(l);
	local_events_free(l);
	if (sup->allocs) {
		alloc_foreach(sup, sa)
		{
			if (local_alloc_of(sa))
				local_alloc_free(l, local_alloc_of(sa));
		}
	}
	while (l->first_eval) {
		struct local_eval *ev = l->first_eval;

		l->first_eval = ev->next;
		turn_forget_write(sup, &ev->row);
		eval_done(&ev->ev);
		free(ev);
	}
	for (size_t i = 0; i < l->jobs.n_buckets; i++) {
		while (l->jobs.buckets[i])
			local_job_free(l, (struct local_job *)(void *)l->jobs.buckets[i]);
	}
	for (size_t i = 0; i < l->volumes.n_buckets; i++) {
		struct local_key *next;

		for (struct local_key *k = l->volumes.buckets[i]; k; k = next) {
			struct local_volume *lv = (struct local_volume *)(void *)k;

			next = k->next;
			turn_forget_write(sup, &lv->row);
			csi_volume_done(&lv->vol);
			free(lv->name);
			free(lv);
		}
	}
	turn_forget_write(sup, &l->index_row);
	local_drain_free(l);
	turn_forget_deferred(sup, &l->wake);
	turn_forget_deferred(sup, &l->marks.pass);
	local_services_free(l);
	local_ports_free(l);
	local_map_done(&l->jobs);
	local_map_done(&l->evals);
	local_map_done(&l->volumes);
	local_map_done(&l->families);
	local_map_done(&l->deployments);
	free(l);
}

static const struct api_route *
get_routes(void)
{
	return local_api_routes;
}

/* A request sees what was decided, whatever happened before it in this turn. */
static void
on_request(struct sup *sup, struct api_req *req)
{
	local_pass_run(local_of_sup(sup));
	api_serve(req);
}

static const struct source_ops local_ops = {
	.name = "local",
	.load = load,
	.start = start,
	.is_lost = local_alloc_stopped_by_lease,
	.alloc_updated = local_alloc_updated,
	.alloc_written = local_alloc_written,
	.alloc_destroyed = local_alloc_destroyed,
	.collect = local_alloc_collect,
	.collect_oldest = local_alloc_collect_oldest,
	.node_updated = on_node_updated,
	.claim = local_volume_claim,
	.release = local_volume_release,
	.services_set = local_services_set,
	.set_drain = local_set_drain,
	.why = local_why,
	.free = local_free,
};

static const struct source_api local_api = {
	.backend = { .index = get_index,
		.index_of = local_index_of,
		.admit = on_request,
		.elsewhere = local_elsewhere },
	.routes = get_routes,
};

struct source *
source_local_new(struct sup *sup, struct err *e)
{
	struct local *l = calloc(1, sizeof *l);

	if (!l) {
		(void)err_set(e, -ENOMEM, "start the local source");
		return NULL;
	}
	l->base = (struct source){ .ops = &local_ops, .api = &local_api, .sup = sup };
	l->index = 1;
	l->timer_fd = -1;
	l->index_row.write = write_index;
	l->index_row.point = CRASH_ROW_INDEX;
	local_drain_init(l);
	local_changes_init(l);
	local_pass_init(l);
	return &l->base;
}
