// SPDX-License-Identifier: Apache-2.0
/* probe_tasks.c: the rows of probes' tasks, and the removal of what such a task has made. Runs in:
 * supervisor. */
#include "supervisor/health/probe_tasks.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/mem.h"
#include "model/engine/containers.h"
#include "supervisor/core/changed.h"
#include "supervisor/core/journal.h"
#include "supervisor/core/store.h"
#include "supervisor/core/sup_calls.h"
#include "supervisor/driver/run.h"
#include "supervisor/health/check_memory.h"
#include "supervisor/node/mounts.h"

#define KEY_PREFIX     "health_check/"
#define NAME_PREFIX    "health-check-"
#define LIFE_MS        120000 /* of a task of a probe; see executor/exe_health.c */
#define AGAIN_USEC     1000000
#define PATIENCE_MS    5000 /* with a run that does not end, before nothing waits for it */
#define AGAIN_DOUBLING 6    /* up to a minute */

struct probe_task {
	LIST_ENTRY(probe_task) link;
	struct sup *sup;
	struct id id;
	char name[sizeof NAME_PREFIX + 8];
	int64_t expires_ns; /* CLOCK_REALTIME */
	bool written, removing, gone;
	struct dirty row;
	struct sup_timer timer; /* of the expiry, then of the next try to remove it */
	uint64_t call;
	unsigned tries;
	uint64_t left_ms; /* since when nothing waits for its run; 0: something does */
	char *why;        /* the last try to remove it has failed */
	const struct probe_task_events *ev; /* NULL: no check follows it */
	void *arg;
};

static void try_remove(struct probe_task *t);

/* --- the row --- */

static int
write_row(struct sup *sup, struct dirty *d, struct err *e)
{
	struct probe_task *t = container_of(d, struct probe_task, row);
	char uuid[ID_UUID_SIZE];
	cleanup_free char *key = NULL, *value = NULL;

	id_to_uuid(&t->id, uuid);
	key = mem_printf(KEY_PREFIX "%s", uuid);
	value = mem_printf("%" PRId64, t->expires_ns);
	if (t->gone)
		return STORE_EXEC(sup->store, STMT_META_DELETE, e, SV_TEXT(key));
	return store_meta_put(sup->store, key, value, e);
}

static void
task_free(struct probe_task *t)
{
	LIST_REMOVE(t, link);
	turn_forget_write(t->sup, &t->row);
	sup_timer_cancel(&t->timer);
	child_call_cancel(t->sup, t->call);
	free(t->why);
	free(t);
}

static void
on_written(struct sup *sup, struct dirty *d)
{
	struct probe_task *t = container_of(d, struct probe_task, row);
	const struct probe_task_events *ev = t->ev;
	void *arg = t->arg;

	if (t->gone) {
		task_free(t);
		if (ev)
			ev->removed(arg, NULL);
	} else if (!t->written) {
		t->written = true;
		if (t->removing)
			try_remove(t);
		else
			ev->planned(arg);
	}
}

static struct probe_task *
task_new(struct sup *sup, const struct id *id)
{
	struct probe_task *t = mem_new(struct probe_task);
	char hex[ID_HEX_SIZE];

	*t = (struct probe_task){ .sup = sup, .id = *id };
	id_to_hex(id, hex);
	(void)snprintf(t->name, sizeof t->name, NAME_PREFIX "%.8s", hex);
	t->row = (struct dirty){
		.write = write_row, .written = on_written, .point = CRASH_ROW_PROBE_TASK
	};
	LIST_INSERT_HEAD(&check_memory(sup)->tasks, t, link);
	return t;
}

static void
on_expiry(void *arg)
{
	struct probe_task *t = arg;

	if (t->ev)
		t->ev->expired(t->arg);
}

struct probe_task *
probe_task_plan(struct sup *sup, const struct probe_task_events *ev, void *arg)
{
	struct id id = id_random_uuid();
	struct probe_task *t = task_new(sup, &id);

	t->ev = ev;
	t->arg = arg;
	t->expires_ns = clock_real_ns() + LIFE_MS * NS_PER_MS;
	sup_timer_set(sup, &t->timer, CLOCK_MONOTONIC, (uint64_t)LIFE_MS * 1000, on_expiry, t);
	turn_write(sup, &t->row);
	turn_durable(sup);
	return t;
}

const struct id *
probe_task_id(const struct probe_task *t)
{
	return &t->id;
}

const char *
probe_task_name(const struct probe_task *t)
{
	return t->name;
}

/* --- the removal --- */

static void
on_again(void *arg)
{
	try_remove(arg);
}

/* The check is told of the first failure only; then the removal goes on by itself. */
static void
fail_removal(struct probe_task *t, const char *why)
{
	const struct probe_task_events *ev = steal_ptr(&t->ev);
	unsigned doublings = t->tries < AGAIN_DOUBLING ? t->tries : AGAIN_DOUBLING;

	str_set(&t->why, why);
	if (t->tries++ == 0)
		journal_warn(JOURNAL_LEFTOVER, NULL, "remove task %s of a probe: %s", t->name, why);
	sup_timer_set(
	    t->sup, &t->timer, CLOCK_MONOTONIC, (uint64_t)AGAIN_USEC << doublings, on_again, t);
	if (ev)
		ev->removed(t->arg, why);
}

