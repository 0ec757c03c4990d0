// SPDX-License-Identifier: Apache-2.0
/* hook_dir.c: makes the directories of an alloc. They stay when its tasks have ended, until the
 * alloc is removed. Runs in: supervisor. */
#include "common/cleanup.h"
#include "common/list.h"
#include "common/mem.h"
#include "supervisor/alloc/alloc_hooks.h"
#include "supervisor/alloc/alloc_state.h"
#include "supervisor/core/changed.h"
#include "supervisor/core/journal.h"
#include "supervisor/core/sup_calls.h"
#include "supervisor/node/mounts.h"

struct dirs {
	struct alloc_runner *ar;
	uint64_t call;
	struct changed_watch successor; /* watches while the removal waits for another alloc */
};

static struct dirs *
state_of(const struct alloc_runner *ar)
{
	return alloc_hook_state(ar, &alloc_hook_dir);
}

static bool
is_sticky(const struct sup_alloc *sa)
{
	const struct ephemeral_disk *disk = sa->group->ephemeral_disk;

	return disk && (disk->sticky == OPT_TRUE || disk->migrate == OPT_TRUE);
}

/* Returns the previous alloc from which this one takes over the data of a sticky disk.
 * hook_previous.c has waited for its end. False: there is none, or a task has run, so the data is
 * already here. */
static bool
has_data_of(const struct alloc_runner *ar, struct id *ret)
{
	const struct alloc *a = &ar->sa->a;

	return is_sticky(ar->sa) && !alloc_has_started(a) &&
	       id_from_uuid(str(a->previous_allocation), ret) && alloc_find(ar->sup, ret);
}

/* Another alloc is going to take over the data of this one and has not done it yet. */
static bool
is_awaited(const struct alloc_runner *ar)
{
	struct id from;

	if (!is_sticky(ar->sa))
		return false;
	alloc_foreach(ar->sup, sa)
	{
		if (sa->runner && sa->runner->phase == ALLOC_PRERUN &&
		    has_data_of(sa->runner, &from) && id_equal(&from, &ar->sa->id))
			return true;
	}
	return false;
}

/* The limit that the file system enforces; 0: none. */
static uint32_t
disk_mb(const struct alloc_runner *ar)
{
	int64_t mb = group_disk_mb(ar->sa->group);

	return mb <= UINT32_MAX ? (uint32_t)mb : 0;
}

/* Without project quota, hook_disk.c measures the directory instead. */
static void
warn_unlimited(const struct alloc_runner *ar, int r, const struct err *e)
{
	if (r < 0)
		journal_warn(JOURNAL_ALLOC, ABOUT_ALLOC(ar->sa),
		    "allocation %.8s: its disk is measured, because the file system cannot "
		    "limit it: %s",
		    ar->sa->a.id, e->msg);
}

static void
on_limited(struct sup *sup, void *arg, int r, const void *rep, int fd, const struct err *e)
{
	struct alloc_runner *ar = arg;

	state_of(ar)->call = 0;
	warn_unlimited(ar, r, e);
	alloc_hook_done(ar, 0, NULL);
}

static void make_dirs(struct alloc_runner *ar, bool limit);

/* The directory is a project now, if the file system supports that. */
static void
on_joined(struct sup *sup, void *arg, int r, const void *rep, int fd, const struct err *e)
{
	struct alloc_runner *ar = arg;

	state_of(ar)->call = 0;
	warn_unlimited(ar, r, e);
	make_dirs(ar, false);
}

static void
on_made(struct sup *sup, void *arg, int r, const void *rep, int fd, const struct err *e)
{
	const struct file_alloc_dir_make_rep *made = rep;
	struct mnt_disk_limit_req req = { 0 };
	struct alloc_runner *ar = arg;
	struct id from;

	state_of(ar)->call = 0;
	if (r >= 0 && made->moved)
		journal_info(JOURNAL_ALLOC, ABOUT_ALLOC(ar->sa),
		    "allocation %.8s: it took over the data of %.8s", ar->sa->a.id,
		    str(ar->sa->a.previous_allocation));
	if (r < 0 || (!made->needs_project && !made->has_project)) {
		alloc_hook_done(ar, r, e);
		return;
	}
	req.alloc = ar->sa->id;
	if (made->needs_project && has_data_of(ar, &from))
		req.from = from;
	if (!made->needs_project)
		req.disk_mb = disk_mb(ar);
	state_of(ar)->call =
	    mnt_call_disk_limit(sup, &req, made->needs_project ? on_joined : on_limited, ar);
}

