// SPDX-License-Identifier: Apache-2.0
/* lease_write.c: the one field of the lease page that changes. Runs in: heartbeat. */
#include <errno.h>
#include <stddef.h>
#include <unistd.h>

#include "common/lease.h"

int
lease_write_ok(int fd, uint64_t last_ok)
{
	ssize_t n = pwrite(fd, &last_ok, sizeof last_ok, offsetof(struct lease_page, last_ok));

	if (n < 0)
		return -errno;
	return n == (ssize_t)sizeof last_ok ? 0 : -EIO;
}
