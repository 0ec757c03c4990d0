// SPDX-License-Identifier: Apache-2.0
/* alloc_why.c: explains why an alloc stopped or waits, by its events (task_why.c) and its present
 * state. Runs in: supervisor. */
#include "supervisor/alloc/alloc_why.h"

#include <string.h>

#include "supervisor/alloc/alloc_hooks.h"
#include "supervisor/alloc/alloc_state.h"
#include "supervisor/alloc/hook_checks.h"
#include "supervisor/alloc/task_artifacts.h"
#include "supervisor/alloc/task_templates.h"
#include "supervisor/alloc/task_events.h"
#include "supervisor/alloc/task_history.h"
#include "supervisor/alloc/task_why.h"
#include "supervisor/source/source.h"
#include "supervisor/volume/volumes.h"

/* --- the present state --- */

/* Hooks that may wait long, and the reason of the wait. */
static const struct {
	const char *hook, *text;
} waits[] = {
	{ "heartbeat_stop", "It waits for an answered heartbeat: it has "
			    "stop_after_client_disconnect, and no heartbeat was answered since the "
			    "machine started." },
	{ "await_previous_allocations",
	    "It waits until the allocation that it replaces, or one that it preempted, has "
	    "ended." },
	{ "identity", "It waits for the servers to sign the identities of its tasks." },
	{ "csi_hook", "It waits for its volumes to be claimed and mounted." },
};

static void
say_hook(const struct alloc_runner *ar, struct causes *c)
{
	const char *name = alloc_hooks_waits_for(ar);
	const char *what =
	    ar->phase == ALLOC_PRERUN ? "before its tasks start" : "after its tasks have ended";

	if (!name)
		return;
	for (size_t i = 0; i < ELEMENTSOF(waits); i++) {
		if (ar->phase == ALLOC_PRERUN && strcmp(waits[i].hook, name) == 0) {
			causes_add(c, 0, "", "%s", waits[i].text);
			return;
		}
	}
	causes_add(c, 0, "", "It waits for hook %s, %s.", name, what);
}

/* Adds the last message of the running hook. */
static void
say_hook_message(const struct alloc_runner *ar, struct causes *c)
{
	const struct task_state *s =
	    ar->n_tasks > 0 ? map_get(task_state, &ar->sa->a.task_states, ar->tasks[0].task->name)
			    : NULL;
	const struct task_event *last = s && s->events.n > 0 ? &s->events.v[s->events.n - 1] : NULL;

	if (alloc_hooks_waits_for(ar) && task_event_is(last, EVENT_HOOK_MESSAGE))
		causes_add(c, last->time, "", "%s.", str(last->display_message));
}

/* Returns whether the task runs, and a restarted supervisor waits for the first message of its
 * executor. */
static bool
is_found_again(const struct task_runner *tr)
{
	const struct task_state *s =
	    map_get(task_state, &tr->ar->sa->a.task_states, tr->task->name);

	return tr->phase == TASK_STARTING && s && s->state == TASK_STATE_RUNNING;
}

static void
say_phase(const struct task_runner *tr, struct causes *c)
{
	static const char *const texts[TASK_PHASES] = {
		[TASK_PREPARING] = "It is being prepared.",
		[TASK_STARTING] = "It is being started.",
		[TASK_DELAYING] = "It is stopping: it keeps running during its shutdown_delay.",
		[TASK_STOPPING] = "It was told to stop and has not ended yet.",
		[TASK_BACKOFF] = "It waits for the delay before its restart.",
	};

	if (tr->phase == TASK_WAITING && tr->admission.of)
		causes_add(c, 0, tr->task->name, "Driver %s does not work on this node: %s",
		    tr->task->driver,
		    driver_stopped_why(tr->ar->sup, str(tr->task->driver))
			?: "it has not been tried yet.");
	else if (tr->phase == TASK_WAITING && tr->ar->phase == ALLOC_RUNNING)
		causes_add(c, 0, tr->task->name, "%s",
		    !tr->gate_open
			? tr->stage == STAGE_POSTSTOP
			      ? "It is a poststop task: it waits for the main tasks to end."
			      : "It waits for tasks that have to start or end before it."
			: "It waits until its last run is cleaned up.");
	else if (tr->phase == TASK_PREPARING && task_artifacts_left(tr) > 0)
		causes_add(c, 0, tr->task->name, "It waits for %zu of its artifacts.",
		    task_artifacts_left(tr));
	else if (tr->phase == TASK_PREPARING && task_templates_why(tr, c))
		return;
	else if (texts[tr->phase] && !is_found_again(tr))
		causes_add(c, 0, tr->task->name, "%s", texts[tr->phase]);
}

static void
say_checks(const struct alloc_runner *ar, struct causes *c)
{
	for (const struct check *k = checks_next(alloc_checks(ar), NULL); k;
	     k = checks_next(alloc_checks(ar), k)) {
		const struct check_result *r = check_result(k);

		if (r->status == CHECK_FAILURE)
			causes_add(c, r->timestamp * 1000000000, str(r->task),
			    "Check \"%s\" of service \"%s\" fails: %s.", str(r->check),
			    str(r->service), *str(r->output) ? r->output : "it gave no output");
	}
}

/* Returns whether the alloc ran when the last supervisor ended and its hooks have not finished
 * again. Until then its phases are those of a new alloc, while its tasks run. */
