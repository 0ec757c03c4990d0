// SPDX-License-Identifier: Apache-2.0
/* hook_identity.c: asks the source for the tokens of an alloc's tasks: the first before they start,
 * then new ones in time. Runs in: supervisor. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <systemd/sd-event.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/lease.h"
#include "common/log.h"
#include "supervisor/alloc/alloc_token.h"

#define FIRST_RETRY_MAX_MS 15000
#define FIRST_LIMIT_MS     300000 /* a new alloc waits no longer for its tokens */
#define RETRY_MS           1000
#define RETRY_MAX_MS       300000

struct identity {
	struct alloc_identities *tokens; /* NULL: the tasks ask for none */
};

static void ask(struct alloc_identities *ids);

static struct identity *
state_of(const struct alloc_runner *ar)
{
	return alloc_hook_state(ar, &alloc_hook_identity);
}

struct alloc_identities *
alloc_identities_of(const struct alloc_runner *ar)
{
	return state_of(ar)->tokens;
}

/* --- when tokens are asked for --- */

static int
on_time(struct sd_event_source *source, uint64_t usec, void *userdata)
{
	struct alloc_identities *ids = userdata;
	struct alloc_runner *ar = ids->ar;

	ids->timer = sd_event_source_disable_unref(ids->timer);
	for (unsigned i = 0; i < ar->n_tasks; i++)
		task_tokens_give(ids, &ar->tasks[i]);
	ask(ids);
	return 0;
}

void
alloc_tokens_wake(struct alloc_identities *ids, uint64_t ms)
{
	ids->timer = sd_event_source_disable_unref(ids->timer);
	if (sd_event_add_time_relative(
		ids->ar->sup->event, &ids->timer, CLOCK_BOOTTIME, ms * 1000, 0, on_time, ids) < 0)
		log_error("allocation %.8s: no memory to renew its tokens", ids->ar->sa->a.id);
}

/* Wakes when the first token is due. */
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
		alloc_tokens_wake(ids, at > now ? at - now + 1 : 1);
}

/* Retries often enough to renew a token of a short life in time. */
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
	alloc_tokens_wake(ids, ms + (uint64_t)random() % ms);
}

void
alloc_tokens_quit(struct alloc_identities *ids)
{
	struct source *source = ids->ar->sup->source;

	ids->timer = sd_event_source_disable_unref(ids->timer);
	if (ids->asking && source) /* NULL: the source was freed first */
		source->ops->sign_cancel(source, ids->ar->sa);
	ids->asking = false;
}

/* --- the answers --- */

static void
end_wait(struct alloc_identities *ids, int r, const struct err *e)
{
	ids->waiting = false;
	alloc_hook_done(ids->ar, r, e);
}

/* A token's life is counted from the answer on, as the job gives it: the clocks of servers and node
 * may differ. */
static void
take(struct alloc_identities *ids, const struct source_token *token)
{
	for (size_t i = 0; i < ids->n; i++) {
		struct token *t = &ids->v[i];

		if (!str_eq(t->tr->task->name, token->task) || !str_eq(t->spec->name, token->name))
			continue;
		if (str_set(&t->jwt, token->jwt) < 0)
			return;
		t->signed_ns = clock_real_ns();
		t->life_ns = t->spec->ttl;
		t->given = t->giving = t->late = false;
		token_set_times(t, 0);
		if (token->expires_ns > 0 && token->expires_ns <= t->signed_ns)
			log_warn("allocation %.8s task %s: its token %s has expired already by "
				 "this node's clock: the servers' or this one is wrong",
			    ids->ar->sa->a.id, token->task, token->name);
	}
}

static bool
has_run(const struct alloc_runner *ar)
{
	for (unsigned i = 0; i < ar->n_tasks; i++)
		if (ar->tasks[i].run)
			return true;
	return false;
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
	struct alloc_runner *ar = ids->ar;
	char text[ERR_MSG_SIZE + 64];

	if (ids->told)
		return;
	ids->told = true;
	(void)snprintf(text, sizeof text, "identity: the tokens are not signed yet: %s", e->msg);
	for (unsigned i = 0; i < ar->n_tasks; i++)
		task_runner_tell(&ar->tasks[i], EVENT_HOOK_MESSAGE, text, false);
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
	log_warn("allocation %.8s: its tokens are not signed yet: %s", ar->sa->a.id, e->msg);
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
		take(ids, &tokens[i]);
	alloc_client_save(ar);
	arm_renewal(ids);
	for (unsigned i = 0; i < ar->n_tasks; i++)
		task_tokens_give(ids, &ar->tasks[i]);
	if (ids->waiting)
		end_wait(ids, 0, NULL);
}

/* Asks for all tokens past half of their life: most tokens of a job are of one age. */
static void
ask(struct alloc_identities *ids)
{
	struct alloc_runner *ar = ids->ar;
	cleanup_free struct source_token *wanted = calloc(ids->n, sizeof *wanted);
	size_t n = 0;

	if (!wanted || ids->asking || ar->phase > ALLOC_RUNNING)
		return;
	for (size_t i = 0; i < ids->n; i++)
		if (token_is_wanted(&ids->v[i]))
			wanted[n++] = (struct source_token){ .task = ids->v[i].tr->task->name,
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
	/* Tasks that run go on, and may restart, while a server is asked. */
	if (!missing || ar->stopping || has_run(ar)) {
		if (ids)
			arm_renewal(ids);
		alloc_hook_done(ar, 0, NULL);
		return;
	}
	ids->waiting = true;
	ids->begun_ms = clock_ms();
	ask(ids);
}

static void
stop_waiting(struct alloc_runner *ar)
{
	struct alloc_identities *ids = alloc_identities_of(ar);

	if (!ids || !ids->waiting)
		return;
	alloc_tokens_quit(ids);
	end_wait(ids, 0, NULL);
}

static void
drop_tokens(struct alloc_runner *ar)
{
	alloc_identities_free(state_of(ar)->tokens);
	state_of(ar)->tokens = NULL;
}

static void
postrun(struct alloc_runner *ar)
{
	drop_tokens(ar);
	alloc_hook_done(ar, 0, NULL);
}

static int
init(struct alloc_runner *ar, const json_t *kept)
{
	return alloc_identities_new(ar, json_object_get(kept, "identities"), &state_of(ar)->tokens);
}

static void
save(const struct alloc_runner *ar, struct text *t)
{
	if (!alloc_identities_of(ar))
		return;
	text_printf(t, ",\"identities\":");
	alloc_identities_save(alloc_identities_of(ar), t);
}

const struct alloc_hook alloc_hook_identity = {
	.name = "identity",
	.state_size = sizeof(struct identity),
	.init = init,
	.save = save,
	.shutdown = drop_tokens,
	.prerun = wait_for_first,
	.postrun = postrun,
	.stop = stop_waiting,
};
