// SPDX-License-Identifier: Apache-2.0
/* acl_token.c: resolves the ACL tokens of requests at the servers, and caches the result. Runs in:
 * supervisor. */
#include "supervisor/cluster/acl/acl_token.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "supervisor/cluster/node/nomad_call.h"
#include "supervisor/cluster/rpc/rpc_acl.h"
#include "supervisor/http/api_backend.h"
#include "supervisor/http/api.h"

#define CALL_MS    10000
#define TOKENS_MAX 64   /* number of cached tokens */
#define TOKEN_MAX  8192 /* bytes of a token; a workload's has about 1,000 */
#define LINKS_MAX  256  /* roles and policies of a token */

/* A request that waits for a token to be resolved. */
struct acl_wait {
	SLIST_ENTRY(acl_wait) link;
	enum acl_need need;
	char *namespace;
	acl_cb *cb;
	void *arg;
};

SLIST_HEAD(acl_waits, acl_wait);

struct acl_known {
	TAILQ_ENTRY(acl_known) link; /* in nomad.tokens */
	struct nomad *n;
	char *secret;
	json_t *who; /* whose it is, for the audit log; NULL: not known */
	bool known;  /* the servers' answer below is from known_ms */
	uint64_t known_ms;
	struct acl_rules rules;
	int64_t expires; /* 0: never */
	/* While the token is being resolved: */
	struct acl_waits waits;
	int64_t new_expires;
	struct strings names; /* policies of the token */
	bool asking;
};

static void
free_known(struct acl_known *k)
{
	acl_rules_done(&k->rules);
	strings_done(&k->names);
	json_decref(k->who);
	free(k->secret);
	free(k);
}

static void
free_wait(struct acl_wait *w)
{
	free(w->namespace);
	free(w);
}

/* Answers. */

static void
answer_wait(struct acl_known *k, struct acl_wait *w)
{
	struct sup *sup = k->n->src.base.sup;
	struct err e = { 0 };

	if (k->expires && clock_real_ns() >= k->expires)
		(void)err_say(&e, -EACCES, "ACL token expired");
	else if (!acl_rules_permit(&k->rules, w->need, w->namespace))
		(void)err_say(&e, -EACCES, "Permission denied");
	w->cb(sup, w->arg, e.code, &e);
	free_wait(w);
}

/* Answers the waiting requests with the cached result, or with *e. */
static void
answer_all(struct acl_known *k, const struct err *e)
{
	struct acl_waits waits = k->waits;
	struct acl_wait *w;

	SLIST_INIT(&k->waits);
	k->asking = false;
	while ((w = SLIST_FIRST(&waits))) {
		SLIST_REMOVE_HEAD(&waits, link);
		if (e) {
			w->cb(k->n->src.base.sup, w->arg, e->code, e);
			free_wait(w);
		} else {
			answer_wait(k, w);
		}
	}
}

/* Returns true if the error is about the token itself and not a failure of the servers. */
static bool
is_refusal(int r, const struct err *e)
{
	static const char *const texts[] = { "Permission denied", "ACL token not found",
		"ACL token expired", "failed to verify token", "failed to parse signed token",
		"ACL support disabled" };

	for (size_t i = 0; r == -EREMOTEIO && i < ELEMENTSOF(texts); i++)
		if (strstr(e->msg, texts[i]))
			return true;
	return false;
}

/* Drops the cached result of the token. */
static void
refuse_token(struct acl_known *k, int r, const char *what, const char *text)
{
	struct err e = { 0 };

	k->known = false;
	acl_rules_done(&k->rules);
	(void)err_say(&e, r, "%s%.300s", what, text);
	answer_all(k, &e);
}

static void
learn_rules(struct acl_known *k, struct acl_rules *rules)
{
	acl_rules_done(&k->rules);
	k->rules = *rules;
	*rules = (struct acl_rules){ 0 };
	k->expires = k->new_expires;
	k->known = true;
	k->known_ms = clock_ms();
	answer_all(k, NULL);
}

