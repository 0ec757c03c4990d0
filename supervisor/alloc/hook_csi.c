// SPDX-License-Identifier: Apache-2.0
/*
 * hook_csi.c: claims the CSI volumes of an alloc at the source and mounts them, all at the same
 * time. After the tasks it unmounts and releases all of them; a failure does not stop it. Runs in:
 * supervisor.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/list.h"
#include "common/mem.h"
#include "supervisor/alloc/alloc_hooks.h"
#include "supervisor/alloc/alloc_state.h"
#include "supervisor/alloc/task_events.h"
#include "supervisor/alloc/task_session.h"
#include "supervisor/alloc/volume_loss.h"
#include "supervisor/core/changed.h"
#include "supervisor/core/journal.h"
#include "supervisor/core/sup_timer.h"
#include "supervisor/source/source.h"
#include "supervisor/volume/plugin_task.h"
#include "supervisor/volume/volume_stats.h"
#include "supervisor/volume/volumes.h"

/* How long an alloc waits for its plugins: twice the default health_timeout of a plugin. */
#define PLUGINS_USEC 60000000

/* A call to a plugin may take two minutes. After TELL_USEC, events of the tasks report the wait.
 * The end of an alloc, and so a drain, waits for unmounts at most for the sum of both. */
#define TELL_USEC  5000000
#define LEAVE_USEC 10000000

/* One volume of the group, on its way to be claimed and mounted before the tasks start. */
struct csi_step {
	struct alloc_runner *ar;
	const struct volume_request *request;
	enum { STEP_ENDED, STEP_CLAIM, STEP_PLUGIN, STEP_MOUNT, STEP_REPAIR } step;
	bool lost;    /* it cannot be mounted again yet, and the tasks were told */
	bool renewed; /* running tasks may have what has ended: for apply_losses() */
};

struct csi {
	struct alloc_runner *ar;
	struct sup_timer late;        /* reports that the hook waits, or ends the wait */
	struct sup_timer waited;      /* ends the wait for plugins; NULL: not waiting */
	struct changed_watch plugins; /* watches while the hook waits for a plugin */
	bool plugins_late;            /* PLUGINS_USEC have passed */
	struct csi_step *steps;       /* of each volume of the group */
	struct err failed;            /* the first failure; the other mounts are then cancelled */
	unsigned left;                /* pending mounts or unmounts */
	bool destroy_waits;           /* destroy waits for the last unmount */
	bool postrun_waits;           /* postrun waits for the end of repairs */
};

static struct csi *
state_of(const struct alloc_runner *ar)
{
	return alloc_hook_state(ar, &alloc_hook_csi);
}

/* Reports in the tasks' events what each volume waits for. */
static void
tell_pending(struct alloc_runner *ar, const char *outlook)
{
	const struct task_group *g = ar->sa->group;
	char what[ERR_MSG_SIZE], text[ERR_MSG_SIZE + 128];

	for (size_t i = 0; i < g->volumes.n; i++) {
		if (!volume_say_pending(ar->sup, ar->sa, g->volumes.v[i].key, what, sizeof what))
			continue;
		(void)snprintf(text, sizeof text, "csi_hook: %s; %s", what, outlook);
		alloc_tell_tasks(ar, EVENT_HOOK_MESSAGE, text);
	}
}

static void
end_step(struct alloc_runner *ar, int r, const struct err *e)
{
	struct csi *c = state_of(ar);

	sup_timer_cancel(&c->late);
	sup_timer_cancel(&c->waited);
	alloc_hook_done(ar, r, e);
}

/* --- before the tasks --- */

/* Calls fn for each volume in this step. A callback may end others meanwhile. */
static void
for_each_in(struct alloc_runner *ar, int step, void (*fn)(struct csi_step *s))
{
	struct csi *c = state_of(ar);

	for (size_t i = 0; c->steps && i < ar->sa->group->volumes.n; i++)
		if ((int)c->steps[i].step == step)
			fn(&c->steps[i]);
}

/* Each cancellation ends one claim of the alloc. */
static void
cancel_claims(struct alloc_runner *ar)
{
	const struct source_ops *ops = ar->sup->source->ops;

	for (size_t i = 0; ops->claim_cancel && i < ar->sa->group->volumes.n; i++)
		ops->claim_cancel(ar->sup->source, ar->sa);
}

