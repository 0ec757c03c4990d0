/* SPDX-License-Identifier: Apache-2.0 */
/* chk_trust.h: whom to believe: the authorities of the machine, or anybody. Runs in: check-helper.
 */
#ifndef DROVER_CHK_TRUST_H
#define DROVER_CHK_TRUST_H

#include <stdbool.h>

#include "common/err.h"

struct ssl_ctx_st;

/* Opens the machine's list of authorities, before the drop and the filter. That there is none is a
 * matter of the checks that need it. */
void chk_trust_open(void);
/* What the connections of one kind share; made at the first that needs it. NULL with *e. */
struct ssl_ctx_st *chk_trust(bool skip_verify, struct err *e);

#endif
