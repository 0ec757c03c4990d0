// SPDX-License-Identifier: Apache-2.0
/* hook_identity.c: requests the tokens of an alloc's tasks from the source, before the tasks start
 * and whenever tokens are to be renewed. Runs in: supervisor. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/mem.h"
#include "supervisor/alloc/alloc_hooks.h"
#include "supervisor/alloc/alloc_state.h"
#include "supervisor/alloc/alloc_token.h"
#include "supervisor/alloc/task_events.h"
#include "supervisor/core/journal.h"
#include "supervisor/core/sup_tidy.h"
#include "supervisor/service/task_env.h"
#include "supervisor/source/source.h"

#define FIRST_RETRY_MAX_MS 15000
#define FIRST_LIMIT_MS     300000 /* the longest wait of a new alloc for its tokens */
#define RETRY_MS           1000
#define RETRY_MAX_MS       300000

static void request_tokens(struct alloc_identities *ids);

/* --- the times of requests --- */

static void
on_time(void *arg)
{
	struct alloc_identities *ids = arg;
	struct alloc_runner *ar = ids->ar;

	sup_timer_cancel(&ids->timer);
	for (unsigned i = 0; i < ar->n_tasks; i++)
		task_tokens_give(ids, &ar->tasks[i]);
	request_tokens(ids);
}

/* Wakes when the next token is due. */
static void
arm_renewal(struct alloc_identities *ids)
{
	uint64_t now = clock_boot_ns() / NS_PER_MS, at = UINT64_MAX;

	for (size_t i = 0; i < ids->n; i++) {
		const struct token *t = &ids->v[i];
		uint64_t due = !t->jwt ? now : t->life_ns > 0 ? t->renew_ms : UINT64_MAX;

		if (t->tr->phase != TASK_DEAD && due < at)
			at = due;
	}
	if (at != UINT64_MAX)
		tokens_wake(ids, at > now ? at - now + 1 : 1);
}

/* Retries with growing delays, but often enough to renew a token with a short life in time. */
static void
arm_retry(struct alloc_identities *ids)
{
	uint64_t max = ids->waiting ? FIRST_RETRY_MAX_MS : RETRY_MAX_MS, ms;

	for (size_t i = 0; i < ids->n; i++) {
		uint64_t part = (uint64_t)(ids->v[i].life_ns / NS_PER_MS) / 8;

		if (part > 0 && part < max)
			max = part;
	}
	ms = (uint64_t)RETRY_MS << (ids->failures < 16 ? ids->failures : 16);
	ids->failures++;
	if (ms > max)
		ms = max > RETRY_MS ? max : RETRY_MS;
	tokens_wake(ids, ms + (uint64_t)random() % ms);
}

static void
cancel_request(struct alloc_identities *ids)
{
	struct source *source = ids->ar->sup->source;

	sup_timer_cancel(&ids->timer);
	if (ids->asking && source) /* NULL: the source was freed first */
		source->ops->sign_cancel(source, ids->ar->sa);
	ids->asking = false;
}

/* --- answers --- */

static void
end_wait(struct alloc_identities *ids, int r, const struct err *e)
{
	ids->waiting = false;
	alloc_hook_done(ids->ar, r, e);
}

/* The life of a token is the ttl of the job, from now on. The token's own times are not used,
 * because the clocks of servers and node may differ. */
static void
store_token(struct alloc_identities *ids, const struct source_token *token)
{
	for (size_t i = 0; i < ids->n; i++) {
		struct token *t = &ids->v[i];

		if (!str_eq(t->tr->task->name, token->task) || !str_eq(t->spec->name, token->name))
			continue;
		str_set(&t->jwt, token->jwt);
		t->signed_ns = clock_real_ns();
		t->life_ns = t->spec->ttl;
		t->given = t->giving = t->late = false;
		token_set_times(t, 0);
		if (token->expires_ns > 0 && token->expires_ns <= t->signed_ns)
			journal_warn(JOURNAL_TASK, ABOUT_TASK(ids->ar->sa, token->task),
			    "allocation %.8s task %s: its token %s has expired already by "
			    "this node's clock: the servers' or this one is wrong",
			    ids->ar->sa->a.id, token->task, token->name);
	}
}

static void
tell_late(struct alloc_identities *ids, const struct err *e)
{
	for (size_t i = 0; i < ids->n; i++) {
		struct token *t = &ids->v[i];
		char text[ERR_MSG_SIZE + NAME_BYTES_MAX + 64];

		if (t->late || !t->jwt || !token_is_missing(t))
			continue;
		t->late = true;
		(void)snprintf(text, sizeof text,
		    "Identity[%s]: the token has expired and is not renewed yet: %s",
		    str(t->spec->name), e->msg);
		task_runner_tell(t->tr, EVENT_HOOK_MESSAGE, text, false);
	}
}

static void
tell_waiting(struct alloc_identities *ids, const struct err *e)
{
	char text[ERR_MSG_SIZE + 64];

	if (ids->told)
		return;
	ids->told = true;
	(void)snprintf(text, sizeof text, "identity: the tokens are not signed yet: %s", e->msg);
	alloc_tell_tasks(ids->ar, EVENT_HOOK_MESSAGE, text);
}

