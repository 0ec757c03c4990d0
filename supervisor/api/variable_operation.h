/* SPDX-License-Identifier: Apache-2.0 */
/* variable_operation.h: what a PUT of a variable does, which its query says. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_API_VARIABLE_OPERATION_H
#define DROVER_SUPERVISOR_API_VARIABLE_OPERATION_H

#include "supervisor/http/api.h"

enum variable_operation {
	VARIABLE_SET,
	VARIABLE_LOCK_ACQUIRE,
	VARIABLE_LOCK_RENEW,
	VARIABLE_LOCK_RELEASE
};

/* Returns 0, or -EINVAL with *e for several lock operations, or one with ?cas=. */
int variable_operation_read(const struct api_req *req, enum variable_operation *ret, struct err *e);

#endif