/* Handles the failure of a call, or (in *bad) of its answer. An answer that cannot be understood
 * permits nothing, even if an earlier result is cached. */
static void
fail_token(struct acl_known *k, int r, const struct err *e, const struct err *bad)
{
	if (bad && bad->code) {
		refuse_token(k, bad->code, "the token cannot be checked: ", bad->msg);
	} else if (is_refusal(r, e)) {
		refuse_token(k, -EACCES, "", e->msg);
	} else if (!k->known) {
		refuse_token(k, r, "the token cannot be checked: ", e->msg);
	} else {
		log_warn("cannot resolve a token, using its cached permissions: %s", e->msg);
		k->known_ms = clock_ms();
		answer_all(k, NULL);
	}
}

/* The calls to the servers, in order. */

static void
call_servers(struct acl_known *k, const char *method, const struct type *type, void *req,
    struct rpc_query *q, link_cb *cb)
{
	str_set(&q->region, nomad_region(k->n));
	str_set(&q->auth_token, k->secret);
	q->allow_stale = true;
	(void)nomad_call(k->n, method, type, req, CALL_MS, LINK_REPEAT, cb, k);
}

/* Servers whose ACLs are disabled do not say what a token permits, but permit everything. */
static void
on_disabled(struct sup *sup, void *arg, int r, const void *body, size_t len, const struct err *e)
{
	struct acl_rules all = { .management = true };
	struct acl_known *k = arg;

	if (r == -EREMOTEIO && strstr(e->msg, "ACL support disabled"))
		learn_rules(k, &all);
	else if (r == 0 || r == -EREMOTEIO)
		refuse_token(k, -EACCES, "", "Permission denied");
	else
		fail_token(k, r, e, NULL);
}

static void
ask_whether_disabled(struct acl_known *k)
{
	cleanup_done(rpc_query_req) struct rpc_query_req req = { 0 };

	call_servers(k, "ACL.ResolveToken", &rpc_query_req_type, &req, &req.query, on_disabled);
}

static void
on_policies(struct sup *sup, void *arg, int r, const void *body, size_t len, const struct err *e)
{
	cleanup_done(rpc_policies_rep) struct rpc_policies_rep rep = { 0 };
	struct acl_known *k = arg;
	struct acl_rules rules = { 0 };
	struct err bad = { 0 };

	if (r == 0)
		r = model_from_msgpack(
		    &rpc_policies_rep_type, body, len, &rep, WIRE_MEMORY_MAX, &bad);
	for (size_t i = 0; r == 0 && i < rep.policies.n; i++)
		r = acl_rules_add(
		    &rules, str(rep.policies.v[i].value.rules), rep.policies.v[i].key, &bad);
	if (r == 0)
		learn_rules(k, &rules);
	else if (r == -EREMOTEIO && !sup->config->acl_enabled)
		ask_whether_disabled(k); /* the token is valid, because a task was let in by it */
	else
		fail_token(k, r, e, &bad);
	acl_rules_done(&rules);
}

static void
ask_policies(struct acl_known *k)
{
	cleanup_done(rpc_policies_req) struct rpc_policies_req req = { 0 };
	struct acl_rules none = { 0 };

	if (k->names.n == 0) {
		learn_rules(k, &none);
		return;
	}
	req.names = k->names;
	k->names = (struct strings){ 0 };
	call_servers(k, "ACL.GetPolicies", &rpc_policies_req_type, &req, &req.query, on_policies);
}

/* All policies are needed: one that is left out could be the one that denies. */
static int
add_link(struct strings *links, const char *name, struct err *e)
{
	if (strings_has(links, name))
		return 0;
	if (links->n == LINKS_MAX)
		return err_say(e, -E2BIG, "it has more than %d policies or roles", LINKS_MAX);
	strings_add(links, name);
	return 0;
}

