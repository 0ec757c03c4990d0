// SPDX-License-Identifier: Apache-2.0
/* exe_terminal.c: the terminal of a session: opened by the session's child, as the task's user,
 * received by the executor. Runs in: both, dropped. */
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "executor/exe.h"

#define PTMX_MAJOR 5 /* /dev/ptmx: Documentation/admin-guide/devices.txt of the kernel */
#define PTMX_MINOR 2

/*
 * /dev is the task's, who may have a volume there: the child opens the terminal as the task's user
 * and sends its upper end over its stdin. The lower end by descriptor, because a name could be
 * anything by now.
 */
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

/* The task shapes its /dev: what the child found there may be a file of a file system that never
 * answers, and the supervisor will read it. */
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
