// SPDX-License-Identifier: Apache-2.0
/* alloc_identity.c: the tokens of an alloc's tasks: what is kept of them, when they are renewed,
 * and the hook that waits for the first. Runs in: supervisor. */
#include "supervisor/alloc/alloc_identity.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-event.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/lease.h"
#include "common/log.h"
#include "model/task_event.h"
#include "supervisor/alloc/alloc_runner.h"
#include "supervisor/alloc/task_session.h"
#include "supervisor/driver/signal_name.h"

#define FIRST_RETRY_MAX_MS 15000
#define FIRST_LIMIT_MS     300000 /* a new alloc waits no longer for its tokens */
#define RENEW_MIN_NS       NS_PER_S
#define RETRY_MS           1000
#define RETRY_MAX_MS       300000
#define FILE_RETRIES       10
#define FILE_RETRY_MS      2000

struct token {
	struct task_runner *tr;
	const struct workload_identity *spec; /* in the version that the alloc began with */
	char *jwt;                            /* NULL: none yet */
	int64_t signed_ns, life_ns;           /* by this node's clock; life 0: for ever */
	uint64_t half_ms, renew_ms, end_ms;   /* since boot, with a life */
	bool given;  /* the task that runs has it, or its next start will */
	bool giving; /* it is being written, or what its change makes happen is under way */
	bool late;   /* an event has said that it could not be renewed */
};

struct alloc_identities {
	struct alloc_runner *ar;
	struct sd_event_source *timer;
	bool asking;  /* the source */
	bool waiting; /* the hook, for the first tokens */
	bool told;    /* what it waits for */
	unsigned failures, file_failures;
	uint64_t begun_ms;
	size_t n;
	struct token v[];
};

static void ask(struct alloc_identities *ids);
static void give(struct alloc_identities *ids, struct task_runner *tr);

static uint64_t
boot_ms(void)
{
	return boottime_ns() / NS_PER_MS;
}

/* --- when a token is renewed --- */

/* At half of its life, and up to a tenth of that later so that the allocs of a job do not all ask
 * at once. What is counted goes on while the machine sleeps, and does not jump when its clock is
 * set. */
static void
set_times(struct token *t, int64_t age_ns)
{
	int64_t half = t->life_ns / 2 > RENEW_MIN_NS ? t->life_ns / 2 : RENEW_MIN_NS;
	uint64_t now = boot_ms();

	if (age_ns < 0)
		age_ns = 0;
	t->half_ms = now + (uint64_t)(half > age_ns ? (half - age_ns) / NS_PER_MS : 0);
	t->renew_ms = t->half_ms + (uint64_t)(random() % (half / 10 / NS_PER_MS + 1));
	t->end_ms = now + (uint64_t)(t->life_ns > age_ns ? (t->life_ns - age_ns) / NS_PER_MS : 0);
}

static bool
is_wanted(const struct token *t)
{
	return t->tr->phase != TASK_DEAD &&
	       (!t->jwt || (t->life_ns > 0 && boot_ms() >= t->half_ms));
}

/* Without one like this no task starts. */
static bool
is_missing(const struct token *t)
{
	return t->tr->phase != TASK_DEAD && (!t->jwt || (t->life_ns > 0 && boot_ms() >= t->end_ms));
}

/* --- what is kept --- */

void
alloc_identities_save(const struct alloc_identities *ids, struct text *t)
{
	const char *separator = "[";

	for (size_t i = 0; ids && i < ids->n; i++) {
		const struct token *one = &ids->v[i];

		if (!one->jwt)
			continue;
		text_printf(t, "%s{\"task\":", separator);
		text_json_string(t, one->tr->task->name);
		text_printf(t, ",\"name\":");
		text_json_string(t, str(one->spec->name));
		text_printf(t, ",\"token\":");
		text_json_string(t, one->jwt);
		text_printf(t, ",\"signed\":%lld,\"life\":%lld,\"given\":%s}",
		    (long long)one->signed_ns, (long long)one->life_ns,
		    one->given ? "true" : "false");
		separator = ",";
	}
	text_printf(t, "%s]", *separator == '[' ? "[" : "");
}

static void
load_one(struct token *t, const json_t *saved)
{
	json_t *one;
	size_t i;

	json_array_foreach (saved, i, one) {
		const char *task = json_string_value(json_object_get(one, "task"));
		const char *name = json_string_value(json_object_get(one, "name"));

		if (!str_eq(task, t->tr->task->name) || !str_eq(name, t->spec->name))
			continue;
		(void)str_set(&t->jwt, json_string_value(json_object_get(one, "token")));
		t->signed_ns = json_integer_value(json_object_get(one, "signed"));
		t->life_ns = json_integer_value(json_object_get(one, "life"));
		t->given = json_is_true(json_object_get(one, "given"));
		set_times(t, task_now_ns() - t->signed_ns);
	}
}

