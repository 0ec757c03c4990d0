// SPDX-License-Identifier: Apache-2.0
/* sd.c: implements sd_notify and LISTEN_FDS. Runs in: launcher. */
#include "common/sd.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fd.h"

#define LISTEN_FDS_START 3

int
notify_send(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	cleanup_close int fd = -1;
	socklen_t len;

	if (!path || path[0] == '\0')
		return 0;
	if (strlen(path) >= sizeof to.sun_path)
		return -ENAMETOOLONG;
	memcpy(to.sun_path, path, strlen(path));
	len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
	if (path[0] == '@') /* the abstract namespace */
		to.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || sendto(fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT,
			  (struct sockaddr *)&to, len) < 0)
		return -errno;
	return 1;
}

/* Returns the address family of a listening stream socket, or -1 if it is none. */
static int
listening_family(int fd)
{
	int family = -1, type = 0, listening = 0;
	socklen_t size = sizeof(int);

	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &size) == 0 &&
		       getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 &&
		       type == SOCK_STREAM &&
		       getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) == 0 &&
		       listening
		   ? family
		   : -1;
}

int
listen_fds_take(int *ret_unix, int ret_tcp[LISTEN_FDS_TCP], struct err *e)
{
	const char *pid = getenv("LISTEN_PID"), *fds = getenv("LISTEN_FDS");
	long n = pid && fds && strtol(pid, NULL, 10) == (long)getpid() ? strtol(fds, NULL, 10) : 0;
	int n_tcp = 0;

	(void)unsetenv("LISTEN_PID");
	(void)unsetenv("LISTEN_FDS");
	(void)unsetenv("LISTEN_FDNAMES");
	*ret_unix = -1;
	for (int i = 0; i < LISTEN_FDS_TCP; i++)
		ret_tcp[i] = -1;
	for (int fd = LISTEN_FDS_START; fd - LISTEN_FDS_START < n; fd++) {
		int family = listening_family(fd);

		if (family == AF_UNIX && *ret_unix < 0)
			*ret_unix = fd;
		else if ((family == AF_INET || family == AF_INET6) && n_tcp < LISTEN_FDS_TCP)
			ret_tcp[n_tcp++] = fd;
		else
			return err_say(e, -EINVAL,
			    "LISTEN_FDS: expected listening stream sockets, one unix socket and "
			    "at most two of TCP, as in drover.socket");
		(void)fd_set_cloexec(fd, true);
	}
	return 0;
}