static void
cancel_mount(struct csi_step *s)
{
	volume_mount_cancel(s->ar->sup, s->ar->sa, str(s->request->name));
}

static void end_waiting(struct csi_step *s);

/* After the last volume, so that a task is restarted once, with all its volumes. */
static void
apply_losses(struct alloc_runner *ar)
{
	struct csi *c = state_of(ar);

	for (size_t i = 0; i < ar->sa->group->volumes.n; i++) {
		if (c->steps[i].renewed)
			volume_loss_apply(ar, c->steps[i].request);
		c->steps[i].renewed = false;
	}
}

/* Ends the mounting of one volume, and after the last one the step of the hook. */
static void
end_volume(struct csi_step *s, int r, const struct err *e)
{
	struct alloc_runner *ar = s->ar;
	struct csi *c = state_of(ar);
	bool first = r < 0 && c->failed.code == 0;

	s->step = STEP_ENDED;
	if (first)
		c->failed = *e;
	c->left++; /* until the others are cancelled */
	if (first) {
		cancel_claims(ar);
		for_each_in(ar, STEP_PLUGIN, end_waiting);
		for_each_in(ar, STEP_MOUNT, cancel_mount);
	}
	c->left--;
	if (--c->left > 0)
		return;
	changed_unwatch(ar->sup, &c->plugins);
	if (ar->stopping) { /* postrun undoes the mounts */
		end_step(ar, 0, NULL);
		return;
	}
	apply_losses(ar);
	end_step(ar, c->failed.code, &c->failed);
}

/* Returns whether a task of a restored alloc runs, with the mounts that it got at its start. */
static bool
runs_restored_task(struct alloc_runner *ar)
{
	for (unsigned i = 0; ar->restored && i < ar->n_tasks; i++)
		if (task_is_running(&ar->tasks[i]))
			return true;
	return false;
}

static const char *
describe_loss(const struct csi_step *s, enum volume_lost lost)
{
	if (lost == VOLUME_LOST_STAGING)
		return "is not staged on this node any more: somebody else has unmounted its "
		       "staging directory; tasks keep their mounts, and ";
	if (lost == VOLUME_LOST_NOTHING)
		return "could not be checked on this node; running tasks keep the mount that they "
		       "have, and for their next start ";
	if (lost != VOLUME_LOST_SOURCE)
		return "is not mounted on this node any more: somebody else has unmounted it; "
		       "running tasks keep the mount that they have, and for their next start ";
	if (s->request->attachment_mode == CSI_BLOCK_DEVICE)
		return "was published as a device that is gone or another one now; running tasks "
		       "keep the device that they have, and for their next start ";
	return "has lost its file system, because its process, usually the plugin's, has ended; "
	       "files that tasks have open there fail, and ";
}

/* Tells the tasks that a volume is mounted again; or, once, that it cannot be mounted yet. */
static void
tell_lost(struct csi_step *s, const char *why)
{
	const struct volume_mount_state *state =
	    volume_find(s->ar->sup, s->ar->sa, str(s->request->name));
	enum volume_lost lost = state ? state->lost : VOLUME_LOST_MOUNT;
	char text[ERR_MSG_SIZE + 384];

	/* The repair of another alloc's mount may have staged the volume. */
	if (!why && lost == VOLUME_LOST_NOTHING && !s->lost)
		return;
	(void)snprintf(text, sizeof text, "csi_hook: volume %.128s %sit %s%s %s%s",
	    str(s->request->source), describe_loss(s, lost), why ? "could not be " : "is ",
	    lost == VOLUME_LOST_STAGING ? "staged" : "mounted", why ? "again yet: " : "again",
	    why ? why : "");
	if (!s->lost || !why)
		alloc_tell_tasks(s->ar, EVENT_HOOK_MESSAGE, text);
	s->lost = why != NULL;
	s->renewed |=
	    !why && lost == VOLUME_LOST_SOURCE && s->request->attachment_mode != CSI_BLOCK_DEVICE;
}

static void
on_mounted(struct sup *sup, void *arg, int r, const struct err *e)
{
	struct csi_step *s = arg;
	struct err why = { 0 };

	if (r < 0) {
		const char *volume = str(s->request->source);

		if (r != -ECANCELED)
			journal_warn(JOURNAL_VOLUME, ABOUT_VOLUME(s->ar->sa, volume),
			    "allocation %.8s: mount volume %s: %s", s->ar->sa->a.id, volume,
			    e->msg);
		r = err_say(&why, r, "mounting volumes: %s", e->msg);
	}
	if (r != -ECANCELED && runs_restored_task(s->ar)) {
		tell_lost(s, r < 0 ? e->msg : NULL);
		r = 0;
	}
	end_volume(s, r, &why);
}

