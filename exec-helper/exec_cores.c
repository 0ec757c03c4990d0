// SPDX-License-Identifier: Apache-2.0
/* exec_cores.c: reserves cores for one run. Runs in: exec-helper. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/fd.h"
#include "exec-helper/exec.h"

#define CORES_MAX (64 * EXEC_CORE_WORDS)

bool
exec_cores_any(const uint64_t cores[EXEC_CORE_WORDS])
{
	uint64_t any = 0;

	for (unsigned i = 0; i < EXEC_CORE_WORDS; i++)
		any |= cores[i];
	return any != 0;
}

int
exec_cores_check(const struct exec_state *s, struct err *e)
{
	return s->cgroup.tasks[CGROUP_CPUSET] >= 0
		   ? 0
		   : err_say(e, -ENOTSUP,
			 "cores: this machine has no cpuset controller that could reserve them");
}

/* The kernel refuses cores that do not exist. */
static int
write_cpus(int dir, const uint64_t cores[EXEC_CORE_WORDS])
{
	char text[CORES_MAX * sizeof ",4095"];
	size_t at = 0;

	for (unsigned i = 0; i < CORES_MAX; i++)
		if (ipc_bit_get(cores, i))
			at += (size_t)snprintf(text + at, sizeof text - at, at ? ",%u" : "%u", i);
	return fd_write_file(dir, "cpuset.cpus", text);
}

int
exec_cores_set(
    const struct exec_state *s, const struct exec_run *run, const uint64_t cores[EXEC_CORE_WORDS])
{
	bool in_v2 = s->cgroup.in_v2 & CGROUP_BIT(CGROUP_CPUSET);

	return write_cpus(run->cgroup[in_v2 ? CGROUP_V2 : CGROUP_CPUSET], cores);
}
