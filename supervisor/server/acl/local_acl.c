// SPDX-License-Identifier: Apache-2.0
/* local_acl.c: the ACL policies, roles and tokens of the embedded server. Runs in: supervisor. */
#include "supervisor/server/acl/local_acl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "supervisor/core/journal.h"
#include "supervisor/core/seal.h"
#include "supervisor/core/store.h"
#include "supervisor/server/acl/local_identity.h"
#include "supervisor/server/feed/local_changes.h"

#define BOOTSTRAP_ROW "local_acl_bootstrap"

struct local_acl {
	struct local_map policies, roles, tokens, secrets;
	uint64_t bootstrapped;
	struct dirty bootstrap_row;
};

/* Records a change of this kind, which identities must see. */
static void
save(struct local *l, struct dirty *row, enum local_kind kind, uint64_t index)
{
	local_identities_forget(l);
	local_changes_record(l, kind, index);
	turn_write(l->base.sup, row);
	turn_durable(l->base.sup);
}

static void
report_row(const char *kind, const char *name, const struct err *why)
{
	journal_error(JOURNAL_STATE, NULL, "state.db: ACL %s %s cannot be used: %s", kind, name,
	    *why->msg ? why->msg : "its secret was sealed with another key");
}

static int
put_json(struct sup *sup, enum store_stmt stmt, const char *key, const struct type *type,
    const void *obj, struct err *e)
{
	struct text json = { 0 };
	int r;

	model_to_text(type, obj, MODEL_COMPACT, &json);
	r = STORE_EXEC(sup->store, stmt, e, SV_TEXT(key), SV_TEXT(json.text));
	text_done(&json);
	return r;
}

/* --- policies --- */

static int
write_policy(struct sup *sup, struct dirty *d, struct err *e)
{
	struct local_policy *p = container_of(d, struct local_policy, row);

	return p->gone ? STORE_EXEC(sup->store, STMT_ACL_POLICY_DELETE, e, SV_TEXT(p->p.name))
		       : put_json(sup, STMT_ACL_POLICY_PUT, p->p.name, &acl_policy_type, &p->p, e);
}

static void
free_policy(struct local_policy *p)
{
	acl_policy_done(&p->p);
	free(p);
}

static void
on_policy_written(struct sup *sup, struct dirty *d)
{
	struct local_policy *p = container_of(d, struct local_policy, row);

	(void)sup;
	if (p->gone)
		free_policy(p);
}

static void
drop_policy(struct local *l, struct local_key *key)
{
	turn_forget_write(l->base.sup, &local_policy_of(key)->row);
	free_policy(local_policy_of(key));
}

/* Takes over *policy. */
static struct local_policy *
insert_policy(struct local *l, struct acl_policy *policy)
{
	struct local_policy *p = mem_new(struct local_policy);

	p->row.write = write_policy;
	p->row.point = CRASH_ROW_ACL_POLICY;
	p->row.written = on_policy_written;
	p->p = *policy;
	acl_policy_init(policy);
	local_map_add(&l->acl->policies, &p->key, p->p.name);
	return p;
}

static int
load_policy(void *arg, const struct store_row *row, struct err *e)
{
	const char *json = store_col_text(row, 1);
	cleanup_done(acl_policy) struct acl_policy policy;
	struct err why = { 0 };

	(void)e;
	acl_policy_init(&policy);
	if (model_from_text(&acl_policy_type, json, strlen(json), &policy, &why) < 0 ||
	    !str_eq(policy.name, store_col_text(row, 0)))
		report_row("policy", store_col_text(row, 0), &why);
	else
		(void)insert_policy(arg, &policy);
	return 0;
}

struct local_policy *
local_policy_find(const struct local *l, const char *name)
{
	return local_policy_of(local_map_find(&l->acl->policies, name));
}

struct local_key **
local_policies_sorted(const struct local *l, size_t *ret_n)
{
	return local_map_sorted(&l->acl->policies, ret_n);
}

