// SPDX-License-Identifier: Apache-2.0
/* exec_start.c: one start: checked, made, handed to an executor of its own. Runs in: exec-helper.
 * Asked by: supervisor. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/crash.h"
#include "common/fd.h"
#include "exec-helper/exec.h"

/* One limit, where this machine has it: by file v2 or v1, NULL if there is none. -ENOENT (no swap
 * accounting, an older kernel) is as if it had not been asked for. */
static int
set_limit(struct exec_state *s, const struct exec_run *run, enum cgroup_tree tree, const char *v2,
    const char *v1, uint64_t value)
{
	bool in_v2 = s->cgroup.in_v2 & CGROUP_BIT(tree);
	int dir = run->cgroup[in_v2 ? CGROUP_V2 : tree], r;
	const char *file = in_v2 ? v2 : v1;
	char text[24];

	if (dir < 0 || !file)
		return 0;
	(void)snprintf(text, sizeof text, "%llu", (unsigned long long)value);
	r = fd_write_file(dir, file, text);
	return r == -ENOENT ? 0 : r;
}

static int
set_limits(struct exec_state *s, const struct exec_start *req, const struct exec_run *run)
{
	const uint64_t memory = req->memory_bytes, soft = req->memory_soft_bytes;
	uint64_t shares = req->cpu_shares < 2        ? 2
			  : req->cpu_shares > 262144 ? 262144
						     : req->cpu_shares;
	int r = 0;

	if (memory)
		r = set_limit(s, run, CGROUP_MEMORY, "memory.max", "memory.limit_in_bytes", memory);
	if (r == 0 && soft)
		r = set_limit(
		    s, run, CGROUP_MEMORY, "memory.low", "memory.soft_limit_in_bytes", soft);
	if (r == 0)
		r = set_limit(s, run, CGROUP_MEMORY, "memory.swap.max", "memory.swappiness", 0);
	/* Half a task is worse than none: what shares a limit dies together. */
	if (r == 0)
		r = set_limit(s, run, CGROUP_MEMORY, "memory.oom.group", NULL, 1);
	if (r == 0 && req->cpu_shares)
		r = set_limit(s, run, CGROUP_CPU, NULL, "cpu.shares", shares);
	if (r == 0 && s->pids_max)
		r = set_limit(s, run, CGROUP_PIDS, "pids.max", "pids.max", s->pids_max);
	shares = 1 + (shares - 2) * 9999 / 262142;
	if (r == 0 && req->cpu_shares)
		r = set_limit(s, run, CGROUP_CPU, "cpu.weight", NULL, shares);
	return r;
}

int
exec_open_for_executor(struct exec_state *s, struct exec_run *run, struct err *e)
{
	run->logs = fd_open_beneath(s->logs, s->setup.alloc_name, O_PATH | O_DIRECTORY, 0);
	if (run->logs < 0)
		return err_set(
		    e, run->logs, "open the log directory of alloc %s", s->setup.alloc_name);
	if (s->setup.keep.lease_ms > 0) {
		/* By name: a page that was deleted and made anew is the one that counts. */
		run->lease = fd_open_beneath(s->rt, "lease", O_RDONLY, 0);
		if (run->lease < 0)
			return err_set(e, run->lease, "open the lease");
	}
	run->setup = fd_memfd_sealed("setup", &s->setup, s->setup.size);
	if (run->setup < 0)
		return err_set(e, run->setup, "make the set-up of run %s", run->name);
	return 0;
}

int
exec_on_task_start(struct exec_state *s, const struct exec_task_start_req *req,
    struct exec_task_start_rep *rep, int *ret_fd, struct err *e)
{
	struct exec_run run;
	int r;

	(void)ret_fd;
	r = exec_policy_check(s, &req->start, req->mounts, req->n_mounts, &s->setup, &run, e);
	if (r < 0)
		return r;
	run.spec = s->spec;
	r = exec_run_make(s, &run, e);
	if (r <= 0) {
		rep->existed = r == 0;
		return r;
	}
	r = exec_open_for_executor(s, &run, e);
	if (r == 0 && (r = set_limits(s, &req->start, &run)) < 0)
		(void)err_set(e, r, "set the limits of run %s", run.name);
	if (r == 0 && run.cores && (r = exec_cores_set(s, &run, req->start.cores)) < 0)
		(void)err_set(e, r, "give run %s the cores that are its own", run.name);
	if (r == 0 && (r = exec_spawn_executor(s, &run)) < 0)
		(void)err_set(e, r, "start the executor of run %s", run.name);
	if (r < 0) {
		exec_run_undo(s, &run);
		return r;
	}
	s->started = true;
	CRASH_POINT(EXEC_AFTER_CLONE);
	exec_run_done(&run);
	return 0;
}