static bool
exists_below(int dir, const char *path)
{
	struct stat st;

	return fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* The helpers have reported success. This looks for itself. */
static const char *
find_rest(struct probe_task *t)
{
	cleanup_free char *dir = NULL;
	char uuid[ID_UUID_SIZE];
	struct err e = { 0 };

	id_to_uuid(&t->id, uuid);
	dir = mem_printf("%s/alloc/%s", t->sup->args.data_dir, uuid);
	if (exists_below(AT_FDCWD, dir))
		return "its directory is still there";
	if (exists_below(t->sup->log_dir_fd, uuid))
		return "the directory of its logs is still there";
	if (mounts_refuse(t->sup, &t->id, &e) < 0)
		return "something is still mounted in its directory";
	return NULL;
}

static void
on_dirs_removed(struct sup *sup, void *arg, int r, const void *rep, int fd, const struct err *e)
{
	struct probe_task *t = arg;
	const char *rest;

	t->call = 0;
	rest = r < 0 ? e->msg : find_rest(t);
	if (rest) {
		fail_removal(t, rest);
		return;
	}
	t->gone = true;
	turn_write(sup, &t->row);
}

static void
on_released(struct sup *sup, void *arg, int r, const void *rep, int fd, const struct err *e)
{
	struct file_alloc_dir_remove_req req = { 0 };
	struct probe_task *t = arg;

	t->call = 0;
	if (r < 0) {
		fail_removal(t, e->msg);
		return;
	}
	req.alloc = t->id;
	t->call = file_call_alloc_dir_remove(sup, &req, on_dirs_removed, t);
}

static void
on_patience_end(void *arg)
{
	struct probe_task *t = arg;

	changed_mark(t->sup, CHANGED_WORK);
}

void
probe_task_leave_run(struct probe_task *t)
{
	if (t->left_ms)
		return;
	t->left_ms = clock_ms();
	sup_timer_set(
	    t->sup, &t->timer, CLOCK_MONOTONIC, (uint64_t)PATIENCE_MS * 1000, on_patience_end, t);
}

static void
try_remove(struct probe_task *t)
{
	struct mnt_alloc_release_req req = { 0 };
	struct err e = { 0 };

	if (run_is_left(t->sup, &t->id, t->name)) {
		probe_task_leave_run(t);
		return; /* probe_tasks_run_gone() comes back */
	}
	sup_timer_cancel(&t->timer);
	if (mounts_refuse(t->sup, &t->id, &e) < 0) {
		fail_removal(t, e.msg);
		return;
	}
	req.alloc = t->id;
	t->call = mnt_call_alloc_release(t->sup, &req, on_released, t);
}

void
probe_task_remove(struct probe_task *t)
{
	if (t->removing)
		return;
	t->removing = true;
	sup_timer_cancel(&t->timer);
	if (t->written)
		try_remove(t);
}

void
probe_task_leave(struct probe_task *t)
{
	t->ev = NULL;
}

void
probe_tasks_run_gone(struct sup *sup, const struct id *id)
{
	struct probe_task *t, *next;

	LIST_FOREACH_SAFE (t, &check_memory(sup)->tasks, link, next)
		if (t->removing && !t->call && id_equal(&t->id, id))
			try_remove(t);
}

bool
probe_task_is_known(struct sup *sup, const struct id *id)
{
	const struct probe_task *t;

	LIST_FOREACH (t, &check_memory(sup)->tasks, link)
		if (id_equal(&t->id, id))
			return true;
	return false;
}

unsigned
probe_tasks_stuck(struct sup *sup)
{
	const struct probe_task *t;
	unsigned n = 0;

	LIST_FOREACH (t, &check_memory(sup)->tasks, link)
		n += t->left_ms && clock_ms() - t->left_ms >= PATIENCE_MS &&
		     run_is_left(sup, &t->id, t->name);
	return n;
}

unsigned
probe_tasks_left(struct sup *sup, const char **ret_why)
{
	const struct probe_task *t;
	unsigned n = 0;

	*ret_why = NULL;
	LIST_FOREACH (t, &check_memory(sup)->tasks, link) {
		n += !t->ev;
		if (!t->ev)
			*ret_why = t->why;
	}
	return n;
}

/* --- at the agent's start and end --- */

static int
load_row(void *arg, const struct store_row *row, struct err *e)
{
	struct probe_task *t;
	struct id id;

	if (!id_from_uuid(store_col_text(row, 0) + strlen(KEY_PREFIX), &id))
		return 0;
	t = task_new(arg, &id);
	t->written = true;
	t->expires_ns = strtoll(store_col_text(row, 1), NULL, 10);
	return 0;
}

int
probe_tasks_load(struct sup *sup, struct err *e)
{
	return store_each(sup->store, STMT_META_PROBES, NULL, 0, load_row, sup, e);
}

void
probe_tasks_remove_left(struct sup *sup)
{
	struct probe_task *t, *next;

	LIST_FOREACH_SAFE (t, &check_memory(sup)->tasks, link, next)
		if (!t->ev && !t->removing)
			probe_task_remove(t);
}

void
probe_tasks_free(struct sup *sup)
{
	struct probe_task *t;

	while ((t = LIST_FIRST(&check_memory(sup)->tasks)))
		task_free(t);
}
