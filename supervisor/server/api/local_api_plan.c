// SPDX-License-Identifier: Apache-2.0
/* local_api_plan.c: computes what registering a job would change, without registering it. Runs in:
 * supervisor. */
#include <errno.h>
#include <string.h>

#include "common/clock.h"
#include "model/engine/table.h"
#include "model/engine/walk.h"
#include "supervisor/server/api/local_api.h"
#include "supervisor/server/job/job_diff.h"
#include "supervisor/server/place/local_facts.h"
#include "supervisor/server/place/local_fit.h"

/* The counts of one group, by their names in the API. */
struct counts {
	json_int_t ignore, place, stop, in_place, destructive, canary;
};

struct plan {
	struct local *l;
	const struct job *job; /* the new version */
	struct local_job *now; /* NULL: it is new */
	json_t *updates, *failed;
	struct local_beside beside; /* including the allocs that it would place */
	size_t placed;              /* how many these are */
};

static void
add_failure(struct plan *p, const char *group, struct alloc_metric *m)
{
	json_t *known = json_object_get(p->failed, group), *n;

	if (!known) {
		(void)json_object_set_new(
		    p->failed, group, model_to_json(&alloc_metric_type, m, 0));
		return;
	}
	n = json_object_get(known, "CoalescedFailures");
	(void)json_integer_set(n, json_integer_value(n) + 1);
}

/* Adds an alloc to the used resources if it fits; otherwise adds the failure. */
static void
try_place(struct plan *p, const struct task_group *g, int64_t index)
{
	cleanup_done(alloc_metric) struct alloc_metric m;

	alloc_metric_init(&m);
	if (!local_fit_check(p->l, &p->beside, p->job, g->name, index, &m, NULL)) {
		add_failure(p, g->name, &m);
		return;
	}
	local_usage_add(&p->beside.used, g);
	p->beside.peers.of_job++;
	p->beside.peers.of_group++;
	p->placed++;
}

static void
count_slot(struct plan *p, struct counts *c, const struct task_group *g,
    const struct local_slot *slot, int64_t index)
{
	struct local_slot_facts f = { .wanted = true };

	if (slot)
		f = local_facts_get(slot, p->job, true);
	switch (local_slot_decide(&f)) {
	case LOCAL_SLOT_KEEP:
	case LOCAL_SLOT_LATER:
		c->ignore += f.wanted;
		break;
	case LOCAL_SLOT_PLACE:
		c->place++;
		try_place(p, g, index);
		break;
	case LOCAL_SLOT_WAIT:
		c->place++;
		break;
	case LOCAL_SLOT_UPDATE:
		c->in_place++;
		break;
	case LOCAL_SLOT_STOP:
		c->stop++;
		break;
	case LOCAL_SLOT_REPLACE:
		c->destructive++;
		break;
	}
}

/* Counts only those allocs as replaced that the deployment would replace at its begin. */
static void
count_deployment(struct plan *p, const struct task_group *g, struct counts *c)
{
	const struct update_strategy *u = g ? g->update : NULL;
	json_int_t at_once;

	if (p->job->type != JOB_SERVICE || !u || u->max_parallel <= 0 || c->destructive == 0)
		return;
	at_once = u->canary > 0 || c->place >= u->max_parallel ? 0 : u->max_parallel - c->place;
	if (u->canary > 0)
		c->canary = u->canary < g->count ? u->canary : g->count;
	for (int64_t i = 0; i < c->canary; i++)
		try_place(p, g, i);
	if (c->destructive <= at_once)
		return;
	c->ignore += c->destructive - at_once;
	c->destructive = at_once;
}

static void
plan_group(struct plan *p, const char *name)
{
	const struct local_group *now = p->now ? local_group_find(p->now, name) : NULL;
	const struct task_group *g = job_group(p->job, name);
	int64_t n_now = now ? (int64_t)now->n_slots : 0,
		n = g && g->count > n_now ? g->count : n_now;
	struct counts c = { 0 };

	p->beside.peers = local_peers_count(p->now, name);
	p->beside.peers.of_job += p->placed;
	for (int64_t i = 0; i < n; i++)
		count_slot(p, &c, g, i < n_now ? now->slots[i] : NULL, i);
	if (!g && c.stop == 0)
		return; /* a group of an older version, without allocs */
	count_deployment(p, g, &c);
	(void)json_object_set_new(p->updates, name,
	    json_pack("{s:I, s:I, s:I, s:I, s:I, s:i, s:I, s:i}", "Ignore", c.ignore, "Place",
		c.place, "Stop", c.stop, "InPlaceUpdate", c.in_place, "DestructiveUpdate",
		c.destructive, "Migrate", 0, "Canary", c.canary, "Preemptions", 0));
}