void
local_policy_put(struct local *l, struct acl_policy *policy)
{
	struct local_policy *p = local_policy_find(l, policy->name);

	policy->modify_index = local_index_next(l);
	policy->create_index = p ? p->p.create_index : policy->modify_index;
	if (!p) {
		p = insert_policy(l, policy);
	} else {
		/* The map refers to the name, so that one stays. */
		free(policy->name);
		policy->name = steal_ptr(&p->p.name);
		acl_policy_done(&p->p);
		p->p = *policy;
		acl_policy_init(policy);
	}
	save(l, &p->row, LOCAL_ACL_POLICIES, p->p.modify_index);
}

void
local_policy_forget(struct local *l, struct local_policy *p)
{
	local_map_remove(&l->acl->policies, &p->key);
	p->gone = true;
	save(l, &p->row, LOCAL_ACL_POLICIES, local_index_next(l));
}

/* --- roles --- */

static int
write_role(struct sup *sup, struct dirty *d, struct err *e)
{
	struct local_role *r = container_of(d, struct local_role, row);

	return r->gone ? STORE_EXEC(sup->store, STMT_ACL_ROLE_DELETE, e, SV_TEXT(r->r.id))
		       : put_json(sup, STMT_ACL_ROLE_PUT, r->r.id, &acl_role_type, &r->r, e);
}

static void
free_role(struct local_role *r)
{
	acl_role_done(&r->r);
	free(r);
}

static void
on_role_written(struct sup *sup, struct dirty *d)
{
	struct local_role *r = container_of(d, struct local_role, row);

	(void)sup;
	if (r->gone)
		free_role(r);
}

static void
drop_role(struct local *l, struct local_key *key)
{
	turn_forget_write(l->base.sup, &local_role_of(key)->row);
	free_role(local_role_of(key));
}

/* Takes over *role. */
static struct local_role *
insert_role(struct local *l, struct acl_role *role)
{
	struct local_role *r = mem_new(struct local_role);

	r->row.write = write_role;
	r->row.point = CRASH_ROW_ACL_ROLE;
	r->row.written = on_role_written;
	r->r = *role;
	acl_role_init(role);
	local_map_add(&l->acl->roles, &r->key, r->r.id);
	return r;
}

static int
load_role(void *arg, const struct store_row *row, struct err *e)
{
	const char *json = store_col_text(row, 1);
	cleanup_done(acl_role) struct acl_role role;
	struct err why = { 0 };

	(void)e;
	acl_role_init(&role);
	if (model_from_text(&acl_role_type, json, strlen(json), &role, &why) < 0 ||
	    !str_eq(role.id, store_col_text(row, 0)))
		report_row("role", store_col_text(row, 0), &why);
	else
		(void)insert_role(arg, &role);
	return 0;
}

struct local_role *
local_role_find(const struct local *l, const char *id)
{
	return local_role_of(local_map_find(&l->acl->roles, id));
}

struct local_role *
local_role_named(const struct local *l, const char *name)
{
	size_t n;
	cleanup_free struct local_key **all = local_roles_sorted(l, &n);

	for (size_t i = 0; i < n; i++)
		if (str_eq(local_role_of(all[i])->r.name, name))
			return local_role_of(all[i]);
	return NULL;
}

struct local_key **
local_roles_sorted(const struct local *l, size_t *ret_n)
{
	return local_map_sorted(&l->acl->roles, ret_n);
}

struct local_role *
local_role_put(struct local *l, struct acl_role *role)
{
	struct local_role *r = local_role_find(l, role->id);

	role->modify_index = local_index_next(l);
	role->create_index = r ? r->r.create_index : role->modify_index;
	if (!r) {
		r = insert_role(l, role);
	} else {
		free(role->id);
		role->id = steal_ptr(&r->r.id);
		acl_role_done(&r->r);
		r->r = *role;
		acl_role_init(role);
	}
	save(l, &r->row, LOCAL_ACL_ROLES, r->r.modify_index);
	return r;
}

