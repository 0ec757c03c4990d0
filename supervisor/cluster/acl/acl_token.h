/* SPDX-License-Identifier: Apache-2.0 */
/*
 * acl_token.h: what a token permits: asked of the servers, and believed for as long as the
 * configuration's acl { token_ttl } says. While they cannot be asked, what they said last holds.
 * Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_CLUSTER_ACL_ACL_TOKEN_H
#define DROVER_SUPERVISOR_CLUSTER_ACL_ACL_TOKEN_H

#include "supervisor/cluster/acl/acl_rules.h"
#include "supervisor/cluster/node/nomad.h"

/* 0: permitted. -EACCES: refused, *e says how. -ECANCELED: this agent ends. Else the servers could
 * not say. */
typedef void acl_cb(struct sup *sup, void *arg, int r, const struct err *e);

/* May who has this token ("": nobody) do that? cb is called once, perhaps within the call.
 * Everybody may where acl { enabled } is not set. */
void acl_check(struct nomad *n, const char *token, enum acl_need need, const char *namespace,
    acl_cb *cb, void *arg);
/* The same of a token that was just checked, by what was said of it then. */
bool acl_is_known_to_permit(
    const struct nomad *n, const char *token, enum acl_need need, const char *namespace);
void acl_tokens_free(struct nomad *n);

#endif
