// SPDX-License-Identifier: Apache-2.0
/* local_identity.c: resolves the secrets of requests, and keeps the last results. Runs in:
 * supervisor. */
#include "supervisor/server/acl/local_identity.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/mem.h"
#include "supervisor/core/seal.h"
#include "supervisor/server/acl/local_acl.h"
#include "supervisor/server/sign/local_verify.h"
#include "supervisor/table/alloc_table.h"

#define KNOWN_MAX 64 /* identities that are kept */

struct known {
	TAILQ_ENTRY(known) link; /* last used first */
	char *secret;
	struct local_claims claims;
	struct strings policies;
	struct local_identity who;
};

TAILQ_HEAD(known_list, known);

struct local_identities {
	struct known_list known;
	size_t n;
};

static void
free_known(struct known *k)
{
	acl_rules_done(&k->who.rules);
	local_claims_done(&k->claims);
	strings_done(&k->policies);
	seal_wipe(k->secret, strlen(k->secret));
	free(k);
}

static void
drop_known(struct local_identities *all, struct known *k)
{
	TAILQ_REMOVE(&all->known, k, link);
	all->n--;
	free_known(k);
}

void
local_identities_init(struct local *l)
{
	l->identities = mem_new(struct local_identities);
	TAILQ_INIT(&l->identities->known);
}

void
local_identities_forget(struct local *l)
{
	while (!TAILQ_EMPTY(&l->identities->known))
		drop_known(l->identities, TAILQ_FIRST(&l->identities->known));
}

void
local_identities_free(struct local *l)
{
	local_identities_forget(l);
	free(l->identities);
}

/* --- policies --- */

/* Policies that do not exist permit nothing. */
static int
add_policy(struct local *l, struct known *k, const char *name, struct err *e)
{
	const struct local_policy *p = local_policy_find(l, name);

	if (!p || strings_has(&k->policies, name))
		return 0;
	strings_add(&k->policies, name);
	return acl_rules_add(&k->who.rules, str(p->p.rules), name, e);
}

static int
add_token(struct local *l, struct known *k, const struct acl_token *t, struct err *e)
{
	int r = 0;

	if (str_eq(t->type, LOCAL_ACL_MANAGER)) {
		k->who.rules.management = true;
		return 0;
	}
	for (size_t i = 0; i < t->policies.n && r == 0; i++)
		r = add_policy(l, k, t->policies.v[i], e);
	for (size_t i = 0; i < t->roles.n && r == 0; i++) {
		const struct local_role *role = local_role_find(l, str(t->roles.v[i].id));

		for (size_t p = 0; role && p < role->r.policies.n && r == 0; p++)
			r = add_policy(l, k, str(role->r.policies.v[p].name), e);
	}
	return r;
}

static bool
is_policy_of(const struct acl_job *to, const struct sup_alloc *sa, const char *task)
{
	const struct job *job = &sa->job->job;

	if (!to || !*str(to->namespace) || !str_eq(to->namespace, str(sa->a.namespace)))
		return false;
	if (!*str(to->job_id))
		return true;
	if (!str_eq(to->job_id, *str(job->parent_id) ? job->parent_id : str(job->id)))
		return false;
	if (!*str(to->group))
		return true;
	return str_eq(to->group, str(sa->a.task_group)) &&
	       (!*str(to->task) || str_eq(to->task, task));
}

static int
add_claims(struct local *l, struct known *k, struct err *e)
{
	const struct sup_alloc *sa = alloc_find(l->base.sup, &k->claims.alloc_id);
	size_t n;
	cleanup_free struct local_key **all = local_policies_sorted(l, &n);
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++)
		if (is_policy_of(local_policy_of(all[i])->p.job, sa, k->claims.task))
			r = add_policy(l, k, all[i]->name, e);
	return r;
}

/* --- secrets --- */