static void
on_roles(struct sup *sup, void *arg, int r, const void *body, size_t len, const struct err *e)
{
	cleanup_done(rpc_roles_rep) struct rpc_roles_rep rep = { 0 };
	struct acl_known *k = arg;
	struct err bad = { 0 };

	if (r == 0)
		r = model_from_msgpack(&rpc_roles_rep_type, body, len, &rep, WIRE_MEMORY_MAX, &bad);
	for (size_t i = 0; r == 0 && i < rep.roles.n; i++) {
		const struct rpc_role *role = &rep.roles.v[i].value;

		for (size_t p = 0; r == 0 && p < role->policies.n; p++)
			r = add_link(&k->names, str(role->policies.v[p].name), &bad);
	}
	if (r == 0)
		ask_policies(k);
	else
		fail_token(k, r, e, &bad);
}

static json_t *
new_who(struct acl_known *k)
{
	json_decref(k->who);
	k->who = mem_need(json_object());
	return k->who;
}

static void
take_token(struct acl_known *k, struct rpc_token *token)
{
	cleanup_done(rpc_roles_req) struct rpc_roles_req req = { 0 };
	struct acl_rules all = { .management = true };
	struct err bad = { 0 };
	int r = 0;

	api_describe_token(new_who(k), str(token->accessor_id), str(token->name), str(token->type));
	k->new_expires = token->expiration_time;
	if (str_eq(token->type, "management") || (str_eq(token->accessor_id, "acls-disabled") &&
						     !k->n->src.base.sup->config->acl_enabled)) {
		learn_rules(k, &all);
		return;
	}
	for (size_t i = 0; r == 0 && i < token->policies.n; i++)
		r = add_link(&k->names, str(token->policies.v[i]), &bad);
	for (size_t i = 0; r == 0 && i < token->roles.n; i++)
		r = add_link(&req.role_ids, str(token->roles.v[i].id), &bad);
	if (r < 0)
		fail_token(k, r, NULL, &bad);
	else if (req.role_ids.n > 0)
		call_servers(
		    k, "ACL.GetRolesByID", &rpc_roles_req_type, &req, &req.query, on_roles);
	else
		ask_policies(k);
}

static void
take_claims(struct acl_known *k, const struct acl_claims *claims)
{
	cleanup_done(rpc_query_req) struct rpc_query_req req = { 0 };

	api_describe_task(new_who(k), str(claims->alloc_id), str(claims->task));
	call_servers(k, "ACL.GetClaimPolicies", &rpc_query_req_type, &req, &req.query, on_policies);
}

/* A node's secret is not a token for requests to another node. */
static void
on_who(struct sup *sup, void *arg, int r, const void *body, size_t len, const struct err *e)
{
	cleanup_done(rpc_who_rep) struct rpc_who_rep rep = { 0 };
	struct acl_known *k = arg;
	struct err bad = { 0 };

	if (r == 0)
		r = model_from_msgpack(&rpc_who_rep_type, body, len, &rep, WIRE_MEMORY_MAX, &bad);
	if (r < 0)
		fail_token(k, r, e, &bad);
	else if (rep.identity && rep.identity->token)
		take_token(k, rep.identity->token);
	else if (rep.identity && rep.identity->claims)
		take_claims(k, rep.identity->claims);
	else
		refuse_token(k, -EACCES, "", "ACL token not found");
}

static void
ask_servers(struct acl_known *k)
{
	static const struct err nobody = { .code = -ENETUNREACH, .msg = "no server is reachable" };
	cleanup_done(rpc_query_req) struct rpc_query_req req = { 0 };

	if (!*link_server(k->n->src.base.sup)) {
		fail_token(k, nobody.code, &nobody, NULL);
		return;
	}
	k->asking = true;
	k->new_expires = 0;
	strings_done(&k->names);
	/* A request without a token is anonymous and has the policy "anonymous" if it exists. */
	if (k->secret[0] == '\0') {
		strings_add(&k->names, "anonymous");
		ask_policies(k);
		return;
	}
	call_servers(k, "ACL.WhoAmI", &rpc_query_req_type, &req, &req.query, on_who);
}

/* The cache. */

static bool
is_fresh(const struct acl_known *k)
{
	return k->known && clock_ms() - k->known_ms < k->n->src.base.sup->config->acl_ttl_ms;
}

