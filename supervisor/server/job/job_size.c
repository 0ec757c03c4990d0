/* SPDX-License-Identifier: Apache-2.0 */
/* job_size.c: limits of the size of one job. Runs in: supervisor. */
#include <string.h>

#include "model/engine/parts.h"
#include "supervisor/server/job/job_validate.h"

/*
 * The elements of a list are compared in pairs (names that must differ, ports that must not
 * collide), so the time for a list grows with the square of its length: 1000 take milliseconds.
 */
#define LIST_MAX 1000
/* Elements of all lists together: each becomes a struct of some hundred bytes. */
#define PARTS_MAX 10000
/* Bytes of one text, which may be copied into each group (update), check (its service) or
 * allocation.
 */
#define TEXT_MAX     4096
#define JOB_NAME_MAX 255 /* bytes: the name is put into the names of the job's services */
/* Bytes of all allocations together, where an element of a list counts as 100. For each allocation
 * the constraints, tasks and ports of its group are checked, and its resources stored: this limit
 * takes about a second and some hundred megabytes. */
#define PLACED_MAX     100000000
#define BYTES_PER_PART 100

static int64_t
weigh(const struct parts *p)
{
	return (int64_t)(p->n * BYTES_PER_PART + p->bytes);
}

/* Returns the weight of the job without its groups. */
static int64_t
weigh_head(const struct job *job)
{
	struct parts all = model_parts(&job_type, job);
	int64_t bytes = weigh(&all);

	for (size_t i = 0; i < job->task_groups.n; i++) {
		struct parts p = model_parts(&task_group_type, &job->task_groups.v[i]);

		bytes -= weigh(&p);
	}
	return bytes;
}

static int
check_allocs(const struct job *job, struct err *e)
{
	int64_t left = PLACED_MAX, head = weigh_head(job);

	for (size_t i = 0; i < job->task_groups.n; i++) {
		const struct task_group *g = &job->task_groups.v[i];
		struct parts p = model_parts(&task_group_type, g);
		int64_t each = head + weigh(&p);

		if (g->count > left / each)
			return err_say(e, -EINVAL,
			    "group \"%.128s\": %lld allocations of %lld bytes (an element of a "
			    "list counts as %d) are too many: at most %d bytes are allowed for all "
			    "groups together",
			    str(g->name), (long long)g->count, (long long)each, BYTES_PER_PART,
			    PLACED_MAX);
		left -= g->count > 0 ? g->count * each : 0;
	}
	return 0;
}

int
job_check_size(const struct job *job, struct err *e)
{
	struct parts all = model_parts(&job_type, job);

	if (all.list.size > LIST_MAX)
		return err_say(e, -EINVAL,
		    "%s: the list has %zu elements, but at most %d are allowed", all.list.name,
		    all.list.size, LIST_MAX);
	if (all.n > PARTS_MAX)
		return err_say(e, -EINVAL,
		    "the job's lists have %zu elements in all, but at most %d are allowed", all.n,
		    PARTS_MAX);
	if (all.text.size > TEXT_MAX)
		return err_say(e, -EINVAL, "%s: the text has %zu bytes, but at most %d are allowed",
		    all.text.name, all.text.size, TEXT_MAX);
	if (strlen(str(job->name)) > JOB_NAME_MAX)
		return err_say(e, -EINVAL, "the job's name has more than %d bytes", JOB_NAME_MAX);
	return check_allocs(job, e);
}
