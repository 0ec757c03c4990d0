// SPDX-License-Identifier: Apache-2.0
/* local_sign.c: the tokens that the embedded server signs for tasks. Runs in: supervisor. */
#include "supervisor/server/sign/local_sign.h"

#include <errno.h>
#include <stdlib.h>
#include <systemd/sd-event.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/mem.h"
#include "supervisor/server/sign/local_claims.h"
#include "supervisor/server/sign/local_keys.h"

#define REGION           "global"
#define DEFAULT_AUDIENCE "nomadproject.io"

/* The tokens that one alloc waits for. */
struct signing {
	STAILQ_ENTRY(signing) link;
	struct sup_alloc *sa;
	sign_cb *cb;
	void *arg;
	size_t n;
	struct source_token tokens[];
};

struct local_signings {
	STAILQ_HEAD(, signing) queue;
	sd_event_source *next;     /* signs the tokens of the first in the queue */
	struct local_key_wait key; /* made(): NULL while the first does not wait for a key */
};

/* --- claims --- */

/* "aud" is one text, or a list if there are several. */
static void
set_audience(json_t *claims, const struct workload_identity *w)
{
	json_t *list;

	if (w->audience.n == 0)
		return;
	list = json_array();
	for (size_t i = 0; i < w->audience.n; i++)
		(void)json_array_append_new(list, json_string(w->audience.v[i]));
	(void)json_object_set(claims, "aud", w->audience.n == 1 ? json_array_get(list, 0) : list);
	json_decref(list);
}

static json_t *
new_claims(struct local *l, const struct alloc *a, const struct job *job, const char *task,
    const struct workload_identity *w, int64_t now_s)
{
	const char *job_id = *str(job->parent_id) ? job->parent_id : job->id;
	const char *region = *str(job->region) ? job->region : REGION;
	cleanup_free char *subject = mem_printf("%s:%s:%s:%s:%s:%s", region, str(job->namespace),
	    job_id, str(a->task_group), task, *str(w->name) ? w->name : IDENTITY_DEFAULT);
	struct id id = id_random_uuid();
	char jti[ID_UUID_SIZE];
	json_t *claims;

	id_to_uuid(&id, jti);
	claims = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:I}", "nomad_namespace",
	    str(job->namespace), "nomad_job_id", job_id, "nomad_allocation_id", a->id, "nomad_task",
	    task, "sub", subject, "jti", jti, "nbf", (json_int_t)now_s, "iat", (json_int_t)now_s);
	if (!claims)
		mem_exhausted();
	local_claims_add_extra(l, claims, a, job, task, w);
	return claims;
}

void
local_sign_defaults(
    struct local *l, struct alloc *a, const struct job *job, const struct task_group *group)
{
	for (size_t i = 0; i < group->tasks.n; i++) {
		const struct task *task = &group->tasks.v[i];
		cleanup_free char *token = NULL;
		json_t *claims;

		if (!task->identity || (!task->identity->env && !task->identity->file))
			continue;
		claims =
		    new_claims(l, a, job, task->name, task->identity, clock_real_ns() / NS_PER_S);
		(void)json_object_set_new(claims, "aud", json_string(DEFAULT_AUDIENCE));
		token = local_keys_sign(l, SIGN_EDDSA, claims);
		json_decref(claims);
		string_map_set(&a->signed_identities, task->name, token);
	}
}

/* --- requests of the node --- */

static const struct workload_identity *
find_identity(const struct sup_alloc *sa, const struct source_token *t)
{
	for (size_t i = 0; i < sa->group->tasks.n; i++)
		if (str_eq(sa->group->tasks.v[i].name, t->task))
			return identity_of(&sa->group->tasks.v[i], t->name);
	return NULL;
}

static int
sign_one(
    struct local *l, const struct sup_alloc *sa, struct source_token *t, char **ret, struct err *e)
{
	const struct workload_identity *w = find_identity(sa, t);
	int64_t now_s = clock_real_ns() / NS_PER_S;
	json_t *claims;

