/* SPDX-License-Identifier: Apache-2.0 */
/* local_identity.h: who sends a request to the embedded server, and what that permits. Runs in:
 * supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_ACL_LOCAL_IDENTITY_H
#define DROVER_SUPERVISOR_SERVER_ACL_LOCAL_IDENTITY_H

#include "supervisor/acl/acl_rules.h"
#include "supervisor/server/base/local.h"

struct strings;
struct sup_alloc;

struct local_identity {
	const struct local_token *token;   /* NULL: none, or that of a task */
	const struct local_claims *claims; /* of a task; or NULL */
	const struct strings *policies;    /* the names of all its policies that exist */
	struct acl_rules rules;
};

void local_identities_init(struct local *l);
void local_identities_free(struct local *l);
/* Forgets what policies permit: one has changed. */
void local_identities_forget(struct local *l);

/* Returns the identity that a secret ("": none) stands for; valid until the next change of
 * policies, roles or tokens. NULL with *e (-EACCES): it is not valid. */
const struct local_identity *local_identify(struct local *l, const char *secret, struct err *e);

/* Returns whether the identity may do this with a variable. */
bool local_identity_permits_variable(struct local *l, const struct local_identity *who,
    const char *namespace, const char *path, enum acl_variable what);

/* Returns whether a task may do this: as its identity may, without a token. */
bool local_task_permits_variable(struct local *l, const struct sup_alloc *sa, const char *task,
    const char *namespace, const char *path, enum acl_variable what);

#endif