/* Makes room for one more token: frees the one that was not used for longest. Returns false if all
 * are being resolved. */
static bool
drop_oldest(struct nomad *n)
{
	struct acl_known *k, *last = NULL;
	unsigned count = 0;

	TAILQ_FOREACH (k, &n->tokens, link) {
		count++;
		if (!k->asking)
			last = k;
	}
	if (count < TOKENS_MAX)
		return true;
	if (!last)
		return false;
	TAILQ_REMOVE(&n->tokens, last, link);
	free_known(last);
	return true;
}

static struct acl_known *
find_known(const struct nomad *n, const char *secret)
{
	struct acl_known *k;

	TAILQ_FOREACH (k, &n->tokens, link)
		if (strcmp(k->secret, secret) == 0)
			break;
	return k;
}

/* Finds or makes the token's entry and moves it to the front; NULL if too many tokens are being
 * resolved. */
static struct acl_known *
get_known(struct nomad *n, const char *secret)
{
	struct acl_known *k = find_known(n, secret);

	if (k) {
		TAILQ_REMOVE(&n->tokens, k, link);
	} else {
		if (!drop_oldest(n))
			return NULL;
		k = mem_new(struct acl_known);
		k->secret = mem_strdup(secret);
		k->n = n;
	}
	TAILQ_INSERT_HEAD(&n->tokens, k, link);
	return k;
}

void
acl_check(struct nomad *n, const char *token, enum acl_need need, const char *namespace, acl_cb *cb,
    void *arg)
{
	struct sup *sup = n->src.base.sup;

	if (sup->config->acl_enabled)
		acl_check_always(n, token, need, namespace, cb, arg);
	else
		cb(sup, arg, 0, NULL);
}

void
acl_check_always(struct nomad *n, const char *token, enum acl_need need, const char *namespace,
    acl_cb *cb, void *arg)
{
	struct sup *sup = n->src.base.sup;
	struct acl_known *k = NULL;
	struct err e = { 0 };
	struct acl_wait *w;

	if (need == ACL_OPEN) {
		cb(sup, arg, 0, NULL);
		return;
	}
	if (strlen(token) > TOKEN_MAX)
		(void)err_say(&e, -EACCES, "Permission denied");
	else if (!(k = get_known(n, token)))
		(void)err_say(&e, -EBUSY, "too many tokens are being checked");
	if (!k) {
		cb(sup, arg, e.code, &e);
		return;
	}
	w = mem_new(struct acl_wait);
	w->namespace = mem_strdup(namespace);
	w->need = need;
	w->cb = cb;
	w->arg = arg;
	if (is_fresh(k) && !k->asking) {
		answer_wait(k, w);
		return;
	}
	SLIST_INSERT_HEAD(&k->waits, w, link);
	if (!k->asking)
		ask_servers(k);
}

bool
acl_is_known_to_permit(
    const struct nomad *n, const char *token, enum acl_need need, const char *namespace)
{
	const struct acl_known *k;

	k = find_known(n, token);
	return k && k->known && acl_rules_permit(&k->rules, need, namespace);
}

void
acl_describe(struct sup *sup, const struct api_req *req, json_t *auth)
{
	acl_describe_token(sup, str(api_token(req)), auth);
}

void
acl_describe_token(struct sup *sup, const char *token, json_t *auth)
{
	const struct acl_known *k = find_known(nomad_of_sup(sup), token);

	if (!*token)
		api_describe_token(auth, "anonymous", "Anonymous Token", "client");
	else if (k && k->who)
		(void)json_object_update(auth, k->who);
}

void
acl_tokens_free(struct nomad *n)
{
	static const struct err ends = { .code = -ECANCELED };

	while (!TAILQ_EMPTY(&n->tokens)) {
		struct acl_known *k = TAILQ_FIRST(&n->tokens);

		TAILQ_REMOVE(&n->tokens, k, link);
		answer_all(k, &ends);
		free_known(k);
	}
}
