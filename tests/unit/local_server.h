/* SPDX-License-Identifier: Apache-2.0 */
/*
 * local_server.h: the books of the embedded server and its decisions, without an agent: nothing is
 * written, no timer runs, and the client only counts what it is asked. The test is the client: it
 * ends allocs with end_alloc(). Runs in: unit tests.
 */
#ifndef DROVER_TESTS_LOCAL_SERVER_H
#define DROVER_TESTS_LOCAL_SERVER_H

#include <string.h>

#include "common/clock.h"
#include "supervisor/alloc/client.h"
#include "supervisor/api/api_node.h"
#include "supervisor/core/changed.h"
#include "supervisor/core/sup_tidy.h"
#include "supervisor/core/sup_timer.h"
#include "supervisor/driver/container.h"
#include "supervisor/http/api_wait.h"
#include "supervisor/node/node_state.h"
#include "supervisor/server/capacity/local_cores.h"
#include "supervisor/server/capacity/local_ports.h"
#include "supervisor/server/claim/local_volumes.h"
#include "supervisor/server/deploy/local_deployment.h"
#include "supervisor/server/deploy/local_rollout.h"
#include "supervisor/server/feed/local_changes.h"
#include "supervisor/server/feed/local_events.h"
#include "supervisor/server/job/local_allocs.h"
#include "supervisor/server/job/local_evals.h"
#include "supervisor/server/job/local_family.h"
#include "supervisor/server/job/local_marks.h"
#include "supervisor/server/place/local_drain.h"
#include "supervisor/server/place/local_reconcile.h"
#include "supervisor/server/place/local_retry.h"
#include "supervisor/server/place/local_unplaced.h"
#include "supervisor/volume/plugin_hold.h"
#include "supervisor/volume/plugins.h"
#include "supervisor/volume/controller_calls.h"
#include "supervisor/volume/volumes.h"
#include "tests/unit/unit.h"

static struct sup sup;
static struct local local;
static struct node node;
static struct agent_config config;
static struct {
	unsigned started, updated, destroyed; /* calls of the client */
	unsigned timers;                      /* that were set */
	void (*on_timer)(void *arg);          /* the last one */
	void *timer_arg;
} seen;

void
turn_write(struct sup *s, struct dirty *d)
{
}

void
turn_durable(struct sup *s)
{
}

void
turn_defer(struct sup *s, struct deferred *d)
{
}

void
turn_before_commit(struct sup *s, struct deferred *d)
{
}

void
turn_forget_write(struct sup *s, struct dirty *d)
{
}

void
turn_forget_deferred(struct sup *s, struct deferred *d)
{
}

bool
turn_is_stuck(struct sup *s, const char **ret)
{
	return false;
}

void
sup_timer_set(struct sup *s, struct sup_timer *t, clockid_t clock, uint64_t after_usec,
    void (*fn)(void *arg), void *arg)
{
	seen.timers++;
	seen.on_timer = fn;
	seen.timer_arg = arg;
}

void
tidy_count(struct sup *s)
{
}

void
tidy_secret(struct sup *s)
{
	(void)s;
}

void
sup_timer_cancel(struct sup_timer *t)
{
}

bool
container_has_network(const struct task_group *group, const struct task *task)
{
	return false;
}

const struct node *
node_get(struct sup *s)
{
	return &node;
}

const char *
node_ip(struct sup *s)
{
	return "127.0.0.1";
}

void
client_alloc_run(struct sup *s, struct sup_alloc *sa)
{
	seen.started++;
}

void
client_alloc_update(struct sup *s, struct sup_alloc *sa)
{
	seen.updated++;
}

void
client_alloc_destroy(struct sup *s, struct sup_alloc *sa)
{
	seen.destroyed++;
}

bool
client_alloc_ended(const struct sup_alloc *sa)
{
	return alloc_client_terminal(&sa->a);
}

void
client_stop_all(struct sup *s, const struct client_stop *stop)
{
}

void
client_stop_no_more(struct sup *s)
{
}

void
node_set_drain(struct sup *s, const struct drain_strategy *drain)
{
}

