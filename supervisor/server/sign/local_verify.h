/* SPDX-License-Identifier: Apache-2.0 */
/* local_verify.h: verifies the tokens that the embedded server signed for tasks. Runs in:
 * supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_SIGN_LOCAL_VERIFY_H
#define DROVER_SUPERVISOR_SERVER_SIGN_LOCAL_VERIFY_H

#include "supervisor/server/base/local.h"

#define LOCAL_TOKEN_MAX 8192 /* bytes; most have less than 1,000 */

/* What a token says. */
struct local_claims {
	struct id alloc_id;
	char *key_id, *namespace, *job_id, *task;
	int64_t expires_s; /* 0: never */
};

/* Returns 0 with *ret, which the caller frees with local_claims_done(); -EACCES with a sentence if
 * the token was not signed here, is not valid now, or belongs to an alloc that has ended. */
int local_verify(struct local *l, const char *token, struct local_claims *ret, struct err *e);
/* Checks again what may have changed since. */
int local_claims_check(struct local *l, const struct local_claims *c, struct err *e);
void local_claims_done(struct local_claims *c);

#endif