static void claim_volume(struct csi_step *s);

static void
end_waiting(struct csi_step *s)
{
	end_volume(s, 0, NULL);
}

static void
on_plugin_changed(struct sup *sup, struct changed_watch *w)
{
	struct csi *c = container_of(w, struct csi, plugins);
	bool ends = c->ar->stopping || c->failed.code < 0;

	changed_unwatch(sup, w);
	for_each_in(c->ar, STEP_PLUGIN, ends ? end_waiting : claim_volume);
}

static void
on_plugins_late(void *arg)
{
	struct alloc_runner *ar = arg;
	struct csi *c = state_of(ar);

	c->plugins_late = true;
	if (c->plugins.on)
		on_plugin_changed(ar->sup, &c->plugins);
}

/* After a restart of the agent, a plugin may answer later than the allocs with its volumes start.
 */
static bool
wait_for_plugin(struct csi_step *s)
{
	struct alloc_runner *ar = s->ar;
	struct csi *c = state_of(ar);

	if (c->plugins_late)
		return false;
	s->step = STEP_PLUGIN;
	if (!sup_timer_is_set(&c->waited))
		sup_timer_set(
		    ar->sup, &c->waited, CLOCK_MONOTONIC, PLUGINS_USEC, on_plugins_late, ar);
	changed_watch(ar->sup, CHANGED_PLUGINS, &c->plugins);
	return true;
}

static void
tell_claim(struct csi_step *s, const struct err *e)
{
	char text[ERR_MSG_SIZE + 256];

	(void)snprintf(text, sizeof text, "csi_hook: claim volume %.128s: %s",
	    str(s->request->source), e->msg);
	alloc_tell_tasks(s->ar, EVENT_HOOK_MESSAGE, text);
}

static void
on_claimed(struct sup *sup, void *arg, int r, const struct csi_volume *volume, const struct err *e)
{
	struct csi_step *s = arg;
	struct alloc_runner *ar = s->ar;
	struct err why = { 0 };

	if (r == -EINPROGRESS) {
		tell_claim(s, e);
		return;
	}
	if (r < 0) {
		end_volume(s, err_say(&why, r, "claiming volumes: %s", e->msg), &why);
		return;
	}
	if (ar->stopping || state_of(ar)->failed.code < 0) {
		end_volume(s, 0, NULL);
		return;
	}
	if (!volume_can_mount(sup, ar->sa, s->request, volume) && wait_for_plugin(s))
		return;
	s->step = STEP_MOUNT;
	volume_mount(sup, ar->sa, s->request, volume, on_mounted, s);
}

static void
claim_volume(struct csi_step *s)
{
	struct source *source = s->ar->sup->source;

	s->step = STEP_CLAIM;
	source->ops->claim(source, s->ar->sa, s->request, on_claimed, s);
}

static void
tell_plugin(struct csi_step *s)
{
	char text[256];

	(void)snprintf(text, sizeof text,
	    "csi_hook: volume %.128s: its plugin does not answer on this node yet",
	    str(s->request->source));
	alloc_tell_tasks(s->ar, EVENT_HOOK_MESSAGE, text);
}

static void
on_mount_late(void *arg)
{
	struct alloc_runner *ar = arg;

	tell_pending(ar, "the call may take two minutes");
	for_each_in(ar, STEP_PLUGIN, tell_plugin);
}

static void
begin_mounts(struct alloc_runner *ar)
{
	const struct task_group *g = ar->sa->group;
	struct csi *c = state_of(ar);
	struct csi_step *all;

	free(c->steps);
	all = c->steps = mem_zeroed(g->volumes.n, sizeof *all);
	c->failed.code = 0;
	c->plugins_late = false;
	c->left = 1; /* until all have begun */
	sup_timer_set(ar->sup, &c->late, CLOCK_MONOTONIC, TELL_USEC, on_mount_late, ar);
	for (size_t i = 0; i < g->volumes.n; i++) {
		all[i] = (struct csi_step){ .ar = ar, .request = &g->volumes.v[i].value };
		if (all[i].request->type != VOLUME_CSI || ar->stopping || c->failed.code < 0)
			continue;
		c->left++;
		claim_volume(&all[i]);
	}
	if (--c->left == 0)
		end_step(ar, ar->stopping ? 0 : c->failed.code, &c->failed);
}