static int
resolve(struct local *l, struct known *k, struct err *e)
{
	const struct local_token *t;
	int r;

	if (!*k->secret)
		return add_policy(l, k, LOCAL_ACL_ANONYMOUS, e);
	t = k->who.token = local_token_by_secret(l, k->secret);
	if (t)
		return add_token(l, k, &t->t, e);
	if (!strchr(k->secret, '.'))
		return err_say(e, -EACCES, "the token does not exist");
	r = local_verify(l, k->secret, &k->claims, e);
	if (r < 0)
		return r;
	k->who.claims = &k->claims;
	return add_claims(l, k, e);
}

/* Checks what changes without a call of local_identities_forget(). */
static int
check_known(struct local *l, const struct known *k, struct err *e)
{
	if (k->who.token && local_token_is_expired(k->who.token, clock_real_ns()))
		return err_say(e, -EACCES, "the token has expired");
	return k->who.claims ? local_claims_check(l, k->who.claims, e) : 0;
}

static struct known *
find_known(struct local *l, const char *secret)
{
	struct known *k;

	TAILQ_FOREACH (k, &l->identities->known, link)
		if (strcmp(k->secret, secret) == 0)
			break;
	return k;
}

/* Makes and keeps it, or returns NULL with *e. */
static struct known *
make_known(struct local *l, const char *secret, struct err *e)
{
	struct local_identities *all = l->identities;
	struct known *k = mem_new(struct known);
	int r;

	k->secret = mem_strdup(secret);
	k->who.policies = &k->policies;
	r = resolve(l, k, e);
	if (r < 0) {
		/* A stored policy can always be read; together they can be too large. */
		if (r != -EACCES)
			e->code = -EACCES;
		free_known(k);
		return NULL;
	}
	if (all->n == KNOWN_MAX)
		drop_known(all, TAILQ_LAST(&all->known, known_list));
	TAILQ_INSERT_HEAD(&all->known, k, link);
	all->n++;
	return k;
}

const struct local_identity *
local_identify(struct local *l, const char *secret, struct err *e)
{
	struct known *k = find_known(l, secret);

	if (!k)
		k = make_known(l, secret, e);
	if (!k)
		return NULL;
	if (check_known(l, k, e) < 0) {
		drop_known(l->identities, k);
		return NULL;
	}
	if (k != TAILQ_FIRST(&l->identities->known)) {
		TAILQ_REMOVE(&l->identities->known, k, link);
		TAILQ_INSERT_HEAD(&l->identities->known, k, link);
	}
	return &k->who;
}

bool
local_identity_permits_variable(struct local *l, const struct local_identity *who,
    const char *namespace, const char *path, enum acl_variable what)
{
	const struct sup_alloc *sa =
	    who->claims ? alloc_find(l->base.sup, &who->claims->alloc_id) : NULL;
	struct acl_claim claim = { 0 };

	if (sa)
		claim = (struct acl_claim){ .namespace = who->claims->namespace,
			.job = who->claims->job_id,
			.group = str(sa->a.task_group),
			.task = who->claims->task };
	return acl_rules_permit_variable(&who->rules, sa ? &claim : NULL, namespace, path, what);
}

bool
local_task_permits_variable(struct local *l, const struct sup_alloc *sa, const char *task,
    const char *namespace, const char *path, enum acl_variable what)
{
	const struct job *job = &sa->job->job;
	struct known *k = mem_new(struct known);
	struct err ignored = { 0 };
	bool permits;

	k->secret = mem_strdup("");
	k->claims = (struct local_claims){ .alloc_id = sa->id,
		.namespace = mem_strdup(str(sa->a.namespace)),
		.job_id = mem_strdup(*str(job->parent_id) ? job->parent_id : str(job->id)),
		.task = mem_strdup(task) };
	k->who.claims = &k->claims;
	permits = add_claims(l, k, &ignored) == 0 &&
		  local_identity_permits_variable(l, &k->who, namespace, path, what);
	free_known(k);
	return permits;
}