/* One that is neither in the environment nor a file reaches nobody. */
static bool
is_used(const struct workload_identity *w)
{
	return w->env || w->file;
}

int
alloc_identities_new(struct alloc_runner *ar, const json_t *saved, struct alloc_identities **ret)
{
	struct alloc_identities *ids;
	size_t n = 0;

	for (unsigned i = 0; i < ar->n_tasks; i++)
		for (size_t k = 0; k < ar->tasks[i].task->identities.n; k++)
			n += is_used(&ar->tasks[i].task->identities.v[k]);
	*ret = NULL;
	if (n == 0)
		return 0;
	ids = calloc(1, sizeof *ids + n * sizeof ids->v[0]);
	if (!ids)
		return -ENOMEM;
	ids->ar = ar;
	for (unsigned i = 0; i < ar->n_tasks; i++)
		for (size_t k = 0; k < ar->tasks[i].task->identities.n; k++) {
			const struct workload_identity *w = &ar->tasks[i].task->identities.v[k];

			if (!is_used(w))
				continue;
			ids->v[ids->n] = (struct token){ .tr = &ar->tasks[i], .spec = w };
			load_one(&ids->v[ids->n++], saved);
		}
	*ret = ids;
	return 0;
}

static void
quit(struct alloc_identities *ids)
{
	struct source *source = ids->ar->sup->source;

	ids->timer = sd_event_source_disable_unref(ids->timer);
	if (ids->asking && source) /* else it has gone before */
		source->ops->sign_cancel(source, ids->ar->sa);
	ids->asking = false;
}

void
alloc_identities_free(struct alloc_identities *ids)
{
	if (!ids)
		return;
	quit(ids);
	for (size_t i = 0; i < ids->n; i++)
		free(ids->v[i].jwt);
	free(ids);
}

/* --- what a task gets --- */

/* The default one came with the alloc; NULL: it did not, or is not asked for. */
static const char *
default_token(const struct sup_alloc *sa, const struct task *task, bool as_file)
{
	const struct workload_identity *w = task->identity;

	return w && (as_file ? w->file : w->env)
		   ? string_map_get(&sa->a.signed_identities, str(task->name))
		   : NULL;
}

/* Steps to the task's next token of which there is one. */
static const struct token *
next_token(const struct sup_alloc *sa, const struct task *task, size_t *at)
{
	const struct alloc_identities *ids = sa->runner ? sa->runner->identities : NULL;

	while (ids && *at < ids->n) {
		const struct token *t = &ids->v[(*at)++];

		if (t->jwt && str_eq(t->tr->task->name, task->name))
			return t;
	}
	return NULL;
}

int
alloc_identities_put_env(
    const struct sup_alloc *sa, const struct task *task, struct string_map *vars)
{
	const char *jwt = default_token(sa, task, false);
	const struct token *t;
	size_t at = 0;
	int r = jwt ? string_map_set(vars, "NOMAD_TOKEN", jwt) : 0;

	while (r >= 0 && (t = next_token(sa, task, &at))) {
		char name[sizeof "NOMAD_TOKEN_" + NAME_BYTES_MAX];

		(void)snprintf(name, sizeof name, "NOMAD_TOKEN_%s", str(t->spec->name));
		if (t->spec->env)
			r = string_map_set(vars, name, t->jwt);
	}
	return r;
}

static int
add_file(
    const struct workload_identity *w, const char *jwt, struct spec_writer *spec, struct err *e)
{
	char name[IDENTITY_FILE_SIZE];
	struct err why = { 0 };

	if (identity_file(w, name, &why) < 0)
		return err_say(e, -EINVAL, "identity \"%s\": %s", str(w->name), why.msg);
	spec_add_str(spec, SPEC_SECRET_NAME, name);
	spec_add_str(spec, SPEC_SECRET_DATA, jwt);
	return 0;
}

int
alloc_identities_add_files(
    const struct sup_alloc *sa, const struct task *task, struct spec_writer *spec, struct err *e)
{
	const char *jwt = default_token(sa, task, true);
	const struct token *t;
	size_t at = 0;
	int r = jwt ? add_file(task->identity, jwt, spec, e) : 0;

	while (r >= 0 && (t = next_token(sa, task, &at)))
		if (t->spec->file)
			r = add_file(t->spec, t->jwt, spec, e);
	return r;
}

