/* SPDX-License-Identifier: Apache-2.0 */
/* job_size.c: how much one job may consist of. Runs in: supervisor. */
#include "model/job.h"
#include "model/parts.h"

/*
 * The elements of a list are compared in pairs (names that must differ, ports that must not
 * collide), so the time for a list grows with the square of its length: 1000 take milliseconds.
 */
#define LIST_MAX 1000
/* Elements of all its lists: each becomes a struct of some hundred bytes. */
#define PARTS_MAX 10000
/*
 * For each allocation the constraints, tasks and ports of its group are looked at, and what it gets
 * is kept: about a second and some hundred megabytes for this many.
 */
#define PLACED_PARTS_MAX 1000000

/* What a job consists of beside its groups. */
static size_t
head_parts(const struct job *job)
{
	size_t n = model_parts(&job_type, job).n - job->task_groups.n;

	for (size_t i = 0; i < job->task_groups.n; i++)
		n -= model_parts(&task_group_type, &job->task_groups.v[i]).n;
	return n;
}

int
job_check_size(const struct job *job, struct err *e)
{
	struct parts all = model_parts(&job_type, job);
	int64_t left = PLACED_PARTS_MAX, head = (int64_t)head_parts(job);

	if (all.longest > LIST_MAX)
		return err_say(e, -EINVAL, "%s: the list has %zu elements, and %d are allowed",
		    all.of_name, all.longest, LIST_MAX);
	if (all.n > PARTS_MAX)
		return err_say(e, -EINVAL,
		    "the job's lists have %zu elements in all, and %d are allowed", all.n,
		    PARTS_MAX);
	for (size_t i = 0; i < job->task_groups.n; i++) {
		const struct task_group *g = &job->task_groups.v[i];
		int64_t each = head + 1 + (int64_t)model_parts(&task_group_type, g).n;

		if (g->count > left / each)
			return err_say(e, -EINVAL,
			    "group \"%.128s\": %lld allocations of %lld elements (tasks, ports, "
			    "constraints and the like) are too many: the product may be %d for all "
			    "groups together",
			    str(g->name), (long long)g->count, (long long)each, PLACED_PARTS_MAX);
		left -= g->count > 0 ? g->count * each : 0;
	}
	return 0;
}
