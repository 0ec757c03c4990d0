// SPDX-License-Identifier: Apache-2.0
/* lau_main.c: the launcher: its options, the order of the start, the end. Runs in: launcher, as
 * root with all capabilities and without a filter, because every task would inherit a filter. It
 * reads no message from any process. SIGTERM and SIGINT end the agent's processes and leave the
 * tasks running; with -dev, and as drain_on_shutdown says, they first drain the node. With -dev
 * everything outside the data directory is removed. A second signal ends the wait for the drain.
 * SIGHUP reloads the configuration. SIGUSR1 has the node land, SIGUSR2 retire (departure.h). Exit
 * codes: 0 ended by a signal, or landed or retired; 1 could not start; 2 bad arguments; 78 another
 * start would end the same way (proc.h). */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/crash.h"
#include "common/log.h"
#include "common/proc.h"
#include "launcher/launcher.h"

static int
parse_options(struct launcher *l, int argc, char **argv)
{
	static const struct option options[] = {
		{ "config", required_argument, NULL, 'c' },
		{ "data-dir", required_argument, NULL, 'd' },
		{ "dev", no_argument, NULL, 'D' },
		{ "socket", required_argument, NULL, 's' },
		{ 0 },
	};
	int c;

	while ((c = getopt_long_only(argc, argv, "", options, NULL)) != -1) {
		if (c == 'c' && l->n_configs < LAU_CONFIGS_MAX)
			l->configs[l->n_configs++] = optarg;
		else if (c == 'd')
			l->data_option = optarg;
		else if (c == 'D')
			l->dev = true;
		else if (c == 's')
			l->socket_option = optarg;
		else
			return -1;
	}
	return optind == argc ? 0 : -1;
}

/* Descriptors 0 to 2 must be open; otherwise the first opened files would become the log. */
static int
open_null(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	while (fd >= 0 && fd <= STDERR_FILENO);
	return fd;
}

static int
block_signals(void)
{
	sigset_t mask;

	(void)sigemptyset(&mask);
	(void)sigaddset(&mask, SIGCHLD);
	(void)sigaddset(&mask, SIGHUP);
	(void)sigaddset(&mask, SIGINT);
	(void)sigaddset(&mask, SIGTERM);
	(void)sigaddset(&mask, SIGUSR1);
	(void)sigaddset(&mask, SIGUSR2);
	(void)sigprocmask(SIG_BLOCK, &mask, NULL);
	(void)signal(SIGCHLD, SIG_DFL); /* if SIGCHLD were ignored, exit statuses would be lost */
	(void)signal(SIGPIPE, SIG_IGN); /* the reader of the log may exit before the agent */
	return signalfd(-1, &mask, SFD_NONBLOCK | SFD_CLOEXEC);
}

static int
prepare(struct launcher *l, struct err *e)
{
	int level, r;

	if (geteuid() != 0)
		return err_say(e, -EPERM,
		    "the agent must be started as root; all but its smallest processes then drop "
		    "root");
	l->null_fd = open_null();
	l->signal_fd = block_signals();
	if (l->null_fd < 0 || l->signal_fd < 0)
		return err_set(e, -errno, "open /dev/null and a signalfd");
	(void)umask(022);
	(void)unsetenv(
	    "WATCHDOG_PID"); /* the supervisor sends the watchdog messages, not the launcher */
	/* Executors whose exec-helper has died become children of this process, which reaps them. A
	 * core dump would have its environment, which may have passwords for the fetcher. */
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return err_set(e, -errno, "become the subreaper");
	r = lau_config_read(l, &l->config, e);
	if (r < 0)
		return r;
	level = log_level_parse(l->config.config->log_level);
	if (level > 0)
		log_init("launcher", (enum log_level)level);
	if ((r = lau_log_open(l, e)) < 0 || (r = lau_binaries_open(l, e)) < 0 ||
	    (r = lau_data_open(l, e)) < 0 || (r = lau_data_make(l, e)) < 0 ||
	    (r = lau_runtime_make(l, e)) < 0 || (r = lau_listen(l, l->config.config, e)) < 0)
		return r;
	r = lau_alloc_mount(l, e);
	CRASH_POINT(LAU_AFTER_PLACES);
	return r;
}

/* The exit code for a failure before the first start; a later try may succeed. */
static bool
may_pass(int r)
{
	switch (-r) {
	case EADDRINUSE:
	case EAGAIN:
	case EBUSY:
	case EDQUOT:
	case EIO:
	case EMFILE:
	case ENFILE:
	case ENOMEM:
	case ENOSPC:
	case ETIMEDOUT:
		return true;
	default:
		return false;
	}
}

int
main(int argc, char **argv)
{
	static struct launcher l = { .null_fd = -1,
		.data_fd = -1,
		.lock_fd = -1,
		.rt_fd = -1,
		.lease_fd = -1,
		.listen_fd = -1,
		.signal_fd = -1 };
	struct err e = { 0 };
	int code, r;

	crash_init();
	lau_stderr_own();
	(void)unsetenv("TZ"); /* as in the other processes, which do not get it */
	log_init("launcher", LOG_LEVEL_INFO);
	for (int i = 0; i < LISTEN_USES; i++)
		l.tcp_fds[i] = -1;
	for (int i = 0; i < LAU_CHILDREN; i++)
		l.children[i].link = l.children[i].kept = -1;
	if (parse_options(&l, argc, argv) < 0) {
		(void)fprintf(stderr, "Usage: drover-launcher [-config PATH]... [-dev] [-data-dir "
				      "DIR] [-socket PATH]\n");
		return 2;
	}
	if ((r = prepare(&l, &e)) < 0) {
		log_error("%s", e.msg);
		code = may_pass(r) ? 1 : PROC_EXIT_GIVE_UP;
	} else {
		code = lau_set_run(&l);
	}
	/* After a failure, tasks of an earlier start may still run, so nothing is removed. */
	if (code == 0 || l.data_is_temporary || lau_runtime_is_idle(&l)) {
		lau_runtime_undo(&l);
		lau_data_undo(&l);
	}
	return code;
}