/* --- giving new ones to a task that runs --- */

void
alloc_identities_start_made(struct task_runner *tr)
{
	struct alloc_identities *ids = tr->ar->identities;
	bool news = false;

	for (size_t i = 0; ids && i < ids->n; i++) {
		struct token *t = &ids->v[i];

		if (t->tr != tr || !t->jwt)
			continue;
		news |= !t->given;
		t->given = true;
		t->giving = false;
	}
	if (news)
		alloc_client_save(tr->ar);
}

static void
tell(struct task_runner *tr, const char *text)
{
	struct task_event ev;

	if (task_event_make(&ev, EVENT_HOOK_MESSAGE, task_now_ns(), text) == 0)
		task_runner_event(tr, &ev);
}

/* Its event and what the job wants to happen; one restart is enough for any number of tokens. */
static void
change(struct task_runner *tr, const struct workload_identity *w)
{
	int signo = w->change_mode == IDENTITY_SIGNAL ? signal_from_name(str(w->change_signal)) : 0;
	char text[NAME_BYTES_MAX + 64];

	(void)snprintf(text, sizeof text, "Identity[%s]: new %stoken acquired", str(w->name),
	    signo ? "Identity " : "");
	if (w->change_mode == IDENTITY_RESTART)
		(void)task_runner_restart(tr, text, false);
	else if (signo > 0)
		(void)task_runner_signal(tr, signo, text);
}

/* The files are written. What restarts goes first: then no signal is needed. */
static void
change_all(struct alloc_identities *ids, struct task_runner *tr)
{
	ids->file_failures = 0;
	for (enum identity_change mode = IDENTITY_RESTART; mode >= IDENTITY_SIGNAL; mode--)
		for (size_t i = 0; i < ids->n; i++)
			if (ids->v[i].tr == tr && ids->v[i].giving &&
			    ids->v[i].spec->change_mode == mode)
				change(tr, ids->v[i].spec);
	for (size_t i = 0; i < ids->n; i++)
		if (ids->v[i].tr == tr && ids->v[i].giving) {
			ids->v[i].given = true;
			ids->v[i].giving = false;
		}
	alloc_client_save(ids->ar);
}

static int
on_time(struct sd_event_source *source, uint64_t usec, void *userdata)
{
	struct alloc_identities *ids = userdata;

	struct alloc_runner *ar = ids->ar;

	ids->timer = sd_event_source_disable_unref(ids->timer);
	for (unsigned i = 0; i < ar->n_tasks; i++)
		give(ids, &ar->tasks[i]);
	ask(ids);
	return 0;
}

static void
arm(struct alloc_identities *ids, uint64_t ms)
{
	ids->timer = sd_event_source_disable_unref(ids->timer);
	if (sd_event_add_time_relative(
		ids->ar->sup->event, &ids->timer, CLOCK_BOOTTIME, ms * 1000, 0, on_time, ids) < 0)
		log_error("allocation %.8s: no memory to renew its tokens", ids->ar->sa->a.id);
}

/* Whoever dies of the agent's processes, the new token gets there. */
static bool
try_again(struct alloc_identities *ids, struct task_runner *tr, const struct err *e)
{
	if (ids->file_failures++ >= FILE_RETRIES)
		return false;
	log_warn("allocation %.8s task %s: its new tokens are not written yet: %s",
	    ids->ar->sa->a.id, tr->task->name, e->msg);
	for (size_t i = 0; i < ids->n; i++)
		if (ids->v[i].tr == tr)
			ids->v[i].giving = false;
	arm(ids, FILE_RETRY_MS);
	return true;
}

static void
on_files(struct sup *sup, void *arg, int r, const struct err *e)
{
	struct task_runner *tr = arg;
	struct alloc_identities *ids = tr->ar->identities;
	char text[ERR_MSG_SIZE + 64];

	tr->files = NULL;
	if (r < 0 && try_again(ids, tr, e))
		return;
	if (r < 0) {
		(void)snprintf(
		    text, sizeof text, "identity: a new token could not be written: %s", e->msg);
		tell(tr, text);
	}
	change_all(ids, tr);
	give(ids, tr); /* what has come in the meantime */
}