static void
fail_or_retry(struct alloc_identities *ids, int r, const struct err *e)
{
	struct alloc_runner *ar = ids->ar;
	bool over = !ar->restored && clock_ms() - ids->begun_ms > FIRST_LIMIT_MS;
	struct err why = { 0 };

	if (ids->waiting && (r == -EKEYREJECTED || over)) {
		end_wait(ids,
		    err_say(&why, -EINVAL, "failed to fetch signed identities: %s", e->msg), &why);
		return;
	}
	journal_warn(JOURNAL_ALLOC, ABOUT_ALLOC(ar->sa),
	    "allocation %.8s: its tokens are not signed yet: %s", ar->sa->a.id, e->msg);
	if (ids->waiting)
		tell_waiting(ids, e);
	else
		tell_late(ids, e);
	arm_retry(ids);
}

static void
on_signed(struct sup *sup, void *arg, int r, const struct source_token *tokens, size_t n,
    const struct err *e)
{
	struct alloc_identities *ids = arg;
	struct alloc_runner *ar = ids->ar;

	ids->asking = false;
	if (r < 0) {
		fail_or_retry(ids, r, e);
		return;
	}
	ids->failures = 0;
	for (size_t i = 0; i < n; i++)
		store_token(ids, &tokens[i]);
	alloc_save_soon(ar);
	arm_renewal(ids);
	for (unsigned i = 0; i < ar->n_tasks; i++)
		task_tokens_give(ids, &ar->tasks[i]);
	if (ids->waiting)
		end_wait(ids, 0, NULL);
}

/* Requests all tokens that are past half of their life in one call, because most tokens of an alloc
 * have the same age. */
static void
request_tokens(struct alloc_identities *ids)
{
	struct alloc_runner *ar = ids->ar;
	cleanup_free struct source_token *wanted = NULL;
	size_t n = 0;

	if (ids->asking || ar->phase > ALLOC_RUNNING)
		return;
	wanted = mem_zeroed(ids->n, sizeof *wanted);
	for (size_t i = 0; i < ids->n; i++)
		if (token_is_wanted(&ids->v[i]))
			wanted[n++] = (struct source_token){ .task = ids->v[i].task,
				.name = ids->v[i].spec->name };
	if (n == 0) {
		arm_renewal(ids);
		return;
	}
	ids->asking = true;
	ar->sup->source->ops->sign(ar->sup->source, ar->sa, wanted, n, on_signed, ids);
}

/* --- the hook --- */

static void
wait_for_first(struct alloc_runner *ar)
{
	struct alloc_identities *ids = alloc_identities_of(ar);
	bool missing = false;

	for (size_t i = 0; ids && i < ids->n; i++)
		missing |= token_is_missing(&ids->v[i]);
	/* If a task has a run, the alloc does not wait: its tasks continue and may restart. */
	if (!missing || ar->stopping || alloc_has_run(ar)) {
		if (ids)
			arm_renewal(ids);
		alloc_hook_done(ar, 0, NULL);
		return;
	}
	ids->waiting = true;
	ids->begun_ms = clock_ms();
	request_tokens(ids);
}

static void
stop_waiting(struct alloc_runner *ar)
{
	struct alloc_identities *ids = alloc_identities_of(ar);

	if (!ids || !ids->waiting)
		return;
	cancel_request(ids);
	end_wait(ids, 0, NULL);
}

static void
drop_tokens(struct alloc_runner *ar)
{
	struct alloc_identities *ids = steal_ptr(&identity_state(ar)->tokens);

	if (ids)
		cancel_request(ids);
	alloc_identities_free(ids);
}

/* No task needs the default tokens any more: they leave the alloc's row. */
static void
forget_default_tokens(struct alloc_runner *ar)
{
	if (ar->sa->a.signed_identities.n == 0)
		return;
	string_map_done(&ar->sa->a.signed_identities);
	alloc_tokens_changed(ar->sup, ar->sa);
}

static void
drop_in_postrun(struct alloc_runner *ar)
{
	if (alloc_identities_of(ar) || ar->sa->a.signed_identities.n > 0)
		tidy_secret(ar->sup);
	drop_tokens(ar);
	forget_default_tokens(ar);
	alloc_hook_done(ar, 0, NULL);
}

static void
init_tokens(struct alloc_runner *ar, const struct alloc_record *kept)
{
	struct alloc_identities *ids = alloc_identities_new(ar, kept);

	if (ids)
		ids->on_time = on_time;
	identity_state(ar)->tokens = ids;
}

static void
save_tokens(const struct alloc_runner *ar, struct alloc_record *rec)
{
	alloc_identities_save(alloc_identities_of(ar), rec);
}

static void
provide_env(struct sup *sup)
{
	task_env_provide(sup, TASK_ENV_IDENTITY, alloc_identities_put_env);
}

static int
add_files(struct task_runner *tr, struct spec_writer *spec, struct err *e)
{
	return alloc_identities_add_files(tr->ar->sa, tr->task, spec, e);
}

ALLOC_HOOK(identity, "identity", sizeof(struct identity_state), .start = provide_env,
    .init = init_tokens, .save = save_tokens, .shutdown = drop_tokens, .prerun = wait_for_first,
    .postrun = drop_in_postrun, .stop = stop_waiting,
    .task.state_size = sizeof(struct identity_task_state), .task.fill = add_files,
    .task.filled = task_tokens_filled, .task.runs = task_tokens_runs,
    .task.released = task_tokens_released);
