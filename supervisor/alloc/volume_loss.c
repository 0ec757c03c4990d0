// SPDX-License-Identifier: Apache-2.0
/* volume_loss.c: what tasks do about a volume that was mounted again after its file system had
 * ended. Runs in: supervisor. */
#include "supervisor/alloc/volume_loss.h"

#include <stdio.h>
#include <string.h>

#include "supervisor/alloc/loss_policy.h"
#include "supervisor/alloc/task_runner.h"
#include "supervisor/alloc/task_session.h"

static const char *
find_policy(const struct task_runner *tr)
{
	const struct alloc_runner *ar = tr->ar;
	const char *value = string_map_get(&tr->task->meta, LOSS_POLICY_KEY);

	if (!value)
		value = string_map_get(&ar->sa->group->meta, LOSS_POLICY_KEY);
	return value ? value : string_map_get(&ar->sa->job->job.meta, LOSS_POLICY_KEY);
}

static bool
mounts_volume(const struct task *task, const char *alias)
{
	for (size_t i = 0; i < task->volume_mounts.n; i++)
		if (str_eq(task->volume_mounts.v[i].volume, alias))
			return true;
	return false;
}

/* A running task has a mount of its own of what has ended: only its restart gives it the new one. A
 * task that uses the node's path finds the new one there. */
static void
apply_to(struct task_runner *tr, const struct volume_request *request)
{
	const char *policy = find_policy(tr);
	char text[512];
	int signo;

	if (!policy)
		policy = mounts_volume(tr->task, str(request->name)) ? "restart" : "noop";
	signo = loss_policy_signal(policy);
	(void)snprintf(text, sizeof text,
	    "volume %.128s was mounted again after it was lost%s%.128s%s", str(request->source),
	    signo >= 0 ? "" : "; " LOSS_POLICY_KEY " \"", signo >= 0 ? "" : policy,
	    signo >= 0 ? "" : "\" is not " LOSS_POLICY_VALUES);
	if (signo > 0)
		(void)task_runner_signal(tr, signo, text, NULL);
	else if (!str_eq(policy, "noop"))
		(void)task_runner_restart(tr, text, false, 0);
}

void
volume_loss_apply(struct alloc_runner *ar, const struct volume_request *request)
{
	for (unsigned i = 0; i < ar->n_tasks; i++)
		if (task_is_running(&ar->tasks[i]))
			apply_to(&ar->tasks[i], request);
}
