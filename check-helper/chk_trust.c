// SPDX-License-Identifier: Apache-2.0
/* chk_trust.c: the certificate authorities. Runs in: check-helper. */
#include "check-helper/chk_trust.h"

#include <errno.h>
#include <fcntl.h>

#include "common/authorities.h"
#include "common/cleanup.h"
#include "common/tls.h"

static int list_fd = -1;
static const char *list_name;

void
chk_trust_open(void)
{
	for (size_t i = 0; i < ELEMENTSOF(authorities_places) && list_fd < 0; i++) {
		list_name = authorities_places[i];
		list_fd = open(list_name, O_RDONLY | O_CLOEXEC);
	}
}

struct ssl_ctx_st *
chk_trust(bool skip_verify, struct err *e)
{
	static struct ssl_ctx_st
	    *made[2]; /* loading the list takes time and memory, so it is loaded at the first use */

	if (!made[skip_verify] && !skip_verify && list_fd < 0)
		(void)err_say(e, -ENOENT,
		    "this machine has no list of certificate authorities (%s), so only checks with "
		    "tls_skip_verify work",
		    authorities_places[0]);
	else if (!made[skip_verify])
		made[skip_verify] = tls_new(skip_verify ? -1 : list_fd, list_name, e);
	return made[skip_verify];
}