/* 1: the files among them are being written; 0: there are none, or they cannot be. */
static int
write_files(struct alloc_identities *ids, struct task_runner *tr)
{
	cleanup_free struct task_file *files = calloc(ids->n, sizeof *files);
	cleanup_free char(*names)[IDENTITY_FILE_SIZE] = calloc(ids->n, sizeof *names);
	struct err e = { 0 };
	size_t n = 0;

	for (size_t i = 0; files && names && i < ids->n; i++) {
		const struct token *t = &ids->v[i];

		if (!t->giving || t->tr != tr || !t->spec->file ||
		    identity_file(t->spec, names[n], &e) < 0)
			continue;
		files[n] =
		    (struct task_file){ .name = names[n], .data = t->jwt, .len = strlen(t->jwt) };
		n++;
	}
	if (n == 0)
		return 0;
	tr->files = task_files_replace(tr, files, n, on_files, tr, &e);
	if (!tr->files && !try_again(ids, tr, &e))
		return 0;
	return 1;
}

/*
 * Files first: who hears of a change looks at them. The next start has what is there then, and one
 * that is on its way is looked at when it runs.
 */
static void
give(struct alloc_identities *ids, struct task_runner *tr)
{
	bool any = false;

	if ((tr->phase != TASK_RUNNING && tr->phase != TASK_DELAYING) || tr->files)
		return;
	for (size_t i = 0; i < ids->n; i++) {
		struct token *t = &ids->v[i];

		if (t->tr == tr && t->jwt && !t->given)
			any = t->giving = true;
	}
	if (any && write_files(ids, tr) == 0)
		change_all(ids, tr);
}

void
alloc_identities_task_runs(struct task_runner *tr)
{
	if (tr->ar->identities)
		give(tr->ar->identities, tr);
}

/* --- asking for them --- */

/* For the first that is due. */
static void
arm_renewal(struct alloc_identities *ids)
{
	uint64_t now = boot_ms(), at = UINT64_MAX;

	for (size_t i = 0; i < ids->n; i++) {
		const struct token *t = &ids->v[i];
		uint64_t due = !t->jwt ? now : t->life_ns > 0 ? t->renew_ms : UINT64_MAX;

		if (t->tr->phase != TASK_DEAD && due < at)
			at = due;
	}
	if (at != UINT64_MAX)
		arm(ids, at > now ? at - now + 1 : 1);
}

/* Often enough that a token of a short life is renewed in time, when it can be. */
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
	arm(ids, ms + (uint64_t)random() % ms);
}

static void
end_wait(struct alloc_identities *ids, int r, const struct err *e)
{
	ids->waiting = false;
	alloc_hook_done(ids->ar, r, e);
}

/* A life is counted from the answer on, as the job gives it: two clocks that differ do no harm. */
static void
take(struct alloc_identities *ids, const struct source_token *token)
{
	for (size_t i = 0; i < ids->n; i++) {
		struct token *t = &ids->v[i];

		if (!str_eq(t->tr->task->name, token->task) || !str_eq(t->spec->name, token->name))
			continue;
		if (str_set(&t->jwt, token->jwt) < 0)
			return;
		t->signed_ns = task_now_ns();
		t->life_ns = t->spec->ttl;
		t->given = t->giving = t->late = false;
		set_times(t, 0);
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

		if (t->late || !t->jwt || !is_missing(t))
			continue;
		t->late = true;
		(void)snprintf(text, sizeof text,
		    "Identity[%s]: the token has expired and is not renewed yet: %s",
		    str(t->spec->name), e->msg);
		tell(t->tr, text);
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
		tell(&ar->tasks[i], text);
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
		give(ids, &ar->tasks[i]);
	if (ids->waiting)
		end_wait(ids, 0, NULL);
}

/* All of which half the life is over: of one job they are, most times, of one age. */
static void
ask(struct alloc_identities *ids)
{
	struct alloc_runner *ar = ids->ar;
	cleanup_free struct source_token *wanted = calloc(ids->n, sizeof *wanted);
	size_t n = 0;

	if (!wanted || ids->asking || ar->phase > ALLOC_RUNNING)
		return;
	for (size_t i = 0; i < ids->n; i++)
		if (is_wanted(&ids->v[i]))
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
	struct alloc_identities *ids = ar->identities;
	bool missing = false;

	for (size_t i = 0; ids && i < ids->n; i++)
		missing |= is_missing(&ids->v[i]);
	/* What runs goes on, and may restart, while a server is asked. */
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
	struct alloc_identities *ids = ar->identities;

	if (!ids || !ids->waiting)
		return;
	quit(ids);
	end_wait(ids, 0, NULL);
}

/* What is over needs no token, and keeps none. */
static void
forget(struct alloc_runner *ar)
{
	alloc_identities_free(ar->identities);
	ar->identities = NULL;
	alloc_hook_done(ar, 0, NULL);
}

const struct alloc_hook alloc_hook_identity = {
	.name = "identity", .prerun = wait_for_first, .stop = stop_waiting, .postrun = forget
};