void
node_set_takes_allocs(struct sup *s, bool takes)
{
}

void
api_node_print(struct sup *s, enum model_flags flags, struct text *t)
{
}

void
api_wait_check(struct sup *s)
{
}

struct plugin *
plugin_next(struct sup *s, struct plugin *p)
{
	return NULL;
}

const char *
plugin_id(const struct plugin *p)
{
	return "";
}

const struct csi_info *
plugin_controller_info(const struct plugin *p)
{
	return NULL;
}

int
plugin_check_node_expands(struct sup *s, const char *id, struct err *e)
{
	return 0;
}

const struct csi_info *
plugin_node_info(const struct plugin *p)
{
	return NULL;
}

void
volume_plan(struct sup *s, struct sup_alloc *sa, const struct volume_request *request,
    const struct csi_volume *volume)
{
}

bool
volume_get_mounted(
    struct sup *s, const struct sup_alloc *sa, const char *alias, struct csi_volume *ret)
{
	return false;
}

bool
volume_is_mounted_for(struct sup *s, const char *alloc_id, const char *namespace, const char *id)
{
	return false;
}

void
volume_retry_unmounts(struct sup *s, const char *namespace, const char *id)
{
}

struct plugin *
plugin_find(struct sup *s, const char *id, enum csi_plugin_kind half)
{
	return NULL;
}

bool
plugin_is_held(struct sup *s, const char *id, char *why, size_t size)
{
	return false;
}

void
volume_attach(struct sup *s, const struct csi_volume *vol, const char *node_id, bool read_only,
    volume_attach_cb *cb, void *arg)
{
}

void
volume_detach(
    struct sup *s, const struct csi_volume *vol, const char *node_id, volume_cb *cb, void *arg)
{
}

void
volume_expand_here(struct sup *s, const struct sup_alloc *sa, const char *volume,
    const struct volume_size *size, volume_size_cb *cb, void *arg)
{
}

const struct volume_trouble *
volume_trouble_of(struct sup *s, const char *namespace, const char *id, const char **ret_alloc)
{
	return NULL;
}

void
volume_trouble_say(const struct volume_trouble *t, char *buf, size_t size)
{
}

void
volumes_report_grown(struct sup *s, volume_grown_cb *cb)
{
}

void
changed_watch(struct sup *s, enum changed what, struct changed_watch *w)
{
}

void
changed_mark(struct sup *s, enum changed what)
{
}

void
changed_unwatch(struct sup *s, struct changed_watch *w)
{
}

static void
on_pass(struct sup *s, struct deferred *d)
{
}

/* A node with this much memory and one core of 1000 MHz, the driver exec and two dynamic ports. */
static inline void
begin_server(int64_t memory_mb)
{
	struct driver_info *exec;
	struct node_network *net;
	struct node_address *at;

	memset(&sup, 0, sizeof sup);
	memset(&local, 0, sizeof local);
	memset(&seen, 0, sizeof seen);
	node_init(&node);
	str_set(&node.id, "11111111-2222-3333-4444-555555555555");
	str_set(&node.datacenter, "dc1");
	str_set(&node.node_pool, "default");
	exec = map_put(driver_info, &node.drivers, "exec");
	exec->detected = exec->healthy = true;
	node.node_resources.cpu.cpu_shares = 100000;
	node.node_resources.cpu.total_cpu_cores = 1;
	ints_add(&node.node_resources.cpu.reservable_cpu_cores, 0);
	node.node_resources.memory.memory_mb = memory_mb;
	node.node_resources.disk.disk_mb = 100000;
	node.node_resources.min_dynamic_port = 20000;
	node.node_resources.max_dynamic_port = 20001;
	net = list_add(node_network, &node.node_resources.node_networks);
	at = list_add(node_address, &net->addresses);
	str_set(&at->alias, "default");
	str_set(&at->address, "127.0.0.1");
	config = (struct agent_config){ .gc_max_allocs = 50 };
	sup.config = &config;
	sup.source = &local.base;
	local.base.sup = &sup;
	alloc_table_new(&sup);
	local_index_init(&local);
	local_changes_init(&local);
	local_events_init(&local);
	local_usage_init(&local);
	local_cores_init(&local);
	local_ports_init(&local);
	local_marks_init(&local, on_pass);
	local_families_init(&local);
	local_jobs_init(&local);
	local_evals_init(&local);
	local_allocs_init(&local);
	local_volumes_init(&local);
	local_deployments_init(&local);
	local_unplaced_init(&local);
	local_drain_init(&local);
}

