// SPDX-License-Identifier: Apache-2.0
/* local_reschedule.c: attempts and delays of the reschedule block. Runs in: supervisor. */
#include "supervisor/server/job/local_reschedule.h"

#define EVENTS_KEPT 5

int64_t
local_reschedule_failed_at(const struct alloc *failed)
{
	int64_t last = 0;

	for (size_t i = 0; i < failed->task_states.n; i++) {
		int64_t end = failed->task_states.v[i].value.finished_at;

		if (end > last)
			last = end;
	}
	return last ? last : failed->modify_time;
}

static size_t
count_since(const struct reschedule_tracker *t, int64_t since)
{
	size_t n = 0;

	for (size_t i = 0; i < t->events.n; i++)
		n += t->events.v[i].reschedule_time > since;
	return n;
}

/* Returns the next delay by the delay function, after the attempts so far. */
static int64_t
next_delay(const struct reschedule_policy *p, const struct reschedule_tracker *t)
{
	size_t n = t->events.n;
	int64_t last = t->events.v[n - 1].delay, before = n > 1 ? t->events.v[n - 2].delay : 0,
		next;

	if (p->delay_function == DELAY_CONSTANT)
		return p->delay;
	/* After a reset, fibonacci starts again with the first delay. */
	if (p->delay_function == DELAY_EXPONENTIAL)
		before = last;
	else if (before > last)
		before = 0;
	if (__builtin_add_overflow(last, before, &next))
		next = INT64_MAX - 1;
	return next;
}

int64_t
local_reschedule_delay(const struct reschedule_policy *p, const struct alloc *failed)
{
	const struct reschedule_tracker *t = failed->reschedule_tracker;
	int64_t at = local_reschedule_failed_at(failed), delay;

	if (!p || (p->unlimited != OPT_TRUE && p->attempts <= 0))
		return LOCAL_RESCHEDULE_NEVER;
	if (!t || t->events.n == 0)
		return p->delay;
	if (p->unlimited != OPT_TRUE && count_since(t, at - p->interval) >= (size_t)p->attempts)
		return LOCAL_RESCHEDULE_NEVER;
	delay = next_delay(p, t);
	if (p->max_delay > 0 && delay > p->max_delay)
		delay = p->max_delay;
	/* It ran for longer than the delay: the sequence starts again. */
	if (p->delay_function != DELAY_CONSTANT &&
	    at - t->events.v[t->events.n - 1].reschedule_time > delay)
		delay = p->delay;
	return delay;
}

int64_t
local_reschedule_at(const struct sup_alloc *sa)
{
	const struct alloc *a = &sa->a;
	enum job_kind type = sa->job->job.type;
	int64_t delay, at;

	if (a->client_status != CLIENT_FAILED || (type != JOB_SERVICE && type != JOB_BATCH))
		return LOCAL_RESCHEDULE_NEVER;
	delay = local_reschedule_delay(sa->group->reschedule_policy, a);
	if (delay == LOCAL_RESCHEDULE_NEVER ||
	    __builtin_add_overflow(local_reschedule_failed_at(a), delay, &at))
		return LOCAL_RESCHEDULE_NEVER;
	return at;
}

static void
copy_events(const struct reschedule_policy *p, const struct alloc *failed,
    struct reschedule_tracker *to, int64_t now_ns)
{
	const struct reschedule_tracker *from = failed->reschedule_tracker;
	size_t n = from ? from->events.n : 0, first = 0;

	if (p->unlimited == OPT_TRUE)
		first = n > EVENTS_KEPT - 1 ? n - (EVENTS_KEPT - 1) : 0;
	for (size_t i = first; i < n; i++) {
		const struct reschedule_event *old = &from->events.v[i];

		if (p->unlimited != OPT_TRUE && old->reschedule_time <= now_ns - p->interval)
			continue;
		reschedule_event_copy(old, list_add(reschedule_event, &to->events));
	}
}

void
local_reschedule_record(const struct reschedule_policy *p, const struct alloc *failed,
    struct alloc *successor, int64_t now_ns)
{
	struct reschedule_event *ev;

	if (!successor->reschedule_tracker)
		successor->reschedule_tracker = reschedule_tracker_new();
	copy_events(p, failed, successor->reschedule_tracker, now_ns);
	ev = list_add(reschedule_event, &successor->reschedule_tracker->events);
	str_set(&ev->prev_alloc_id, failed->id);
	str_set(&ev->prev_node_id, failed->node_id);
	ev->reschedule_time = now_ns;
	ev->delay = local_reschedule_delay(p, failed);
}
