// SPDX-License-Identifier: Apache-2.0
/* fd_nonblock.c: makes a descriptor non-blocking. Runs in: supervisor, csi-helper. */
#include <errno.h>
#include <fcntl.h>

#include "common/fd.h"

int
fd_set_nonblock(int fd, bool on)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK) < 0)
		return -errno;
	return 0;
}
