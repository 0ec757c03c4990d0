/* SPDX-License-Identifier: Apache-2.0 */
/*
 * local_acl.h: the ACL policies, roles and tokens of the embedded server. Runs in: supervisor.
 *
 * Each change is durable, and counts for the next request. The secrets of tokens are sealed in
 * state.db (core/seal.h).
 */
#ifndef DROVER_SUPERVISOR_SERVER_ACL_LOCAL_ACL_H
#define DROVER_SUPERVISOR_SERVER_ACL_LOCAL_ACL_H

#include "model/acl.h"
#include "supervisor/server/base/local.h"
#include "supervisor/server/base/local_map.h"

/* The policy of requests without a token. */
#define LOCAL_ACL_ANONYMOUS "anonymous"
#define LOCAL_ACL_CLIENT    "client"
#define LOCAL_ACL_MANAGER   "management"

/* `gone`: the row is being deleted; then the object is freed. */
struct local_policy {
	struct local_key key; /* its name */
	struct acl_policy p;
	struct dirty row;
	bool gone;
};

struct local_role {
	struct local_key key; /* its id */
	struct acl_role r;
	struct dirty row;
	bool gone;
};

struct local_token {
	struct local_key key; /* its accessor */
	struct local_key secret;
	struct acl_token t;
	struct dirty row;
	bool gone;
};

static inline struct local_policy *
local_policy_of(struct local_key *key)
{
	return key ? container_of(key, struct local_policy, key) : NULL;
}

static inline struct local_role *
local_role_of(struct local_key *key)
{
	return key ? container_of(key, struct local_role, key) : NULL;
}

static inline struct local_token *
local_token_of(struct local_key *key)
{
	return key ? container_of(key, struct local_token, key) : NULL;
}

void local_acl_init(struct local *l);
void local_acl_free(struct local *l);
int local_acl_load(struct local *l, struct err *e);

/* The lists are sorted by name, id or accessor; the caller frees the array of *ret_n. put makes or
 * replaces the object of that name, id or accessor and takes over its argument, which is emptied.
 * find returns NULL if there is none. */
struct local_policy *local_policy_find(const struct local *l, const char *name);
struct local_key **local_policies_sorted(const struct local *l, size_t *ret_n);
void local_policy_put(struct local *l, struct acl_policy *p);
void local_policy_forget(struct local *l, struct local_policy *p);

struct local_role *local_role_find(const struct local *l, const char *id);
struct local_role *local_role_named(const struct local *l, const char *name);
struct local_key **local_roles_sorted(const struct local *l, size_t *ret_n);
struct local_role *local_role_put(struct local *l, struct acl_role *r);
void local_role_forget(struct local *l, struct local_role *r);

struct local_token *local_token_find(const struct local *l, const char *accessor);
struct local_token *local_token_by_secret(const struct local *l, const char *secret);
struct local_key **local_tokens_sorted(const struct local *l, size_t *ret_n);
/* A token that exists keeps its secret and the time when it was made. */
struct local_token *local_token_put(struct local *l, struct acl_token *t);
void local_token_forget(struct local *l, struct local_token *t);
bool local_token_is_expired(const struct local_token *t, int64_t now_ns);
/* Deletes the tokens that expired before this time. */
void local_tokens_age(struct local *l, int64_t before_ns);

/* Returns the index at which the first token was made; 0: none was. */
uint64_t local_acl_bootstrapped(const struct local *l);
/* Records that this token is the first one. */
void local_acl_set_bootstrapped(struct local *l, const struct local_token *t);

#endif
