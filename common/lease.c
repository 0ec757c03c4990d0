// SPDX-License-Identifier: Apache-2.0
/* lease.c: reads and maps the lease page. Runs in: launcher, heartbeat, executor, supervisor. */
#include "common/lease.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

int
lease_read(int fd, struct lease_page *ret)
{
	char boot_id[BOOT_ID_SIZE];
	struct lease_page page;
	ssize_t n;

	n = pread(fd, &page, sizeof page, 0);
	if (n < 0)
		return -errno;
	if ((size_t)n < sizeof page)
		return -EIO;
	if (page.magic != LEASE_MAGIC)
		return -EBADMSG;
	if (boot_id_read(boot_id) == 0 && memcmp(boot_id, page.boot_id, BOOT_ID_SIZE) != 0)
		return -EBADMSG;
	*ret = page;
	return 0;
}
