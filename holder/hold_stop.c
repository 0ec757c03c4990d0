// SPDX-License-Identifier: Apache-2.0
/* hold_stop.c: asks every executor to stop its task, and waits until all have ended. Runs in:
 * holder, as drover. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/log.h"
#include "holder/hold.h"
#include "proto/executor.h"

#define SOCKETS "/run/drover/x"

/* A connection on which the stop was asked for, -1 if there is no executor any more. */
static int
ask_stop(const char *name)
{
	const struct exe_stop stop = { .head = { EXE_PROTO_VERSION, EXE_STOP, sizeof stop } };
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	cleanup_close int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0 ||
	    (size_t)snprintf(at.sun_path, sizeof at.sun_path, SOCKETS "/%s", name) >=
		sizeof at.sun_path ||
	    connect(fd, (struct sockaddr *)&at, sizeof at) < 0 ||
	    fd_send_msg(fd, &stop, sizeof stop, NULL, 0, 0) < 0)
		return -1;
	return steal_fd(&fd);
}

/* All are asked before the first one is waited for. */
void
hold_stop_all(void)
{
	cleanup_dir DIR *d = opendir(SOCKETS);
	struct dirent *entry;
	size_t n = 0, room = 0;
	int *fds = NULL;
	char buf[EXE_MSG_MAX];

	while (d && (entry = readdir(d))) {
		int *bigger = n < room ? fds : reallocarray(fds, room = 2 * room + 64, sizeof *fds);

		if (!bigger)
			break;
		fds = bigger;
		if (entry->d_name[0] != '.' && (fds[n] = ask_stop(entry->d_name)) >= 0)
			n++;
	}
	log_info("%zu tasks asked to stop", n);
	for (size_t i = 0; i < n; i++) {
		while (recv(fds[i], buf, sizeof buf, 0) > 0)
			;
		(void)close(fds[i]);
	}
	free(fds);
}
