// SPDX-License-Identifier: Apache-2.0
/* lau_child.c: makes one process: its arguments, environment and descriptors. Runs in: launcher,
 * and its child before exec. */
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/crash.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/privs.h"
#include "common/proc.h"
#include "launcher/launcher.h"
#include "proto/container_ids.h"

#define ARGS_MAX 24
#define ENV_MAX  8

enum special { SPECIAL_NONE, SPECIAL_LISTEN, SPECIAL_LEASE, SPECIAL_EXECUTOR, SPECIAL_HEALTH };

/* The user and the descriptors of each process; enum proc_fd has their numbers. With user -1 the
 * process starts as root and drops by itself. */
static const struct row {
	const char *binary;
	int user;
	bool policy, lock, notify;
	enum special special;
} rows[LAU_BINARIES] = {
	[IPC_SUPERVISOR] = { "drover-supervisor", LAU_USER_DROVER, false, true, true,
	    SPECIAL_LISTEN },
	[IPC_EXEC_HELPER] = { "drover-exec-helper", -1, true, true, false, SPECIAL_EXECUTOR },
	[IPC_MOUNT_HELPER] = { "drover-mount-helper", -1, true, true, false, SPECIAL_NONE },
	[IPC_CSI_HELPER] = { "drover-csi-helper", LAU_USER_CSI, false, false, false, SPECIAL_NONE },
	[IPC_HEARTBEAT] = { "drover-heartbeat", LAU_USER_HEARTBEAT, false, true, false,
	    SPECIAL_LEASE },
	[IPC_CHECK_HELPER] = { "drover-check-helper", LAU_USER_CHECK, false, false, false,
	    SPECIAL_NONE },
	[IPC_FILE_HELPER] = { "drover-file-helper", LAU_USER_FILE, false, true, false,
	    SPECIAL_NONE },
	[IPC_JOB_PARSER] = { "drover-job-parser", LAU_USER_PARSER, false, false, false,
	    SPECIAL_NONE },
	[IPC_FETCHER] = { "drover-fetcher", LAU_USER_FETCHER, false, false, false, SPECIAL_NONE },
	[IPC_TEMPLATE_RENDERER] = { "drover-template-renderer", LAU_USER_RENDERER, false, false,
	    false, SPECIAL_NONE },
	[IPC_LISTENER] = { "drover-listener", LAU_USER_LISTENER, false, false, false,
	    SPECIAL_HEALTH },
	[IPC_IMAGE_FETCHER] = { "drover-image-fetcher", LAU_USER_IMAGES, false, false, false,
	    SPECIAL_NONE },
	[IPC_IMAGE_UNPACKER] = { "drover-image-unpacker", -1, false, false, false, SPECIAL_NONE },
	[IPC_NETWORK_HELPER] = { "drover-network-helper", -1, true, true, false, SPECIAL_NONE },
	[LAU_BIN_EXECUTOR] = { "drover-executor", -1, false, false, false, SPECIAL_NONE },
};

/* Reopens stderr if it is a file, a pipe or a terminal, so that flags such as O_NONBLOCK that
 * another process sets do not change this one's. It is reopened with O_APPEND, because each process
 * then has its own offset. A socket (the journal's) stays shared. */
void
lau_stderr_own(void)
{
	cleanup_close int fd = fd_reopen(STDERR_FILENO, O_WRONLY | O_APPEND | O_NONBLOCK);

	if (fd < 0 || fd_set_nonblock(fd, false) < 0)
		return;
	(void)dup2(fd, STDERR_FILENO);
}

const char *
lau_child_name(enum ipc_peer who)
{
	return rows[who].binary + sizeof "drover-" - 1;
}

/* Opens all binaries at once, so that an upgrade in place never mixes two builds. They are in the
 * launcher's own directory. */
int
lau_binaries_open(struct launcher *l, struct err *e)
{
	char path[CONFIG_PATH_SIZE];
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
	cleanup_close int dir = -1;

	if (n < 0)
		return err_set(e, -errno, "read /proc/self/exe");
	path[n] = '\0';
	*strrchr(path, '/') = '\0';
	dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < LAU_BINARIES; i++) {
		l->binaries[i] = openat(dir, rows[i].binary, O_PATH | O_CLOEXEC);
		if (l->binaries[i] < 0)
			return err_set(e, -errno, "open %s/%s", path, rows[i].binary);
	}
	return 0;
}