static inline void
end_server(void)
{
	local_drain_free(&local);
	local_unplaced_free(&local);
	local_deployments_free(&local);
	local_volumes_free(&local);
	local_allocs_free(&local);
	local_evals_free(&local);
	local_jobs_free(&local);
	local_families_free(&local);
	local_marks_free(&local);
	local_ports_free(&local);
	local_cores_free(&local);
	local_usage_free(&local);
	local_events_free(&local);
	local_changes_free(&local);
	local_index_free(&local);
	alloc_table_free(&sup);
	node_done(&node);
}

/* A service job "name" with the group "g" of this count, whose task takes 100 MB. */
static inline void
fill_job(struct job *job, const char *name, int64_t count)
{
	struct task_group *g;
	struct task *t;

	job_init(job);
	str_set(&job->id, name);
	str_set(&job->name, name);
	str_set(&job->namespace, "default");
	job->type = JOB_SERVICE;
	g = list_add(task_group, &job->task_groups);
	str_set(&g->name, "g");
	g->count = count;
	t = list_add(task, &g->tasks);
	str_set(&t->name, "t");
	str_set(&t->driver, "exec");
	t->resources = resources_new();
	t->resources->cpu = 100;
	t->resources->memory_mb = 100;
}

/* Fills a version of job "j" whose task has this user, and returns its group. */
static inline struct task_group *
fill_version(
    struct job *job, const char *user, int64_t count, int64_t max_parallel, int64_t canaries)
{
	struct task_group *g;

	fill_job(job, "j", count);
	g = &job->task_groups.v[0];
	g->update = update_strategy_new();
	g->update->max_parallel = max_parallel;
	g->update->canary = canaries;
	str_set(&g->tasks.v[0].user, user);
	return g;
}

/* Registers *job (emptied) and compares it with its allocs, as an operator's request does. */
static inline struct local_eval *
register_job(struct job *job)
{
	bool changed;
	struct local_job *j = local_job_put(&local, job, NULL, &changed);
	struct local_eval *ev;

	if (changed)
		local_deployment_replace(&local, j);
	ev = local_eval_new(&local, j, "job-register");
	local_reconcile_job(&local, j, ev, true);
	return ev;
}

static inline struct local_job *
find_job(const char *name)
{
	return local_job_find(&local, "default", name);
}

/* The newest alloc of the slot, or NULL. */
static inline struct alloc *
alloc_at(const char *job, size_t index)
{
	struct local_group *g = local_group_find(find_job(job), "g");

	return g && index < g->n_slots && g->slots[index]->current
		   ? &g->slots[index]->current->sa->a
		   : NULL;
}

static inline struct local_alloc *
find_alloc(const struct alloc *a)
{
	struct id id;

	ck_assert(id_from_uuid(a->id, &id));
	return local_alloc_of(alloc_find(&sup, &id));
}

/* The client reports that the alloc has ended. */
static inline void
end_alloc(struct alloc *a, enum client_status status)
{
	struct local_alloc *la = find_alloc(a);
	struct task_state *state = map_put(task_state, &a->task_states, "t");

	state->failed = status == CLIENT_FAILED;
	state->finished_at = clock_real_ns();
	a->client_status = status;
	local_alloc_end(&local, la);
	if (la->slot->current == la)
		local_reconcile_slot(&local, la->slot, NULL);
}

/* The client reports that the alloc runs and whether it is healthy. */
static inline void
set_health(struct alloc *a, enum opt_bool healthy)
{
	a->client_status = CLIENT_RUNNING;
	if (!a->deployment_status)
		a->deployment_status = deployment_status_new();
	a->deployment_status->healthy = healthy;
	a->deployment_status->timestamp = clock_real_ns();
}

#endif
