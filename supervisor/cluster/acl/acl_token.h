/* SPDX-License-Identifier: Apache-2.0 */
/* acl_token.h: decides what a token permits. The servers resolve it, and the result is cached for
 * acl { token_ttl }. While no server can be reached, the last result stays valid. Runs in:
 * supervisor. */
#ifndef DROVER_SUPERVISOR_CLUSTER_ACL_ACL_TOKEN_H
#define DROVER_SUPERVISOR_CLUSTER_ACL_ACL_TOKEN_H

#include "supervisor/acl/acl_rules.h"
#include "supervisor/cluster/node/nomad.h"

/* r is 0 if permitted; -EACCES if refused, with the reason in *e; -ECANCELED if the agent is
 * ending; otherwise the token could not be resolved. */
typedef void acl_cb(struct sup *sup, void *arg, int r, const struct err *e);

/* Checks whether this token ("": anonymous) has the permission. cb is called once, perhaps within
 * the call. Everything is permitted if acl { enabled } is not set. */
void acl_check(struct nomad *n, const char *token, enum acl_need need, const char *namespace,
    acl_cb *cb, void *arg);
/* The same whether or not acl { enabled } is set: servers whose ACLs are disabled permit everything
 * to each token that is valid. */
void acl_check_always(struct nomad *n, const char *token, enum acl_need need, const char *namespace,
    acl_cb *cb, void *arg);
/* Returns whether the token has the permission, by the cached result, however old. To be called
 * only for a request whose token was checked, and not for ACL_OPEN. */
bool acl_is_known_to_permit(
    const struct nomad *n, const char *token, enum acl_need need, const char *namespace);
/* For struct api_backend: whose token the request has, by the cached result. */
void acl_describe(struct sup *sup, const struct api_req *req, json_t *auth);
void acl_describe_token(struct sup *sup, const char *token, json_t *auth);
void acl_tokens_free(struct nomad *n);

#endif
