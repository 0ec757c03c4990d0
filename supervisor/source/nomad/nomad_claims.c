// SPDX-License-Identifier: Apache-2.0
/* nomad_claims.c: CSI volumes claimed at the servers and given back. Runs in: supervisor. */
#include <errno.h>
#include <stdlib.h>
#include <systemd/sd-event.h>

#include "common/log.h"
#include "supervisor/source/nomad/nomad.h"

void
nomad_claim(struct source *s, struct sup_alloc *sa, const struct volume_request *vr, claim_cb *cb,
    void *arg)
{
	struct err e = { 0 };

	cb(s->sup, arg, err_say(&e, -EOPNOTSUPP, "volumes of servers cannot be claimed yet"), NULL,
	    &e);
}

void
nomad_release(struct source *s, struct sup_alloc *sa, const struct volume_request *vr)
{
}

void
nomad_claims_free(struct nomad *n)
{
}