static bool
is_taken_over(const struct alloc_runner *ar)
{
	return ar->restored && ar->phase == ALLOC_PRERUN &&
	       ar->sa->a.client_status == CLIENT_RUNNING;
}

static void
say_runner(const struct alloc_runner *ar, struct causes *c)
{
	if (is_taken_over(ar)) {
		causes_add(c, 0, "",
		    "The agent was restarted, and takes over its tasks, which ran before.");
		return;
	}
	if (ar->kill.step == KILL_VOLUMES)
		causes_add(c, 0, "",
		    "It is stopping: it is a CSI plugin, and keeps running until the volumes of "
		    "allocations that end are unmounted, at most 60 s after their end.");
	else if (sup_timer_is_set(&ar->kill.timer))
		causes_add(c, 0, "",
		    "It is stopping: it keeps running during the shutdown_delay of its group.");
	say_hook(ar, c);
	say_hook_message(ar, c);
	for (unsigned i = 0; i < ar->n_tasks; i++)
		say_phase(&ar->tasks[i], c);
	say_checks(ar, c);
}

/* --- the alloc's own end --- */

/* Returns the time when the first task was told to stop; 0: none was. */
static int64_t
end_began(const struct alloc *a)
{
	int64_t first = 0;

	for (size_t i = 0; i < a->task_states.n; i++) {
		const struct task_state *s = &a->task_states.v[i].value;

		for (size_t k = 0; k < s->events.n; k++)
			if (task_event_is(&s->events.v[k], EVENT_KILLING) &&
			    (first == 0 || s->events.v[k].time < first))
				first = s->events.v[k].time;
	}
	return first;
}

static void
say_wish(const struct sup_alloc *sa, struct causes *c)
{
	const struct alloc *a = &sa->a;
	int64_t began;

	if (*str(a->next_allocation))
		causes_add(c, 0, "", "Allocation %s replaces it.", a->next_allocation);
	if (a->desired_status == DESIRED_RUN || a->desired_status == DESIRED_NONE)
		return;
	began = end_began(a);
	causes_add(c, began ? began : a->modify_time, "", "It was %s: %s.",
	    a->desired_status == DESIRED_EVICT ? "preempted" : "stopped",
	    *str(a->desired_description) ? a->desired_description : "the reason is not known");
}

/* A promoted canary is not marked as a canary any more. */
static void
say_canary(const struct alloc *a, struct causes *c)
{
	const struct deployment_status *s = a->deployment_status;
	enum opt_bool healthy = s ? s->healthy : OPT_UNSET;

	if (!*str(a->deployment_id) || a->desired_status != DESIRED_RUN ||
	    a->client_status != CLIENT_RUNNING)
		return;
	if (s && s->canary && healthy == OPT_TRUE)
		causes_add(c, 0, "",
		    "It is a healthy canary, and waits for deployment %s to be promoted.",
		    a->deployment_id);
	else if (s && s->canary)
		causes_add(c, 0, "", "It is a canary of deployment %s, and %s.", a->deployment_id,
		    healthy == OPT_UNSET ? "has not been found healthy yet" : "is not healthy");
}

/* Adds what its volumes wait for: a call, or the next try of one that has failed. */
static void
say_volumes(struct sup *sup, const struct sup_alloc *sa, struct causes *c)
{
	char what[ERR_MSG_SIZE + 64];

	for (size_t i = 0; i < sa->group->volumes.n; i++)
		if (volume_say_pending(sup, sa, sa->group->volumes.v[i].key, what, sizeof what))
			causes_add(c, 0, "", "V%s.", what + 1);
}

/* Without an answer of the source, adds what the servers plan. */
static void
say_successor(struct sup *sup, struct sup_alloc *sa, struct causes *c)
{
	const struct alloc *a = &sa->a;

	if (sup->source->ops->why)
		sup->source->ops->why(sup->source, sa, c);
	else if (*str(a->followup_eval_id) && !*str(a->next_allocation) &&
		 a->client_status == CLIENT_FAILED)
		causes_add(c, 0, "",
		    "Its replacement is placed when its reschedule policy allows it: "
		    "evaluation %s.",
		    a->followup_eval_id);
}

/* To be called if no other cause was found. */
static void
say_nothing_known(const struct sup_alloc *sa, struct causes *c)
{
	if (sa->a.client_status == CLIENT_RUNNING)
		causes_add(c, 0, "", "It runs. Nothing has stopped or restarted it.");
	else
		causes_add(c, 0, "", "It is %s; the reason is not known.",
		    client_status_names[sa->a.client_status]);
}

int
alloc_why(struct sup *sup, struct sup_alloc *sa, struct causes *ret, struct err *e)
{
	int r = 0;

	*ret = (struct causes){ 0 };
	say_wish(sa, ret);
	say_successor(sup, sa, ret);
	say_canary(&sa->a, ret);
	if (sa->runner)
		say_runner(sa->runner, ret);
	say_volumes(sup, sa, ret);
	for (size_t i = 0; r >= 0 && i < sa->group->tasks.n; i++) {
		cleanup_done(task_state) struct task_state past;

		task_state_init(&past);
		r = task_history_read(sup, sa, sa->group->tasks.v[i].name, &past, e);
		if (r >= 0)
			task_why(sa, &sa->group->tasks.v[i], &past, ret);
	}
	if (ret->n == 0)
		say_nothing_known(sa, ret);
	causes_sort(ret);
	return r;
}
