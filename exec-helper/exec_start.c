// SPDX-License-Identifier: Apache-2.0
/* exec_start.c: one start: checks it, makes its objects, starts its executor. Runs in: exec-helper.
 * Asked by: supervisor. */
#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/crash.h"
#include "common/fd.h"
#include "exec-helper/exec.h"

/* Sets each wanted limit through its file in v2 or v1; NULL: the version has no such file. A
 * missing file (no swap accounting, an older kernel) is not an error. */
static int
set_limits(struct exec_state *s, const struct exec_start *req, const struct exec_run *run)
{
	const uint64_t cpu = req->cpu_shares, shares = cpu < 2 ? 2 : cpu > 262144 ? 262144 : cpu;
	const uint64_t pids =
	    req->pids_max && req->pids_max < s->pids_max ? req->pids_max : s->pids_max;
	const struct limit {
		enum cgroup_tree tree;
		const char *v2, *v1;
		bool wanted;
		uint64_t value;
	} limits[] = {
		{ CGROUP_MEMORY, "memory.max", "memory.limit_in_bytes", req->memory_bytes,
		    req->memory_bytes },
		{ CGROUP_MEMORY, "memory.low", "memory.soft_limit_in_bytes", req->memory_soft_bytes,
		    req->memory_soft_bytes },
		{ CGROUP_MEMORY, "memory.swap.max", "memory.swappiness", true, 0 },
		/* The OOM killer kills all processes of a task together, because half a task is
		   worse than none. */
		{ CGROUP_MEMORY, "memory.oom.group", NULL, true, 1 },
		{ CGROUP_CPU, "cpu.weight", "cpu.shares", cpu,
		    s->cgroup.in_v2 & CGROUP_BIT(CGROUP_CPU) ? 1 + (shares - 2) * 9999 / 262142
							     : shares },
		/* The kernel's default period is 100 ms. */
		{ CGROUP_CPU, "cpu.max", "cpu.cfs_quota_us", req->cpu_quota_us, req->cpu_quota_us },
		{ CGROUP_PIDS, "pids.max", "pids.max", pids, pids },
	};
	int r = 0;

	for (const struct limit *l = limits; l < limits + ELEMENTSOF(limits) && r >= 0; l++) {
		bool in_v2 = s->cgroup.in_v2 & CGROUP_BIT(l->tree);
		int dir = run->cgroup[in_v2 ? CGROUP_V2 : l->tree];
		const char *file = in_v2 ? l->v2 : l->v1;
		char text[24];

		(void)snprintf(text, sizeof text, "%llu", (unsigned long long)l->value);
		if (l->wanted && dir >= 0 && file &&
		    (r = fd_write_file(dir, file, text)) == -ENOENT)
			r = 0;
	}
	return r;
}

/* The namespace of a network, which network-helper made and mounted there. */
static int
open_network(struct exec_state *s, struct exec_run *run, struct err *e)
{
	char path[64];

	(void)snprintf(path, sizeof path, "netns/%s", run->network_name);
	run->network = fd_open_beneath(s->rt, path, O_RDONLY, 0);
	if (run->network < 0)
		return err_set(e, run->network, "open network %s", run->network_name);
	/* If network-helper was killed while it made the network, the name is a plain file. */
	if (ioctl(run->network, NS_GET_NSTYPE) != CLONE_NEWNET)
		return err_say(e, -ENOENT, "there is no network %s", run->network_name);
	return 0;
}

int
exec_open_for_executor(struct exec_state *s, struct exec_run *run, struct err *e)
{
	int r;

	run->logs = fd_open_beneath(s->logs, s->setup.alloc_name, O_PATH | O_DIRECTORY, 0);
	if (run->logs < 0)
		return err_set(
		    e, run->logs, "open the log directory of alloc %s", s->setup.alloc_name);
	if (s->setup.keep.lease_ms > 0) {
		/* Opened by name, because a page that was deleted and made again is the valid one.
		 */
		run->lease = fd_open_beneath(s->rt, "lease", O_RDONLY, 0);
		if (run->lease < 0)
			return err_set(e, run->lease, "open the lease");
	}
	/* A session of an exec task joins the namespaces of the task's process. */
	if (s->setup.own_network && (r = open_network(s, run, e)) < 0)
		return r;
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
	if (driver_has_containers(s->setup.driver)) {
		if (req->n_layers > EXEC_LAYERS_MAX)
			return err_say(e, -EINVAL, "start: more than %d layers", EXEC_LAYERS_MAX);
		s->setup.n_layers = req->n_layers;
		_Static_assert(sizeof s->setup.layers == sizeof req->layers, "all layers");
		memcpy(s->setup.layers, req->layers, req->n_layers * sizeof s->setup.layers[0]);
	}
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
