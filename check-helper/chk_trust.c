// SPDX-License-Identifier: Apache-2.0
/* chk_trust.c: the certificate authorities. Runs in: check-helper. */
#include "check-helper/chk_trust.h"

#include <errno.h>
#include <fcntl.h>

#include "common/authorities.h"
#include "common/cleanup.h"
#include "common/tls.h"

void
chk_trust_open(struct chk_trust *t)
{
	*t = (struct chk_trust){ .list_fd = -1 };
	for (size_t i = 0; i < ELEMENTSOF(authorities_places) && t->list_fd < 0; i++) {
		t->list_name = authorities_places[i];
		t->list_fd = open(t->list_name, O_RDONLY | O_CLOEXEC);
	}
}

struct ssl_ctx_st *
chk_trust_context(struct chk_trust *t, bool skip_verify, struct err *e)
{
	struct ssl_ctx_st **at = &t->contexts[skip_verify];

	if (!*at && !skip_verify && t->list_fd < 0)
		(void)err_say(e, -ENOENT,
		    "this machine has no list of certificate authorities (%s), so only checks with "
		    "tls_skip_verify work",
		    authorities_places[0]);
	else if (!*at)
		*at = tls_new(skip_verify ? -1 : t->list_fd, t->list_name, e);
	return *at;
}