void
local_role_forget(struct local *l, struct local_role *r)
{
	local_map_remove(&l->acl->roles, &r->key);
	r->gone = true;
	save(l, &r->row, LOCAL_ACL_ROLES, local_index_next(l));
}

/* --- tokens --- */

/* The name under which the secret is sealed. */
static char *
name_secret(const char *accessor)
{
	return mem_printf("secret of ACL token %s", accessor);
}

static int
put_token(struct sup *sup, const struct local_token *t, struct err *e)
{
	cleanup_free char *about = name_secret(t->t.accessor_id);
	struct sealed sealed = { 0 };
	struct text json = { 0 };
	int r;

	r = seal_close(sup->seal, about, t->t.secret_id, strlen(t->t.secret_id), &sealed, e);
	if (r == 0) {
		model_to_text(&acl_token_type, &t->t, MODEL_COMPACT | MODEL_ROW, &json);
		r = STORE_EXEC(sup->store, STMT_ACL_TOKEN_PUT, e, SV_TEXT(t->t.accessor_id),
		    SV_TEXT(json.text), SV_BLOB(sealed.bytes, sealed.len));
	}
	sealed_done(&sealed);
	text_done(&json);
	return r;
}

static int
write_token(struct sup *sup, struct dirty *d, struct err *e)
{
	struct local_token *t = container_of(d, struct local_token, row);

	return t->gone ? STORE_EXEC(sup->store, STMT_ACL_TOKEN_DELETE, e, SV_TEXT(t->t.accessor_id))
		       : put_token(sup, t, e);
}

static void
free_token(struct local_token *t)
{
	acl_token_done(&t->t);
	free(t);
}

static void
on_token_written(struct sup *sup, struct dirty *d)
{
	struct local_token *t = container_of(d, struct local_token, row);

	(void)sup;
	if (t->gone)
		free_token(t);
}

static void
drop_token(struct local *l, struct local_key *key)
{
	turn_forget_write(l->base.sup, &local_token_of(key)->row);
	free_token(local_token_of(key));
}

/* Takes over *token. */
static struct local_token *
insert_token(struct local *l, struct acl_token *token)
{
	struct local_token *t = mem_new(struct local_token);

	t->row.write = write_token;
	t->row.point = CRASH_ROW_ACL_TOKEN;
	t->row.written = on_token_written;
	t->t = *token;
	acl_token_init(token);
	local_map_add(&l->acl->tokens, &t->key, t->t.accessor_id);
	local_map_add(&l->acl->secrets, &t->secret, t->t.secret_id);
	return t;
}

static int
load_token(void *arg, const struct store_row *row, struct err *e)
{
	struct local *l = arg;
	const char *accessor = store_col_text(row, 0), *json = store_col_text(row, 1);
	cleanup_done(acl_token) struct acl_token token;
	cleanup_free char *about = name_secret(accessor);
	struct err why = { 0 };
	uint8_t *secret = NULL;
	size_t len, sealed_len;
	const void *sealed = store_col_blob(row, 2, &sealed_len);

	(void)e;
	acl_token_init(&token);
	if (model_from_text(&acl_token_type, json, strlen(json), &token, &why) == 0 &&
	    str_eq(token.accessor_id, accessor) &&
	    seal_open(l->base.sup->seal, about, sealed, sealed_len, &secret, &len) == 0) {
		token.secret_id = mem_strndup((const char *)secret, len);
		seal_wipe(secret, len);
	}
	if (token.secret_id && !local_token_by_secret(l, token.secret_id))
		(void)insert_token(l, &token);
	else
		report_row("token", accessor, &why);
	return 0;
}

struct local_token *
local_token_find(const struct local *l, const char *accessor)
{
	return local_token_of(local_map_find(&l->acl->tokens, accessor));
}

struct local_token *
local_token_by_secret(const struct local *l, const char *secret)
{
	struct local_key *key = local_map_find(&l->acl->secrets, secret);

	return key ? container_of(key, struct local_token, secret) : NULL;
}