/* Adds to the diff of each group what happens to its allocs, in the words that the command shows.
 */
static void
annotate_diff(json_t *diff, const json_t *updates)
{
	static const char *const words[][2] = { { "Place", "create" }, { "Canary", "canary" },
		{ "Stop", "destroy" }, { "InPlaceUpdate", "in-place update" },
		{ "DestructiveUpdate", "create/destroy update" }, { "Ignore", "ignore" } };
	json_t *group;
	size_t i;

	json_array_foreach (json_object_get(diff, "TaskGroups"), i, group) {
		const char *name = json_string_value(json_object_get(group, "Name"));
		const json_t *counts = json_object_get(updates, str(name));

		for (size_t k = 0; k < sizeof words / sizeof words[0]; k++) {
			json_t *n = json_object_get(counts, words[k][0]);

			if (json_integer_value(n) > 0)
				(void)json_object_set(
				    json_object_get(group, "Updates"), words[k][1], n);
		}
	}
}

static json_t *
next_launch(const struct job *job)
{
	int64_t t = job_has_launches(job) ? job_next_launch(job, clock_real_ns() / 1000000000) : -1;
	char text[RFC3339_SIZE];

	if (t < 0)
		return json_null();
	time_format(t * 1000000000, text);
	return json_string(text);
}

static void
reply_plan(struct api_req *req, struct plan *p, const char *warnings)
{
	const struct job *old = p->now ? local_job_wanted(p->now) : NULL;
	json_t *diff = job_diff(old, p->job);

	annotate_diff(diff, p->updates);
	api_reply_json(
	    req, json_pack("{s:{s:o, s:n}, s:o, s:I, s:n, s:o, s:o, s:s, s:I}", "Annotations",
		     "DesiredTGUpdates", p->updates, "PreemptedAllocs", "FailedTGAllocs",
		     json_object_size(p->failed) ? json_incref(p->failed) : json_null(),
		     "JobModifyIndex", (json_int_t)(old ? old->job_modify_index : 0),
		     "CreatedEvals", "Diff", diff, "NextPeriodicLaunch", next_launch(p->job),
		     "Warnings", warnings, "Index", (json_int_t)p->l->index));
	json_decref(p->failed);
}

/* Plans the job, which was checked, and answers. */
static void
plan_job(struct sup *sup, struct api_req *req, struct job *job, const char *warnings)
{
	struct plan p = { .l = local_of_sup(sup), .job = job };
	const struct job *old;

	p.beside.used = local_usage_now(p.l);
	p.now = local_job_find(p.l, job->namespace, job->id);
	old = p.now ? local_job_wanted(p.now) : NULL;
	/* An unchanged job makes no new version. */
	job->version = !old ? 0 : old->version + !model_equal(&job_type, old, job);
	p.updates = json_object();
	p.failed = json_object();
	for (size_t i = 0; i < job->task_groups.n && !job_is_parent(job); i++)
		plan_group(&p, job->task_groups.v[i].name);
	for (size_t i = 0; p.now && i < p.now->n_groups; i++) {
		if (!job_group(job, p.now->groups[i]->name))
			plan_group(&p, p.now->groups[i]->name);
	}
	reply_plan(req, &p, warnings);
}

void
local_api_plan_job(struct sup *sup, struct api_req *req)
{
	struct problems warn = { 0 }, faults = { 0 };
	cleanup_free char *warnings = NULL;
	cleanup_done(job) struct job job;
	int r;

	job_init(&job);
	r = local_api_read_job(sup, req, &job, &warn, &faults);
	if (r < 0) {
		api_reply_problems(req, r == -EPERM ? 403 : 400, &faults);
	} else {
		warnings = problems_text(&warn);
		plan_job(sup, req, &job, warnings);
	}
	problems_done(&warn);
	problems_done(&faults);
}