/* limit: if the file system has project quota, the directory must become a project first. */
static void
make_dirs(struct alloc_runner *ar, bool limit)
{
	cleanup_free struct file_alloc_dir_make_req *req = NULL;
	struct err e = { 0 };
	struct id from;

	if (ar->n_tasks > FILE_TASKS_MAX) {
		alloc_hook_done(ar,
		    err_say(&e, -E2BIG, "the group has %u tasks, %d are allowed", ar->n_tasks,
			FILE_TASKS_MAX),
		    &e);
		return;
	}
	req = mem_new(struct file_alloc_dir_make_req);
	req->raw_exec = true;
	for (unsigned i = 0; i < ar->n_tasks; i++) {
		(void)IPC_TEXT_SET(req->tasks[i].name, ar->tasks[i].task->name);
		req->raw_exec &= str_eq(ar->tasks[i].task->driver, "raw_exec");
	}
	if (has_data_of(ar, &from))
		req->from = from;
	req->alloc = ar->sa->id;
	req->n_tasks = ar->n_tasks;
	req->limit = limit;
	state_of(ar)->call = file_call_alloc_dir_make(ar->sup, req, on_made, ar);
}

static void
make_limited_dirs(struct alloc_runner *ar)
{
	make_dirs(ar, disk_mb(ar) > 0);
}

static void
on_removed(struct sup *sup, void *arg, int r, const void *rep, int fd, const struct err *e)
{
	struct alloc_runner *ar = arg;

	state_of(ar)->call = 0;
	alloc_hook_done(ar, r, e);
}

/* mount-helper has unmounted everything below the alloc's directory. */
static void
on_released(struct sup *sup, void *arg, int r, const void *rep, int fd, const struct err *e)
{
	struct file_alloc_dir_remove_req req = { 0 };
	struct alloc_runner *ar = arg;

	state_of(ar)->call = 0;
	if (r < 0) {
		alloc_hook_done(ar, r, e);
		return;
	}
	req.alloc = ar->sa->id;
	state_of(ar)->call = file_call_alloc_dir_remove(sup, &req, on_removed, ar);
}

static void
remove_dirs(struct alloc_runner *ar)
{
	struct mnt_alloc_release_req req = { 0 };
	struct dirs *d = state_of(ar);
	struct err e = { 0 };
	int r;

	if (is_awaited(ar)) {
		changed_watch(ar->sup, CHANGED_ALLOC_PHASE, &d->successor);
		return;
	}
	changed_unwatch(ar->sup, &d->successor);
	r = mounts_refuse(ar->sup, &ar->sa->id, &e);
	if (r < 0) {
		alloc_hook_done(ar, r, &e);
		return;
	}
	req.alloc = ar->sa->id;
	state_of(ar)->call = mnt_call_alloc_release(ar->sup, &req, on_released, ar);
}

static void
on_phase(struct sup *sup, struct changed_watch *w)
{
	struct dirs *d = container_of(w, struct dirs, successor);

	remove_dirs(d->ar);
}

static void
init_dirs(struct alloc_runner *ar, const struct alloc_record *kept)
{
	*state_of(ar) = (struct dirs){ .ar = ar, .successor.fn = on_phase };
}

static void
free_dirs(struct alloc_runner *ar)
{
	struct dirs *d = state_of(ar);

	child_call_cancel(ar->sup, d->call);
	changed_unwatch(ar->sup, &d->successor);
}

ALLOC_HOOK(dir, "alloc_dir", sizeof(struct dirs), .init = init_dirs, .shutdown = free_dirs,
    .prerun = make_limited_dirs, .destroy = remove_dirs);
