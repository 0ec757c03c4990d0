// SPDX-License-Identifier: Apache-2.0
/* exe_terminal.c: the terminal of a session. The session's child opens it as the task's user, and
 * the executor receives it. Runs in: both, after their drops. */
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "executor/exe_start.h"

#define PTMX_MAJOR                                                                                 \
	5 /* device number of /dev/ptmx: the kernel's Documentation/admin-guide/devices.txt */
#define PTMX_MINOR 2

/* The task may have a volume at /dev, so the child opens the terminal as the task's user and sends
 * the master end over its stdin. The slave end is opened through the master's descriptor, because
 * its name could lead anywhere. */
int
exe_terminal_open(struct exe *x)
{
	cleanup_close int above = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	cleanup_close int end = -1;
	int unlocked = 0, r;

	if (above < 0 || ioctl(above, TIOCSPTLCK, &unlocked) < 0)
		return -errno;
	end = ioctl(above, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (end < 0)
		return -errno;
	r = fd_send_msg(STDIN_FILENO, "", 1, &above, 1, MSG_DONTWAIT);
	if (r < 0)
		return r;
	for (int i = 0; i < (int)ELEMENTSOF(x->ends); i++)
		if (dup2(end, i) < 0)
			return -errno;
	return ioctl(STDIN_FILENO, TIOCSCTTY, 0) < 0 ? -errno : 0;
}

/* The task controls its /dev: the child's descriptor could be a file on a file system that hangs,
 * and the supervisor will read it, so it must be a pty. */
static bool
is_terminal(int fd)
{
	struct statx st;

	return statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &st) == 0 &&
	       S_ISCHR(st.stx_mode) && st.stx_rdev_major == PTMX_MAJOR &&
	       st.stx_rdev_minor == PTMX_MINOR;
}

int
exe_terminal_take(struct exe *x)
{
	int sock = x->above[0];
	size_t n = 0;
	char byte;
	ssize_t r;

	if (!x->tty)
		return 0;
	x->above[0] = -1;
	r = fd_recv_msg(sock, &byte, sizeof byte, &x->above[0], 1, &n, MSG_DONTWAIT);
	(void)close(sock);
	if (r < 0 || n != 1)
		return exe_failed(x, EXE_STEP_TERMINAL, r < 0 ? (int)-r : EPROTO, 0);
	return is_terminal(x->above[0]) ? 0 : exe_failed(x, EXE_STEP_TERMINAL, EPROTO, 0);
}
