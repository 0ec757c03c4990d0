// SPDX-License-Identifier: Apache-2.0
/* alloc_identity.c: the tokens of an alloc's tasks: when each is renewed, and which of them a start
 * gets. Runs in: supervisor. */
#include "supervisor/alloc/alloc_token.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/mem.h"
#include "supervisor/alloc/alloc_hooks.h"
#include "supervisor/alloc/alloc_record.h"
#include "supervisor/core/sup_timer.h"

#define RENEW_MIN_NS NS_PER_S

struct identity_state *
identity_state(const struct alloc_runner *ar)
{
	return alloc_hook_state(ar, &alloc_hook_identity);
}

struct identity_task_state *
identity_task_state(const struct task_runner *tr)
{
	return task_hook_state(tr, &alloc_hook_identity);
}

struct alloc_identities *
alloc_identities_of(const struct alloc_runner *ar)
{
	return identity_state(ar)->tokens;
}

static uint64_t
boot_ms(void)
{
	return clock_boot_ns() / NS_PER_MS;
}

/* --- when a token is renewed --- */

/* A token is renewed after half of its life plus a random time of up to a tenth of that, so that
 * the allocs of a job do not all request tokens at once. CLOCK_BOOTTIME continues while the machine
 * is suspended and does not jump when the date is set. */
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

void
tokens_wake(struct alloc_identities *ids, uint64_t ms)
{
	sup_timer_set(ids->ar->sup, &ids->timer, CLOCK_BOOTTIME, ms * 1000, ids->on_time, ids);
}

/* --- the tokens of an alloc --- */

/* A task gets a token as a variable or as a file. An identity with neither needs no token. */
static bool
is_used(const struct workload_identity *w)
{
	return w->env || w->file;
}

static size_t
count_tokens(const struct alloc_runner *ar)
{
	size_t n = 0;

	for (unsigned i = 0; i < ar->n_tasks; i++)
		for (size_t k = 0; k < ar->tasks[i].task->identities.n; k++)
			n += is_used(&ar->tasks[i].task->identities.v[k]);
	return n;
}

struct alloc_identities *
alloc_identities_new(struct alloc_runner *ar, const struct alloc_record *kept)
{
	struct alloc_identities *ids;
	size_t n = count_tokens(ar);

	if (n == 0)
		return NULL;
	ids = mem_zeroed(1, sizeof *ids + n * sizeof ids->v[0]);
	ids->ar = ar;
	for (unsigned i = 0; i < ar->n_tasks; i++)
		for (size_t k = 0; k < ar->tasks[i].task->identities.n; k++) {
			const struct workload_identity *w = &ar->tasks[i].task->identities.v[k];

			if (!is_used(w))
				continue;
			ids->v[ids->n] = (struct token){
				.tr = &ar->tasks[i], .task = ar->tasks[i].task->name, .spec = w
			};
			token_restore(&ids->v[ids->n++], kept);
		}
	return ids;
}

void
alloc_identities_free(struct alloc_identities *ids)
{
	if (!ids)
		return;
	for (size_t i = 0; i < ids->n; i++)
		free(ids->v[i].jwt);
	free(ids);
}

/* --- tokens for a start --- */

/* Returns the default token, which came with the alloc; NULL: there is none, or the task does not
 * want it as a file (as_file) or variable. */
static const char *
default_token(const struct sup_alloc *sa, const struct task *task, bool as_file)
{
	const struct workload_identity *w = task->identity;

	return w && (as_file ? w->file : w->env)
		   ? string_map_get(&sa->a.signed_identities, str(task->name))
		   : NULL;
}

/* Returns the task's next signed token; NULL: no more. *at starts as 0. */
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

/* The address of the task's socket. Where its path is too long for connect(2), the path leads
 * through the directory in which the task starts. */
static void
put_api_address(struct string_map *vars)
{
	const char *secrets = str(string_map_get(vars, "NOMAD_SECRETS_DIR"));
	cleanup_free char *path = mem_printf("%s/api.sock", secrets), *address = NULL;
	bool fits = strlen(path) < sizeof((struct sockaddr_un *)0)->sun_path;

	address = mem_printf("unix://%s", fits ? path : "/proc/self/cwd/secrets/api.sock");
	string_map_set(vars, "NOMAD_UNIX_ADDR", address);
}

void
alloc_identities_put_env(
    const struct sup_alloc *sa, const struct task *task, struct string_map *vars)
{
	const char *jwt = default_token(sa, task, false);
	const struct token *t;
	size_t at = 0;

	if (jwt) {
		string_map_set(vars, "NOMAD_TOKEN", jwt);
		put_api_address(vars);
	}
	while ((t = next_token(sa, task, &at))) {
		char name[sizeof "NOMAD_TOKEN_" + NAME_BYTES_MAX];

		(void)snprintf(name, sizeof name, "NOMAD_TOKEN_%s", str(t->spec->name));
		if (!t->spec->env)
			continue;
		string_map_set(vars, name, t->jwt);
		put_api_address(vars);
	}
}

static int
add_file(
    const struct workload_identity *w, const char *jwt, struct spec_writer *spec, struct err *e)
{
	char path[IDENTITY_FILE_SIZE];
	const struct spec_file at = { .mode = 0600, .uid = -1, .gid = -1, .path = path };
	struct err why = { 0 };

	if (identity_file(w, path, &why) < 0)
		return err_say(e, -EINVAL, "identity \"%s\": %s", str(w->name), why.msg);
	spec_add_file(spec, &at, jwt, strlen(jwt));
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
