// SPDX-License-Identifier: Apache-2.0
/* alloc_identity.c: the tokens of an alloc's tasks: which exist, when each is renewed, and what a
 * start gets of them. Runs in: supervisor. */
#include "supervisor/alloc/alloc_token.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/lease.h"

#define RENEW_MIN_NS NS_PER_S

static uint64_t
boot_ms(void)
{
	return clock_boot_ns() / NS_PER_MS;
}

/* --- when a token is renewed --- */

/* At half of its life, and up to a tenth of that later so that the allocs of a job do not all ask
 * at once. CLOCK_BOOTTIME goes on while the machine sleeps, and does not jump when the clock is
 * set. */
void
token_set_times(struct token *t, int64_t age_ns)
{
	int64_t half = t->life_ns / 2 > RENEW_MIN_NS ? t->life_ns / 2 : RENEW_MIN_NS;
	uint64_t now = boot_ms();

	if (age_ns < 0)
		age_ns = 0;
	t->half_ms = now + (uint64_t)(half > age_ns ? (half - age_ns) / NS_PER_MS : 0);
	t->renew_ms = t->half_ms + (uint64_t)(random() % (half / 10 / NS_PER_MS + 1));
	t->end_ms = now + (uint64_t)(t->life_ns > age_ns ? (t->life_ns - age_ns) / NS_PER_MS : 0);
}

bool
token_is_wanted(const struct token *t)
{
	return t->tr->phase != TASK_DEAD &&
	       (!t->jwt || (t->life_ns > 0 && boot_ms() >= t->half_ms));
}

bool
token_is_missing(const struct token *t)
{
	return t->tr->phase != TASK_DEAD && (!t->jwt || (t->life_ns > 0 && boot_ms() >= t->end_ms));
}

/* --- tokens in state.db --- */

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
		token_set_times(t, clock_real_ns() - t->signed_ns);
	}
}

/* An identity that is neither a variable nor a file needs no token. */
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

void
alloc_identities_free(struct alloc_identities *ids)
{
	if (!ids)
		return;
	alloc_tokens_quit(ids);
	for (size_t i = 0; i < ids->n; i++)
		free(ids->v[i].jwt);
	free(ids);
}

/* --- tokens for a start --- */

/* The default token, which came with the alloc; NULL: it did not, or the task does not ask for it.
 */
static const char *
default_token(const struct sup_alloc *sa, const struct task *task, bool as_file)
{
	const struct workload_identity *w = task->identity;

	return w && (as_file ? w->file : w->env)
		   ? string_map_get(&sa->a.signed_identities, str(task->name))
		   : NULL;
}

/* Steps to the task's next token that is signed; NULL: no more. */
static const struct token *
next_token(const struct sup_alloc *sa, const struct task *task, size_t *at)
{
	const struct alloc_identities *ids = sa->runner ? alloc_identities_of(sa->runner) : NULL;

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