struct local_key **
local_tokens_sorted(const struct local *l, size_t *ret_n)
{
	return local_map_sorted(&l->acl->tokens, ret_n);
}

struct local_token *
local_token_put(struct local *l, struct acl_token *token)
{
	struct local_token *t = local_token_find(l, token->accessor_id);

	token->modify_index = local_index_next(l);
	token->create_index = t ? t->t.create_index : token->modify_index;
	if (!t) {
		t = insert_token(l, token);
	} else {
		/* The maps refer to these texts. */
		free(token->accessor_id);
		token->accessor_id = steal_ptr(&t->t.accessor_id);
		seal_wipe(token->secret_id, strlen(str(token->secret_id)));
		token->secret_id = steal_ptr(&t->t.secret_id);
		token->create_time = t->t.create_time;
		token->expiration_time = t->t.expiration_time;
		str_set(&token->expiration_ttl, t->t.expiration_ttl);
		acl_token_done(&t->t);
		t->t = *token;
		acl_token_init(token);
	}
	save(l, &t->row, LOCAL_ACL_TOKENS, t->t.modify_index);
	return t;
}

void
local_token_forget(struct local *l, struct local_token *t)
{
	local_map_remove(&l->acl->tokens, &t->key);
	local_map_remove(&l->acl->secrets, &t->secret);
	t->gone = true;
	save(l, &t->row, LOCAL_ACL_TOKENS, local_index_next(l));
}

bool
local_token_is_expired(const struct local_token *t, int64_t now_ns)
{
	return t->t.expiration_time && t->t.expiration_time <= now_ns;
}

void
local_tokens_age(struct local *l, int64_t before_ns)
{
	size_t n;
	cleanup_free struct local_key **all = local_tokens_sorted(l, &n);

	for (size_t i = 0; i < n; i++)
		if (local_token_is_expired(local_token_of(all[i]), before_ns))
			local_token_forget(l, local_token_of(all[i]));
}

/* --- bootstrap --- */

static int
write_bootstrap(struct sup *sup, struct dirty *d, struct err *e)
{
	char text[24];

	(void)snprintf(text, sizeof text, "%" PRIu64, local_acl_bootstrapped(local_of_sup(sup)));
	return store_meta_put(sup->store, BOOTSTRAP_ROW, text, e);
}

uint64_t
local_acl_bootstrapped(const struct local *l)
{
	return l->acl->bootstrapped;
}

void
local_acl_set_bootstrapped(struct local *l, const struct local_token *t)
{
	l->acl->bootstrapped = t->t.create_index;
	turn_write(l->base.sup, &l->acl->bootstrap_row);
}

/* --- all --- */

void
local_acl_init(struct local *l)
{
	l->acl = mem_new(struct local_acl);
	l->acl->bootstrap_row.write = write_bootstrap;
	l->acl->bootstrap_row.point = CRASH_ROW_ACL_BOOTSTRAP;
}

int
local_acl_load(struct local *l, struct err *e)
{
	struct store *store = l->base.sup->store;
	cleanup_free char *index = NULL;
	int r = store_meta_get(store, BOOTSTRAP_ROW, &index, e);

	if (r >= 0)
		l->acl->bootstrapped = strtoull(index, NULL, 10);
	else if (r != -ENOENT)
		return r;
	if ((r = store_each(store, STMT_ACL_POLICY_ALL, NULL, 0, load_policy, l, e)) < 0 ||
	    (r = store_each(store, STMT_ACL_ROLE_ALL, NULL, 0, load_role, l, e)) < 0)
		return r;
	return store_each(store, STMT_ACL_TOKEN_ALL, NULL, 0, load_token, l, e);
}

void
local_acl_free(struct local *l)
{
	turn_forget_write(l->base.sup, &l->acl->bootstrap_row);
	local_map_done(&l->acl->secrets, l, NULL);
	local_map_done(&l->acl->tokens, l, drop_token);
	local_map_done(&l->acl->roles, l, drop_role);
	local_map_done(&l->acl->policies, l, drop_policy);
	free(l->acl);
}
