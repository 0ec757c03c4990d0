/* SPDX-License-Identifier: Apache-2.0 */
/* chk_trust.h: TLS contexts: with the machine's certificate authorities, or without verification.
 * Runs in: check-helper. */
#ifndef DROVER_CHK_TRUST_H
#define DROVER_CHK_TRUST_H

#include <stdbool.h>

#include "common/err.h"

struct ssl_ctx_st;

/* Opens the machine's list of certificate authorities, before the drop and the filter. A missing
 * list is an error only for checks that need it. */
void chk_trust_open(void);
/* Returns the TLS context for connections of one kind, made at the first use. NULL with *e. */
struct ssl_ctx_st *chk_trust(bool skip_verify, struct err *e);

#endif
