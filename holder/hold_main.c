// SPDX-License-Identifier: Apache-2.0
/* hold_main.c: the process that keeps drover-tasks.service active while no task runs. On SIGTERM,
 * which means a shutdown of the machine or a stop of the unit, it stops all tasks of the agent
 * whose runtime directory is its argument (default: /run/drover). Runs in: holder, as root until it
 * is in its cgroup. */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/privs.h"
#include "common/sd.h"
#include "holder/hold.h"
#include "holder/hold_filter.h"

/* On v2 a cgroup whose children have controllers must hold no process (cgroups(7)), so the holder
 * moves into a leaf. On v1 it may stay in the unit's directory. */
static void
enter_leaf(void)
{
	static const char *const mounts[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };
	cleanup_free char *text = NULL;
	char path[4096], *own = NULL;

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

/* The ids of user drover are looked up at the start. */
static struct privs holder = { .no_new_privs = true, .filter = &hold_prog };

/* Looks up user drover, which may connect to executors. Reads /etc/passwd directly, because
 * getpwnam(3) would load NSS modules into a root process. */
static int
become_drover(struct err *e)
{
	cleanup_file FILE *f = fopen("/etc/passwd", "re");
	struct passwd *pw = NULL;

	while (f && (pw = fgetpwent(f)) && strcmp(pw->pw_name, "drover") != 0)
		;
	if (!pw || pw->pw_uid == 0)
		return err_say(e, -ENOENT, "user drover is not in /etc/passwd");
	holder.uid = pw->pw_uid;
	holder.gid = pw->pw_gid;
	return privs_drop(&holder, e);
}

int
main(int argc, char **argv)
{
	struct err e = { 0 };
	sigset_t mask;
	int signo;

	if (argc == 2 && strcmp(argv[1], "--describe") == 0) {
		privs_describe(&holder, "holder", "drover", false);
		return 0;
	}
	log_init("tasks", LOG_LEVEL_INFO);
	(void)sigemptyset(&mask);
	(void)sigaddset(&mask, SIGTERM);
	(void)sigprocmask(SIG_BLOCK, &mask, NULL);
	enter_leaf();
	if (become_drover(&e) < 0) {
		log_error("%s", e.msg);
		return 1;
	}
	(void)notify_send("READY=1");
	while (sigwait(&mask, &signo) != 0)
		;
	(void)notify_send("STOPPING=1");
	hold_stop_all(argc == 2 ? argv[1] : "/run/drover");
	return 0;
}
