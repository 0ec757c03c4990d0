// SPDX-License-Identifier: Apache-2.0
/*
 * hook_secrets.c: has the secrets of a raw_exec task removed once the task has ended for good. They
 * are a mount of the host, while those of other tasks end with the namespace of their last run.
 * Runs in: supervisor.
 */
#include "supervisor/alloc/hook_secrets.h"

#include "common/cleanup.h"
#include "common/log.h"
#include "common/mem.h"
#include "supervisor/alloc/alloc_hooks.h"
#include "supervisor/alloc/alloc_state.h"
#include "supervisor/core/sup_calls.h"
#include "supervisor/driver/run.h"
#include "supervisor/node/mounts.h"

struct secrets {
	bool in_postrun; /* waits for all calls */
};

struct task_secrets {
	uint64_t call; /* 0: mount-helper is not unmounting them */
	bool asked;    /* since the last start */
};

static struct secrets *
state_of(const struct alloc_runner *ar)
{
	return alloc_hook_state(ar, &alloc_hook_secrets);
}

static struct task_secrets *
secrets_of(const struct task_runner *tr)
{
	return task_hook_state(tr, &alloc_hook_secrets);
}

static bool
is_mounted(const struct sup *sup, const struct sup_alloc *sa, const struct task *task)
{
	cleanup_free char *path = mem_printf("alloc/%s/%s/secrets", sa->a.id, task->name);

	return mounts_has(sup, path) != 0;
}

bool
alloc_has_secrets(const struct sup *sup, const struct sup_alloc *sa)
{
	for (size_t i = 0; i < sa->group->tasks.n; i++)
		if (is_mounted(sup, sa, &sa->group->tasks.v[i]))
			return true;
	return false;
}

static bool
delays_start(const struct task_runner *tr)
{
	return secrets_of(tr)->call != 0;
}

static void
end_postrun(struct alloc_runner *ar)
{
	for (unsigned i = 0; i < ar->n_tasks; i++)
		if (delays_start(&ar->tasks[i]))
			return;
	state_of(ar)->in_postrun = false;
	alloc_hook_done(ar, 0, NULL);
}

static void
on_removed(struct sup *sup, void *arg, int r, const void *rep, int fd, const struct err *e)
{
	struct task_runner *tr = arg;

	secrets_of(tr)->call = 0;
	if (r < 0)
		log_warn("allocation %.8s: the secrets of task %s stay until it is removed: %s",
		    tr->ar->sa->a.id, tr->task->name, e->msg);
	if (state_of(tr->ar)->in_postrun)
		end_postrun(tr->ar);
	else
		alloc_step_soon(tr->ar); /* the task may be to start again */
}

/* Not before the last run is reaped: until then a process of it can write new secrets. */
static void
remove_secrets(struct task_runner *tr)
{
	struct mnt_alloc_release_req req = { .alloc = tr->ar->sa->id };
	struct task_secrets *s = secrets_of(tr);

	if (tr->phase != TASK_DEAD || s->asked || !str_eq(tr->task->driver, "raw_exec") ||
	    run_is_left(tr->ar->sup, &tr->ar->sa->id, tr->task->name))
		return;
	s->asked = true;
	(void)IPC_TEXT_SET(req.task, tr->task->name);
	/* The last supervisor may have ended between the end of the task and the removal. */
	if (tr->ar->phase != ALLOC_NEW || is_mounted(tr->ar->sup, tr->ar->sa, tr->task))
		s->call = mnt_call_alloc_release(tr->ar->sup, &req, on_removed, tr);
}

static void
begin_anew(struct task_runner *tr)
{
	secrets_of(tr)->asked = false;
}

static void
wait_for_removal(struct alloc_runner *ar)
{
	state_of(ar)->in_postrun = true;
	end_postrun(ar);
}

static void
cancel_calls(struct alloc_runner *ar)
{
	for (unsigned i = 0; i < ar->n_tasks; i++)
		child_call_cancel(ar->sup, secrets_of(&ar->tasks[i])->call);
}

ALLOC_HOOK(secrets, "secrets", sizeof(struct secrets), .postrun = wait_for_removal,
    .shutdown = cancel_calls,
    .task = { .state_size = sizeof(struct task_secrets),
	.filled = begin_anew,
	.ends = remove_secrets,
	.delays_start = delays_start });
