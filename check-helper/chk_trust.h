/* SPDX-License-Identifier: Apache-2.0 */
/* chk_trust.h: TLS contexts: with the machine's certificate authorities, or without verification.
 * Runs in: check-helper. */
#ifndef DROVER_CHECK_HELPER_CHK_TRUST_H
#define DROVER_CHECK_HELPER_CHK_TRUST_H

#include <stdbool.h>

#include "common/err.h"

struct ssl_ctx_st;

struct chk_trust {
	int list_fd; /* the machine's list of authorities; -1 if it has none */
	const char *list_name;
	struct ssl_ctx_st *contexts[2]; /* by skip_verify; NULL until the first use */
};

/* Opens the machine's list of certificate authorities, before the drop and the filter. A missing
 * list is an error only for checks that need it. */
void chk_trust_open(struct chk_trust *t);
/* Returns the TLS context for connections with or without verification, made at the first use
 * because the list takes time and memory. NULL with *e. */
struct ssl_ctx_st *chk_trust_context(struct chk_trust *t, bool skip_verify, struct err *e);

#endif
