// SPDX-License-Identifier: Apache-2.0
/* lease_deadline.c: computes when a lease ends. Runs in: executor, dropped; supervisor. */
#include "common/lease.h"

uint64_t
lease_deadline_ns(const struct lease_page *page, uint64_t limit_ms, uint64_t now_ns)
{
	uint64_t last = page->last_ok < now_ns ? page->last_ok : now_ns;
	uint64_t limit = limit_ms;

	if (page->last_ok == 0) {
		last = page->started < now_ns ? page->started : now_ns;
		limit = limit_ms > LEASE_GRACE_MS ? limit_ms : LEASE_GRACE_MS;
	}
	if (limit > UINT64_MAX / 2000000u)
		return UINT64_MAX;
	return last + limit * 1000000u;
}
