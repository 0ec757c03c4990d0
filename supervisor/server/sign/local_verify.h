/* SPDX-License-Identifier: Apache-2.0 */
/* local_verify.h: verifies the tokens that the embedded server signed for tasks. Runs in:
 * supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_SIGN_LOCAL_VERIFY_H
#define DROVER_SUPERVISOR_SERVER_SIGN_LOCAL_VERIFY_H

#include <jansson.h>

#include "supervisor/server/base/local.h"

#define LOCAL_TOKEN_MAX 8192 /* bytes; most have less than 1,000 */

/* What a token says. */
struct local_claims {
	struct id alloc_id;
	char *key_id, *namespace, *job_id, *task;
	int64_t expires_s; /* 0: never */
};

/* A token as it is sent. Nothing of it is checked. */
struct local_jwt {
	size_t signed_len; /* bytes of its head and body, with the dot between them */
	json_t *head;      /* NULL: it is not JSON */
	char *signature;   /* NULL: it is not base64url */
	size_t signature_len;
};

/* Reads a token. Returns 0, or -EACCES with *e. The caller frees *ret with local_jwt_done(). */
int local_jwt_read(const char *token, struct local_jwt *ret, struct err *e);
void local_jwt_done(struct local_jwt *t);
/* Reads the body of a token whose signature is right into *ret, without key_id. Returns 0 or
 * -EACCES with *e; the caller frees *ret with local_claims_done(). */
int local_jwt_claims(
    const char *token, const struct local_jwt *t, struct local_claims *ret, struct err *e);

/* Returns 0 with *ret, which the caller frees with local_claims_done(); -EACCES with a sentence if
 * the token was not signed here, is not valid now, or belongs to an alloc that has ended. */
int local_verify(struct local *l, const char *token, struct local_claims *ret, struct err *e);
/* Checks again what may have changed since. */
int local_claims_check(struct local *l, const struct local_claims *c, struct err *e);
void local_claims_done(struct local_claims *c);

#endif
