// SPDX-License-Identifier: Apache-2.0
/* lease_write.c: writes last_ok, the only field of the lease page that changes. Runs in:
 * heartbeat. */
#include <stddef.h>
#include <sys/mman.h>

#include "common/lease.h"

struct lease_page *
lease_map(int fd)
{
	void *page =
	    mmap(NULL, sizeof(struct lease_page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return page == MAP_FAILED ? NULL : page;
}

void
lease_set_ok(struct lease_page *page, uint64_t last_ok)
{
	__atomic_store_n(&page->last_ok, last_ok, __ATOMIC_RELEASE);
}
