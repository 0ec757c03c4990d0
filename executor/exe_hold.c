// SPDX-License-Identifier: Apache-2.0
/*
 * exe_hold.c: `drover-executor --hold`, the process that keeps drover-tasks.service there while no
 * task runs. On SIGTERM, which is the machine's shutdown or an operator's stop of the unit, it asks
 * every executor to stop its task and waits until all have ended. Runs in: executor's binary, as
 * root without capabilities.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/privs.h"
#include "common/sd.h"
#include "executor/exe.h"

#define SOCKETS "/run/drover/x"

/*
 * On v2 a cgroup whose children have controllers holds no process itself (cgroups(7)), so this one
 * goes into a leaf. On v1 the unit's directory may keep it.
 */
static void
enter_leaf(void)
{
	static const char *const mounts[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };
	cleanup_free char *text = NULL;
	char path[PATH_MAX], *own = NULL;

	if (fd_read_file(AT_FDCWD, "/proc/self/cgroup", 65536, &text) > 0)
		own = strstr(text, "0::/");
	if (!own)
		return;
	own += sizeof "0::" - 1;
	own[strcspn(own, "\n")] = '\0';
	for (size_t i = 0; i < ELEMENTSOF(mounts); i++) {
		if ((size_t)snprintf(path, sizeof path, "%s%s/hold", mounts[i], own) >=
		    sizeof path - 16)
			return;
		if (mkdir(path, 0755) < 0 && errno != EEXIST)
			continue;
		(void)strcat(path, "/cgroup.procs");
		if (fd_write_file(AT_FDCWD, path, "0") == 0)
			return;
	}
}

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
static void
stop_all(void)
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

int
exe_hold(void)
{
	const struct privs root_only = { .lock_securebits = true, .no_new_privs = true };
	struct err e = { 0 };
	sigset_t mask;
	int signo;

	log_init("tasks", LOG_LEVEL_INFO);
	(void)sigemptyset(&mask);
	(void)sigaddset(&mask, SIGTERM);
	(void)sigprocmask(SIG_BLOCK, &mask, NULL);
	enter_leaf();
	if (privs_drop(&root_only, &e) < 0) {
		log_error("%s", e.msg);
		return 1;
	}
	(void)notify_send("READY=1");
	while (sigwait(&mask, &signo) != 0)
		;
	(void)notify_send("STOPPING=1");
	stop_all();
	return 0;
}
