// SPDX-License-Identifier: Apache-2.0
/* exec_cores.c: processors that belong to one run alone, and what the others share. Runs in:
 * exec-helper. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/fd.h"
#include "exec-helper/exec.h"

#define CORES_MAX 4096 /* in a request: one has that many at most */

int
exec_cores_check(const struct exec_state *s, size_t n, struct err *e)
{
	if (s->cgroup.tasks[CGROUP_CPUSET] < 0)
		return err_say(e, -ENOTSUP,
		    "cores: this machine has no cpuset controller that could reserve them");
	return n > CORES_MAX ? err_say(e, -E2BIG, "cores: more than %d", CORES_MAX) : 0;
}

/* The kernel refuses those that are not there. */
static int
write_cpus(int dir, const uint32_t *cores, size_t n)
{
	char text[CORES_MAX * sizeof ",4294967295"];
	size_t at = 0;

	for (size_t i = 0; i < n; i++)
		at += (size_t)snprintf(text + at, sizeof text - at, i ? ",%u" : "%u", cores[i]);
	return fd_write_file(dir, "cpuset.cpus", text);
}

int
exec_cores_set(
    const struct exec_state *s, const struct exec_run *run, const uint32_t *cores, size_t n)
{
	bool in_v2 = s->cgroup.in_v2 & CGROUP_BIT(CGROUP_CPUSET);

	return write_cpus(run->cgroup[in_v2 ? CGROUP_V2 : CGROUP_CPUSET], cores, n);
}
