/* SPDX-License-Identifier: Apache-2.0 */
/* alloc_status.c: computes an alloc's status from the states of its tasks. Runs in: supervisor,
 * cli. */
#include "model/alloc.h"

bool
client_status_is_terminal(enum client_status s)
{
	return s == CLIENT_COMPLETE || s == CLIENT_FAILED || s == CLIENT_LOST;
}

bool
alloc_client_terminal(const struct alloc *a)
{
	return client_status_is_terminal(a->client_status);
}

bool
alloc_server_terminal(const struct alloc *a)
{
	return a->desired_status == DESIRED_STOP || a->desired_status == DESIRED_EVICT;
}

bool
alloc_terminal(const struct alloc *a)
{
	return alloc_server_terminal(a) || alloc_client_terminal(a);
}

enum client_status
alloc_client_status(
    const struct alloc *a, const struct task_group *group, const char **ret_description)
{
	bool running = false, pending = false;
	const struct task_state *s;
	size_t i;

	for (i = 0; i < group->tasks.n; i++) {
		s = map_get(task_state, &a->task_states, group->tasks.v[i].name);
		if (s && s->state == TASK_STATE_DEAD && s->failed) {
			*ret_description = "Failed tasks";
			return CLIENT_FAILED;
		}
		running |= s && s->state == TASK_STATE_RUNNING;
		pending |= !s || s->state == TASK_STATE_PENDING || s->state == TASK_STATE_NONE;
	}
	if (group->tasks.n == 0) {
		*ret_description = "";
		return CLIENT_NONE;
	}
	*ret_description = running   ? "Tasks are running"
			   : pending ? "No tasks have started"
				     : "All tasks have completed";
	return running ? CLIENT_RUNNING : pending ? CLIENT_PENDING : CLIENT_COMPLETE;
}

void
task_state_add_event(struct task_state *s, struct task_event *ev)
{
	struct task_event *at = list_add(task_event, &s->events);

	*at = *ev;
	task_event_init(ev);
	while (s->events.n > TASK_EVENTS_MAX)
		list_remove(task_event, &s->events, 0);
}