	if (!w)
		return err_say(
		    e, -EKEYREJECTED, "task \"%s\" has no identity \"%s\"", t->task, t->name);
	claims = new_claims(l, &sa->a, &sa->job->job, t->task, w, now_s);
	set_audience(claims, w);
	if (w->ttl > 0) {
		t->expires_ns = now_s * NS_PER_S + w->ttl;
		(void)json_object_set_new(claims, "exp", json_integer(t->expires_ns / NS_PER_S));
	}
	t->jwt = *ret = local_keys_sign(l, SIGN_RS256, claims);
	json_decref(claims);
	return 0;
}

static void
sign_all(struct local *l, struct signing *w)
{
	cleanup_free char **tokens = mem_zeroed(w->n, sizeof *tokens);
	struct err e = { 0 };
	int r = 0;

	for (size_t i = 0; i < w->n && r == 0; i++)
		r = sign_one(l, w->sa, &w->tokens[i], &tokens[i], &e);
	w->cb(l->base.sup, w->arg, r, w->tokens, r < 0 ? 0 : w->n, &e);
	for (size_t i = 0; i < w->n; i++)
		free(tokens[i]);
}

static void
on_key(struct local *l, struct local_key_wait *w, const struct local_signing_key *key)
{
	w->made = NULL;
	(void)sd_event_source_set_enabled(l->signings->next, SD_EVENT_ON);
}

/* Returns whether tokens can be signed now; if not, on_key() continues. */
static bool
have_key(struct local *l)
{
	struct local_key_wait *w = &l->signings->key;

	if (local_keys_ready(l, SIGN_RS256))
		return true;
	if (!w->made) {
		w->made = on_key;
		local_keys_make(l, false, w);
	}
	return false;
}

/* One alloc at a time: RS256 takes long enough to let other events come between. */
static int
on_next(sd_event_source *source, void *arg)
{
	struct local *l = arg;
	struct signing *w = STAILQ_FIRST(&l->signings->queue);

	if (w && !have_key(l)) {
		(void)sd_event_source_set_enabled(source, SD_EVENT_OFF);
		return 0;
	}
	if (w) {
		STAILQ_REMOVE_HEAD(&l->signings->queue, link);
		sign_all(l, w);
		free(w);
	}
	(void)sd_event_source_set_enabled(
	    source, STAILQ_EMPTY(&l->signings->queue) ? SD_EVENT_OFF : SD_EVENT_ON);
	return 0;
}

void
local_sign(struct source *s, struct sup_alloc *sa, const struct source_token *wanted, size_t n,
    sign_cb *cb, void *arg)
{
	struct local *l = local_of(s);
	struct signing *w = mem_zeroed(1, sizeof *w + n * sizeof w->tokens[0]);

	*w = (struct signing){ .sa = sa, .cb = cb, .arg = arg, .n = n };
	for (size_t i = 0; i < n; i++)
		w->tokens[i] = wanted[i];
	STAILQ_INSERT_TAIL(&l->signings->queue, w, link);
	(void)sd_event_source_set_enabled(l->signings->next, SD_EVENT_ON);
}

void
local_sign_cancel(struct source *s, struct sup_alloc *sa)
{
	struct local_signings *all = local_of(s)->signings;
	struct signing *w, *next;

	STAILQ_FOREACH_SAFE (w, &all->queue, link, next) {
		if (w->sa != sa)
			continue;
		STAILQ_REMOVE(&all->queue, w, signing, link);
		free(w);
	}
}

void
local_signings_init(struct local *l)
{
	l->signings = mem_new(struct local_signings);
	STAILQ_INIT(&l->signings->queue);
	if (sd_event_add_defer(l->base.sup->event, &l->signings->next, on_next, l) < 0)
		mem_exhausted();
	(void)sd_event_source_set_priority(l->signings->next, SD_EVENT_PRIORITY_IDLE);
	(void)sd_event_source_set_enabled(l->signings->next, SD_EVENT_OFF);
}

void
local_signings_free(struct local *l)
{
	struct signing *w;

	while ((w = STAILQ_FIRST(&l->signings->queue))) {
		STAILQ_REMOVE_HEAD(&l->signings->queue, link);
		free(w);
	}
	(void)sd_event_source_unref(l->signings->next);
	free(l->signings);
}
