// SPDX-License-Identifier: Apache-2.0
/* exe_terminal.c: the terminal of a session, or of the first process of a container. The child
 * opens it, and the executor receives it. Runs in: both, after their drops; the child of a
 * container as root of that. */
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

/* The slave end is opened through the master's descriptor, because its name could lead anywhere. */
static int
make_terminal(int sock, int n_sent)
{
	cleanup_close int above = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	int unlocked = 0, end, r;

	if (above < 0 || ioctl(above, TIOCSPTLCK, &unlocked) < 0)
		return -errno;
	end = ioctl(above, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (end < 0)
		return -errno;
	r = fd_send_msg(sock, "", 1, (const int[]){ above, end }, (size_t)n_sent, MSG_DONTWAIT);
	if (r < 0)
		(void)close(end);
	return r < 0 ? r : end;
}

/* The executor will read the master for as long as the task runs, so nobody else may have it then:
 * one who does could have a read of the executor wait. So the child makes it, sends it and closes
 * it before it reads anything that others than drover wrote. The executor keeps the slave end as
 * well, so that the program may close all of its own and open the terminal again. */
int
exe_terminal_make(struct exe *x)
{
	int end = make_terminal(x->ends[0], 2);

	if (end < 0)
		return end;
	close_p(&x->ends[0]);
	for (size_t i = 0; i < ELEMENTSOF(x->ends); i++)
		x->ends[i] = end;
	return 0;
}

/* The task may have a volume at /dev, so the child of a session opens the terminal as the task's
 * user, and sends the master end over its stdin. */
static int
open_terminal(void)
{
	cleanup_close int end = make_terminal(STDIN_FILENO, 1);

	for (int i = 0; end >= 0 && i <= STDERR_FILENO; i++)
		if (dup2(end, i) < 0)
			return -errno;
	return end < 0 ? end : 0;
}

int
exe_terminal_open(struct exe *x)
{
	int r = x->session ? open_terminal() : 0;

	return r == 0 && ioctl(STDIN_FILENO, TIOCSCTTY, 0) < 0 ? -errno : r;
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
	size_t n = 0, wanted = x->session ? 1 : 2;
	char byte;
	ssize_t r;

	if (!x->tty)
		return 0;
	x->above[0] = -1;
	r = fd_recv_msg(sock, &byte, sizeof byte, x->above, wanted, &n, MSG_DONTWAIT);
	(void)close(sock);
	if (r < 0 || n != wanted || !is_terminal(x->above[0]))
		return exe_failed(x, EXE_STEP_TERMINAL, r < 0 ? (int)-r : EPROTO, 0);
	if (!x->session)
		x->logs[0].pipe = steal_fd(&x->above[0]);
	return 0;
}