static void
stop_mounts(struct alloc_runner *ar)
{
	struct csi *c = state_of(ar);

	c->left++; /* until all are cancelled */
	cancel_claims(ar);
	for_each_in(ar, STEP_PLUGIN, end_waiting);
	for_each_in(ar, STEP_MOUNT, cancel_mount);
	if (--c->left == 0 && alloc_hooks_busy(ar))
		end_step(ar, 0, NULL);
}

/* --- while the tasks run --- */

static void begin_unmounts(struct alloc_runner *ar);

/* Returns whether any volume is being mounted again. */
static bool
is_repairing(struct alloc_runner *ar)
{
	struct csi *c = state_of(ar);

	for (size_t i = 0; c->steps && i < ar->sa->group->volumes.n; i++)
		if (c->steps[i].step == STEP_REPAIR)
			return true;
	return false;
}

static void
on_repaired(struct sup *sup, void *arg, int r, const struct err *e)
{
	struct csi_step *s = arg;
	struct alloc_runner *ar = s->ar;
	struct csi *c = state_of(ar);

	s->step = STEP_ENDED;
	if (ar->phase == ALLOC_RUNNING && !ar->stopping) {
		tell_lost(s, r < 0 ? e->msg : NULL);
		if (!is_repairing(ar))
			apply_losses(ar);
	}
	if (c->postrun_waits && !is_repairing(ar)) {
		c->postrun_waits = false;
		begin_unmounts(ar);
	}
}

static void
cancel_repairs(struct alloc_runner *ar)
{
	if (!is_repairing(ar))
		return;
	cancel_claims(ar);
	for_each_in(ar, STEP_REPAIR, cancel_mount);
}

static void
on_claimed_again(
    struct sup *sup, void *arg, int r, const struct csi_volume *volume, const struct err *e)
{
	struct csi_step *s = arg;
	struct err why = { 0 };

	if (r == -EINPROGRESS) {
		tell_claim(s, e);
		return;
	}
	if (r >= 0 && s->ar->phase != ALLOC_RUNNING)
		r = err_say(&why, -ECANCELED, "the allocation ends");
	if (r < 0)
		on_repaired(sup, s, r, why.code < 0 ? &why : e);
	else
		volume_mount(sup, s->ar->sa, s->request, volume, on_repaired, s);
}

/* A task has a mount of its own, which a running task keeps; the next start of a task needs the
 * node's. The claim is asked for again because only its volume has the secrets. */
static void
on_volume_lost(struct sup *sup, const struct id *alloc, const char *alias)
{
	struct sup_alloc *sa = alloc_find(sup, alloc);
	struct alloc_runner *ar = sa ? sa->runner : NULL;
	struct csi *c;

	if (!ar || ar->phase != ALLOC_RUNNING || ar->stopping)
		return;
	c = state_of(ar);
	for (size_t i = 0; c->steps && i < sa->group->volumes.n; i++) {
		struct csi_step *s = &c->steps[i];

		if (s->step != STEP_ENDED || !str_eq(s->request->name, alias))
			continue;
		s->step = STEP_REPAIR;
		sup->source->ops->claim(sup->source, sa, s->request, on_claimed_again, s);
		return;
	}
}

static void
on_volume_state(struct sup *sup, const struct id *alloc, const char *alias, const char *text)
{
	struct sup_alloc *sa = alloc_find(sup, alloc);
	cleanup_free char *event = mem_printf("csi_hook: %s", text);

	if (sa && sa->runner && sa->runner->phase == ALLOC_RUNNING)
		alloc_tell_tasks(sa->runner, EVENT_HOOK_MESSAGE, event);
}

/* --- after the tasks --- */

/* A volume that could not be unmounted keeps its claim, so that no other node writes to it.
 * volumes.c retries the unmount. */
static void
on_unmounted(struct sup *sup, void *arg, int r, const struct err *e)
{
	struct alloc_runner *ar = arg;
	char text[ERR_MSG_SIZE + 128];

	if (r < 0) {
		(void)snprintf(text, sizeof text,
		    "%s; the volume stays claimed, and drover retries until it is unmounted",
		    e->msg);
		alloc_hook_note(ar, text);
	} else if (e) {
		(void)snprintf(text, sizeof text, "csi_hook: %s", e->msg);
		alloc_tell_tasks(ar, EVENT_HOOK_MESSAGE, text);
	}
	if (--state_of(ar)->left == 0)
		end_step(ar, 0, NULL);
}

