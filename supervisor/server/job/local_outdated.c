// SPDX-License-Identifier: Apache-2.0
/* local_outdated.c: how an alloc is updated to the wanted version of its job. Runs in: supervisor.
 */
#include "supervisor/server/job/local_outdated.h"

#include "model/job.h"
#include "supervisor/server/job/job_diff.h"
#include "supervisor/table/alloc_table.h"

enum local_outdated
local_alloc_outdated(
    const struct sup_alloc *sa, const struct job *wanted, const struct task_group *wanted_group)
{
	const struct job *has = &sa->job->job;

	if (has->version == wanted->version)
		return LOCAL_CURRENT;
	return group_needs_replacement(has, sa->group, wanted, wanted_group, NULL, 0)
		   ? LOCAL_UPDATE_REPLACE
		   : LOCAL_UPDATE_IN_PLACE;
}
