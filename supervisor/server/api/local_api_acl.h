/* SPDX-License-Identifier: Apache-2.0 */
/* local_api_acl.h: what the handlers of ACL policies, roles and tokens share. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_SERVER_API_LOCAL_API_ACL_H
#define DROVER_SUPERVISOR_SERVER_API_LOCAL_API_ACL_H

#include "common/err.h"
#include "supervisor/http/api.h"

#define LOCAL_NAME_MAX_LEN 128 /* of a policy or role, as with the servers */

bool local_api_name_is_valid(const char *name);
/* Reads the body into *ret (initialised). Returns 0 or -EINVAL with *e. */
int local_api_read_object(struct api_req *req, const struct type *type, void *ret, struct err *e);
/* Sets a new random UUID. */
void local_api_make_uuid(char **ret);

#endif
