// SPDX-License-Identifier: Apache-2.0
/* local_verify.c: verifies the tokens of tasks. Runs in: supervisor. */
#include "supervisor/server/sign/local_verify.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base64.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/mem.h"
#include "supervisor/server/sign/local_keys.h"
#include "supervisor/table/alloc_table.h"

#define EARLY_S 60 /* a clock that was put back by less does no harm */

/* Decodes base64url without padding. Returns a new buffer with a NUL after *ret_len bytes, or NULL.
 */
static char *
decode_part(const char *text, size_t len, size_t *ret_len)
{
	cleanup_free char *padded = mem_alloc(len + 4);
	cleanup_free char *bytes = mem_alloc(len + 4);

	if (len == 0 || len % 4 == 1)
		return NULL;
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '+' || text[i] == '/' || text[i] == '=')
			return NULL;
		padded[i] = text[i] == '-' ? '+' : text[i] == '_' ? '/' : text[i];
	}
	while (len % 4)
		padded[len++] = '=';
	padded[len] = '\0';
	if (base64_decode(padded, bytes, ret_len) < 0)
		return NULL;
	bytes[*ret_len] = '\0';
	return steal_ptr(&bytes);
}

static json_t *
decode_json(const char *text, size_t len)
{
	size_t n;
	cleanup_free char *bytes = decode_part(text, len, &n);

	return bytes ? json_loadb(bytes, n, JSON_REJECT_DUPLICATES, NULL) : NULL;
}

static const char *
get_text(const json_t *json, const char *name)
{
	return json_string_value(json_object_get(json, name)) ?: "";
}

/* Returns the key that the head names, if it has the head's algorithm. */
static const struct local_signing_key *
find_key(const struct local *l, const json_t *head)
{
	const struct local_signing_key *k = local_keys_find(l, get_text(head, "kid"));

	return k && str_eq(k->about.algorithm, get_text(head, "alg")) ? k : NULL;
}

int
local_jwt_read(const char *token, struct local_jwt *ret, struct err *e)
{
	const char *dot = strchr(token, '.'), *dot2 = dot ? strchr(dot + 1, '.') : NULL;

	*ret = (struct local_jwt){ 0 };
	if (!dot2 || strchr(dot2 + 1, '.') || strlen(token) > LOCAL_TOKEN_MAX)
		return err_say(e, -EACCES, "it is not a token");
	ret->signed_len = (size_t)(dot2 - token);
	ret->head = decode_json(token, (size_t)(dot - token));
	ret->signature = decode_part(dot2 + 1, strlen(dot2 + 1), &ret->signature_len);
	return 0;
}

void
local_jwt_done(struct local_jwt *t)
{
	json_decref(t->head);
	free(t->signature);
	*t = (struct local_jwt){ 0 };
}

int
local_jwt_claims(
    const char *token, const struct local_jwt *t, struct local_claims *ret, struct err *e)
{
	const char *dot = strchr(token, '.');
	cleanup_json json_t *body = decode_json(dot + 1, t->signed_len - (size_t)(dot + 1 - token));
	const json_t *exp = json_object_get(body, "exp"), *nbf = json_object_get(body, "nbf");

	if (!id_from_uuid(get_text(body, "nomad_allocation_id"), &ret->alloc_id) ||
	    (exp && !json_is_integer(exp)))
		return err_say(e, -EACCES, "the token is not that of a task");
	if (json_integer_value(nbf) > clock_real_ns() / NS_PER_S + EARLY_S)
		return err_say(e, -EACCES, "the token is not valid yet");
	ret->namespace = mem_strdup(get_text(body, "nomad_namespace"));
	ret->job_id = mem_strdup(get_text(body, "nomad_job_id"));
	ret->task = mem_strdup(get_text(body, "nomad_task"));
	ret->expires_s = json_integer_value(exp);
	return 0;
}

int
local_claims_check(struct local *l, const struct local_claims *c, struct err *e)
{
	const struct sup_alloc *sa = alloc_find(l->base.sup, &c->alloc_id);

	if (c->expires_s && c->expires_s <= clock_real_ns() / NS_PER_S)
		return err_say(e, -EACCES, "the token has expired");
	if (!local_keys_find(l, c->key_id))
		return err_say(e, -EACCES, "the key that signed the token was removed");
	if (!sa || alloc_client_terminal(&sa->a))
		return err_say(e, -EACCES, "the token's allocation has ended");
	return 0;
}

static int
verify(struct local *l, const char *token, struct local_claims *ret, struct err *e)
{
	cleanup_done(local_jwt) struct local_jwt t;
	const struct local_signing_key *k;
	int r = local_jwt_read(token, &t, e);

	if (r < 0)
		return r;
	k = find_key(l, t.head);
	if (!k || !t.signature ||
	    !sign_key_verify(k->pair, token, t.signed_len, (uint8_t *)t.signature, t.signature_len))
		return err_say(e, -EACCES, "the token was not signed by this agent");
	ret->key_id = mem_strdup(k->about.id);
	r = local_jwt_claims(token, &t, ret, e);
	return r < 0 ? r : local_claims_check(l, ret, e);
}

int
local_verify(struct local *l, const char *token, struct local_claims *ret, struct err *e)
{
	int r;

	*ret = (struct local_claims){ 0 };
	r = verify(l, token, ret, e);
	if (r < 0)
		local_claims_done(ret);
	return r;
}

void
local_claims_done(struct local_claims *c)
{
	free(c->key_id);
	free(c->namespace);
	free(c->job_id);
	free(c->task);
	*c = (struct local_claims){ 0 };
}