int
lau_log_open(struct launcher *l, struct err *e)
{
	char path[32];
	int pair[2];

	l->log_level_write_fd = memfd_create("log-level", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fchmod(l->log_level_write_fd, 0600) < 0 ||
	    ftruncate(l->log_level_write_fd, sizeof(int32_t)) < 0 ||
	    fcntl(l->log_level_write_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) <
		0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return err_set(e, -errno, "make the socket pair of the log watcher");
	(void)shutdown(pair[1], SHUT_RD); /* one direction only */
	(void)snprintf(path, sizeof path, "/proc/self/fd/%d", l->log_level_write_fd);
	l->log_level_fd = open(path, O_RDONLY | O_CLOEXEC);
	l->log_out_fd = pair[0];
	l->log_fd = pair[1];
	log_watch(l->log_fd, l->log_level_fd);
	return 0;
}

/* Words of an argv or environment, NULL-terminated. Built in the child before exec, so they are
 * never freed. */
struct words {
	char *v[ARGS_MAX + 1];
	size_t n;
};

static void __attribute__((format(printf, 2, 3))) add_word(struct words *w, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (w->n == ARGS_MAX || vasprintf(&w->v[w->n], fmt, ap) < 0)
		_exit(127);
	va_end(ap);
	w->v[++w->n] = NULL;
}

static void
add_args(struct words *w, const struct launcher *l, enum ipc_peer who)
{
	const struct lau_users *u = &l->users;

	add_word(w, "%s", rows[who].binary);
	add_word(w, "--instance=%s", l->instance);
	add_word(w, "--data-dir=%s", l->data);
	add_word(w, "--runtime-dir=%s", l->rt);
	add_word(w, "--cgroup=%s", l->cgroup);
	add_word(w, "--log-level=%s", l->config.config->log_level);
	add_word(w, "--generation=%u", l->children[who].generation);
	if (rows[who].user >= 0) {
		add_word(w, "--uid=%u", u->uid[rows[who].user]);
		add_word(w, "--gid=%u", u->gid[rows[who].user]);
	}
	add_word(w, "--drover-gid=%u", u->gid[LAU_USER_DROVER]);
	add_word(w, "--executor-uid=%u", u->uid[LAU_USER_EXECUTOR]);
	add_word(w, "--executor-gid=%u", u->gid[LAU_USER_EXECUTOR]);
	for (int i = 0; i < LAU_USERS; i++)
		add_word(w, "--agent-uid-%d=%u", i, u->uid[i]);
	if (l->dev)
		add_word(w, "--dev");
}

static void
add_variable(struct words *w, const char *name)
{
	const char *value = getenv(name);

	if (value)
		add_word(w, "%s=%s", name, value);
}

static const char *const proxies[] = { "HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy",
	"NO_PROXY", "no_proxy" };

/* client { artifact { set_environment_variables } }: proxies and credentials, for example. */
static void
add_artifact_variables(struct words *w, const struct launcher *l)
{
	char names[sizeof l->config.config->artifact.variables], *rest = names, *name;

	(void)strcpy(names, l->config.config->artifact.variables);
	while ((name = strsep(&rest, " ")))
		if (*name)
			add_variable(w, name);
}

/* Only the supervisor starts with SIGTERM and SIGINT blocked, so that a signal that comes before
 * its handler is installed is not lost (proc.h). SIGUSR1 and SIGUSR2 are blocked in all processes:
 * systemctl kill sends them to each. */
static void
set_signals(bool block_ends)
{
	sigset_t mask;

	for (int signo = 1; signo <= SIGRTMAX; signo++)
		(void)signal(signo, SIG_DFL);
	(void)sigemptyset(&mask);
	(void)sigaddset(&mask, SIGUSR1);
	(void)sigaddset(&mask, SIGUSR2);
	if (block_ends) {
		(void)sigaddset(&mask, SIGTERM);
		(void)sigaddset(&mask, SIGINT);
	}
	(void)sigprocmask(SIG_SETMASK, &mask, NULL);
}

static void __attribute__((noreturn))
become(const struct launcher *l, pid_t launcher, enum ipc_peer who, int link, const int *ends)
{
	const struct row *row = &rows[who];
	const int specials[] = {
		[SPECIAL_NONE] = l->null_fd,
		[SPECIAL_LISTEN] = l->listen_fd,
		[SPECIAL_LEASE] = l->lease_fd,
		[SPECIAL_EXECUTOR] = l->binaries[LAU_BIN_EXECUTOR],
		[SPECIAL_HEALTH] =
		    l->tcp_fds[LISTEN_HEALTH] >= 0 ? l->tcp_fds[LISTEN_HEALTH] : l->null_fd,
	};
	uint32_t files = l->config.config->files_of[who];
	struct words args = { 0 }, env = { 0 };
	struct err e = { 0 };
	int fds[FD_SUP_LAST + 2 - FD_LINK], binary, n = 0;

	fds[n++] = link;
	fds[n++] = row->policy ? l->config.policy_fd : l->config.config_fd;
	fds[n++] = row->lock ? l->lock_fd : l->null_fd;
	fds[n++] = who == IPC_SUPERVISOR ? l->null_fd : ends[0];
	fds[n++] = specials[row->special];
	fds[n++] = who == IPC_EXEC_HELPER                               ? l->binaries[who]
		   : who == IPC_LISTENER && l->tcp_fds[LISTEN_API] >= 0 ? l->tcp_fds[LISTEN_API]
									: l->null_fd;
	if (who == IPC_EXEC_HELPER || who == IPC_MOUNT_HELPER || who == IPC_FILE_HELPER)
		fds[n++] = l->data_fd;
	if (who == IPC_IMAGE_FETCHER || who == IPC_IMAGE_UNPACKER)
		fds[n++] = fd_open_beneath(l->data_fd,
		    who == IPC_IMAGE_FETCHER ? "images/blobs" : "images", O_RDONLY | O_DIRECTORY,
		    0);
	while (n < FD_LOG - FD_LINK)
		fds[n++] = l->null_fd;
	fds[n++] = l->log_fd;
	fds[n++] = who == IPC_SUPERVISOR ? l->log_level_write_fd : l->log_level_fd;
	for (int i = 0; files && i < CONFIG_FILES; i++) /* from FD_FILES on */
		fds[n++] = files >> i & 1 ? l->config.file_fds[i] : l->null_fd;
	if (who == IPC_SUPERVISOR)
		fds[n++] = l->log_out_fd;
	for (int i = 0; who == IPC_SUPERVISOR && i < LAU_CHILDREN - 1; i++)
		fds[n++] = ends[i];
	fds[n++] = l->binaries[who];
	add_args(&args, l, who);
	add_variable(&env, "JOURNAL_STREAM");
	if (crash_env())
		add_word(&env, "%s", crash_env());
	if (who == IPC_FETCHER)
		add_artifact_variables(&env, l);
	for (size_t i = 0; who == IPC_IMAGE_FETCHER && i < ELEMENTSOF(proxies); i++)
		add_variable(&env, proxies[i]);
	if (row->notify) {
		add_variable(&env, "NOTIFY_SOCKET");
		add_variable(&env, "WATCHDOG_USEC");
	}
	/* The child dies with the launcher, even if it never reaches its drop. A change of uid
	 * clears this setting, so a process that drops repeats it. */
	privs_die_with_parent(launcher);
	(void)setsid();
	(void)umask(022);
	set_signals(who == IPC_SUPERVISOR);
	lau_stderr_own();
	if (dup2(l->null_fd, STDIN_FILENO) < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0 ||
	    fd_pack(fds, (size_t)n, FD_LINK) < 0)
		_exit(127);
	binary = FD_LINK + n - 1;
	(void)fd_set_cloexec(binary, true);
	if (who == IPC_IMAGE_UNPACKER &&
	    privs_new_user_namespace(CONTAINER_ID_FIRST, CONTAINER_IDS, &e) < 0) {
		log_error("start %s: %s", row->binary, e.msg);
		_exit(127);
	}
	(void)execveat(binary, "", args.v, env.v, AT_EMPTY_PATH);
	log_error("start %s: %s", row->binary, strerrordesc_np(errno));
	_exit(127);
}

int
lau_child_start(struct launcher *l, enum ipc_peer who, const int *ends, struct err *e)
{
	struct lau_child *c = &l->children[who];
	int pair[2];
	pid_t launcher = getpid(), pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_set(e, -errno, "make the link of %s", lau_child_name(who));
	/* The link has one direction only: the launcher never reads from a process. */
	(void)shutdown(pair[0], SHUT_RD);
	pid = fork();
	if (pid == 0)
		become(l, launcher, who, pair[1], ends);
	(void)close(pair[1]);
	if (pid < 0) {
		int r = err_set(e, -errno, "fork for %s", lau_child_name(who));

		(void)close(pair[0]);
		return r;
	}
	c->pid = pid;
	c->link = pair[0];
	c->started_ms = clock_ms();
	return 0;
}