static void
on_unmount_later(void *arg)
{
	const char *outlook =
	    "the volume stays claimed, but the allocation does not wait any longer";
	struct alloc_runner *ar = arg;
	const struct task_group *g = ar->sa->group;

	tell_pending(ar, outlook);
	for (size_t i = 0; i < g->volumes.n; i++)
		volume_unmount_leave(ar->sup, ar->sa, g->volumes.v[i].key);
	end_step(ar, 0, NULL);
}

static void
on_unmount_late(void *arg)
{
	struct alloc_runner *ar = arg;

	tell_pending(ar, "the end of the allocation waits for it for another 10 s");
	sup_timer_set(
	    ar->sup, &state_of(ar)->late, CLOCK_MONOTONIC, LEAVE_USEC, on_unmount_later, ar);
}

static void
begin_unmounts(struct alloc_runner *ar)
{
	const struct task_group *g = ar->sa->group;

	cancel_repairs(ar);
	if (is_repairing(ar)) {
		state_of(ar)->postrun_waits = true;
		return;
	}
	state_of(ar)->left = 1; /* until this function returns */
	sup_timer_set(
	    ar->sup, &state_of(ar)->late, CLOCK_MONOTONIC, TELL_USEC, on_unmount_late, ar);
	for (size_t i = 0; i < g->volumes.n; i++) {
		const struct volume_request *request = &g->volumes.v[i].value;

		if (request->type != VOLUME_CSI)
			continue;
		if (!volume_find(ar->sup, ar->sa, str(request->name))) {
			ar->sup->source->ops->release(ar->sup->source, ar->sa, request);
			continue;
		}
		state_of(ar)->left++;
		volume_unmount(ar->sup, ar->sa, request, on_unmounted, ar);
	}
	if (--state_of(ar)->left == 0)
		end_step(ar, 0, NULL);
}

/* --- the end --- */

/* A directory with a mount below it cannot be removed. volumes.c retries the unmounts. */
static void
wait_for_unmounts(struct alloc_runner *ar)
{
	struct csi *c = state_of(ar);

	c->destroy_waits = volume_alloc_has_mounts(ar->sup, ar->sa);
	if (c->destroy_waits)
		return;
	/* A plugin's directories could not be removed at its end while a volume was mounted. */
	for (unsigned i = 0; i < ar->n_tasks; i++)
		if (ar->tasks[i].plugin)
			plugin_task_stopped(ar->tasks[i].plugin);
	end_step(ar, 0, NULL);
}

/* A volume was unmounted: releases its claim. The alloc may have ended, without a runner. */
static void
on_volume_gone(struct sup *sup, const struct id *alloc, const char *alias)
{
	struct sup_alloc *sa = alloc_find(sup, alloc);

	for (size_t i = 0; sa && i < sa->group->volumes.n; i++)
		if (str_eq(sa->group->volumes.v[i].key, alias))
			sup->source->ops->release(sup->source, sa, &sa->group->volumes.v[i].value);
	if (sa && sa->runner && state_of(sa->runner)->destroy_waits)
		wait_for_unmounts(sa->runner);
}

static void
watch_volumes(struct sup *sup)
{
	volumes_report_gone(sup, on_volume_gone);
	volumes_report_lost(sup, on_volume_lost);
	volumes_report_state(sup, on_volume_state);
}

static void
init_csi(struct alloc_runner *ar, const struct alloc_record *kept)
{
	*state_of(ar) = (struct csi){ .ar = ar, .plugins.fn = on_plugin_changed };
}

static void
free_csi(struct alloc_runner *ar)
{
	struct csi *c = state_of(ar);

	changed_unwatch(ar->sup, &c->plugins);
	sup_timer_cancel(&c->waited);
	sup_timer_cancel(&c->late);
	free(c->steps);
}

ALLOC_HOOK(csi, "csi_hook", sizeof(struct csi), .start = watch_volumes, .init = init_csi,
    .shutdown = free_csi, .prerun = begin_mounts, .postrun = begin_unmounts,
    .destroy = wait_for_unmounts, .stop = stop_mounts);
