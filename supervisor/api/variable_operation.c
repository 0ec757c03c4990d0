// SPDX-License-Identifier: Apache-2.0
/* variable_operation.c: what a PUT of a variable does. Runs in: supervisor. */
#include "supervisor/api/variable_operation.h"

#include <errno.h>

#include "common/cleanup.h"

int
variable_operation_read(const struct api_req *req, enum variable_operation *ret, struct err *e)
{
	static const struct {
		const char *query;
		enum variable_operation operation;
	} locks[] = {
		{ "lock-acquire", VARIABLE_LOCK_ACQUIRE },
		{ "lock-renew", VARIABLE_LOCK_RENEW },
		{ "lock-release", VARIABLE_LOCK_RELEASE },
	};
	const char *cas = api_query(req, "cas");
	unsigned n = 0;

	*ret = VARIABLE_SET;
	for (size_t i = 0; i < ELEMENTSOF(locks); i++) {
		if (!api_query(req, locks[i].query))
			continue;
		*ret = locks[i].operation;
		n++;
	}
	if (n > 1)
		return err_say(e, -EINVAL, "multiple lock operations");
	if (n == 1 && cas && *cas)
		return err_say(e, -EINVAL, "cas cannot be combined with a lock operation");
	return 0;
}
