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

#define NO_RUN                                                                                     \
	((struct exec_run){ .setup = -1,                                                           \
	    .spec = -1,                                                                            \
	    .listen = -1,                                                                          \
	    .record = -1,                                                                          \
	    .logs = -1,                                                                            \
	    .lease = -1,                                                                           \
	    .cgroup = { -1, -1, -1, -1, -1 } })

/* One limit; -ENOENT (no swap accounting, an older kernel) is as if it had not been asked for. */
static int
set_limit(int dir, const char *file, uint64_t value)
{
	char text[24];
	int r;

	(void)snprintf(text, sizeof text, "%llu", (unsigned long long)value);
	r = fd_write_file(dir, file, text);
	return r == -ENOENT ? 0 : r;
}

static int
limit_memory(struct exec_state *s, const ExecTaskStartReq *req, const struct exec_run *run)
{
	int v1 = run->cgroup[CGROUP_MEMORY], v2 = run->cgroup[CGROUP_V2], r = 0;

	if (s->cgroup.in_v2 & CGROUP_BIT(CGROUP_MEMORY)) {
		if (req->memory_bytes)
			r = set_limit(v2, "memory.max", req->memory_bytes);
		if (r == 0 && req->memory_soft_bytes)
			r = set_limit(v2, "memory.low", req->memory_soft_bytes);
		if (r == 0)
			r = set_limit(v2, "memory.swap.max", 0);
		/* Half a task is worse than none: what shares a limit dies together. */
		return r == 0 ? set_limit(v2, "memory.oom.group", 1) : r;
	}
	if (v1 < 0)
		return 0;
	if (req->memory_bytes)
		r = set_limit(v1, "memory.limit_in_bytes", req->memory_bytes);
	if (r == 0 && req->memory_soft_bytes)
		r = set_limit(v1, "memory.soft_limit_in_bytes", req->memory_soft_bytes);
	return r == 0 ? set_limit(v1, "memory.swappiness", 0) : r;
}

static int
limit_cpu(struct exec_state *s, const ExecTaskStartReq *req, const struct exec_run *run)
{
	uint64_t shares = req->cpu_shares < 2        ? 2
			  : req->cpu_shares > 262144 ? 262144
						     : req->cpu_shares;

	if (req->cpu_shares == 0)
		return 0;
	if (s->cgroup.in_v2 & CGROUP_BIT(CGROUP_CPU))
		return set_limit(
		    run->cgroup[CGROUP_V2], "cpu.weight", 1 + (shares - 2) * 9999 / 262142);
	if (run->cgroup[CGROUP_CPU] < 0)
		return 0;
	return set_limit(run->cgroup[CGROUP_CPU], "cpu.shares", shares);
}

static int
open_for_executor(
    struct exec_state *s, const ExecTaskStartReq *req, struct exec_run *run, struct err *e)
{
	run->logs = fd_open_beneath(s->logs, s->setup.alloc_name, O_PATH | O_DIRECTORY, 0);
	if (run->logs < 0)
		return err_set(
		    e, run->logs, "open the log directory of alloc %s", s->setup.alloc_name);
	if (req->lease_ms > 0) {
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
exec_on_task_start(
    void *state, const struct ipc_packet *p, ProtobufCMessage *rep_, int *ret_fd, struct err *e)
{
	const ExecTaskStartReq *req = (const ExecTaskStartReq *)(const void *)p->msg;
	ExecTaskStartRep *rep = (ExecTaskStartRep *)(void *)rep_;
	struct exec_state *s = state;
	struct exec_run run = NO_RUN;
	struct id id;
	int r;

	(void)ret_fd;
	r = exec_policy_check(s, req, &s->setup, &run, e);
	if (r < 0)
		return r;
	memcpy(id.b, s->setup.run, sizeof id.b);
	id_to_hex(&id, run.name);
	run.spec = p->fds[0];
	r = exec_run_make(s, &run, e);
	if (r <= 0) {
		rep->existed = r == 0;
		return r;
	}
	r = open_for_executor(s, req, &run, e);
	if (r < 0)
		goto undo_run;
	if ((r = limit_memory(s, req, &run)) < 0 || (r = limit_cpu(s, req, &run)) < 0) {
		r = err_set(e, r, "set the limits of run %s", run.name);
		goto undo_run;
	}
	r = exec_spawn_executor(s, &run);
	if (r < 0) {
		r = err_set(e, r, "start the executor of run %s", run.name);
		goto undo_run;
	}
	s->started = true;
	CRASH_POINT(EXEC_AFTER_CLONE);
	exec_run_done(&run);
	return 0;

undo_run:
	exec_run_undo(s, &run);
	return r;
}
