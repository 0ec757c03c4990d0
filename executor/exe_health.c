// SPDX-License-Identifier: Apache-2.0
/*
 * exe_health.c: what the executor's binary does with arguments. It is the program of the task that
 *a probe of this node starts (supervisor/health/): it does what tasks do, and prints the results.
 *Runs in: a task, as the task's user; it is the executor's binary, because that is there in every
 *root.
 *
 *	drover-executor health-check DIRECTORY READ_ONLY [NAME=VOLUME]...
 *
 * Prints "ok" or a sentence, then a line for each volume, then "done", and waits for SIGTERM.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "executor/exe_start.h"

#define LIFE_SECONDS   120  /* if nobody stops it */
#define VOLUME_WAIT_MS 4000 /* for the answer of all volumes */
#define POLL_MS        5
#define VOLUMES_MAX    32

/* Writes a block, syncs it and reads it back. Returns NULL, or what failed, with errno. */
static const char *
write_file(int dir)
{
	char out[4096], in[sizeof out];
	cleanup_close int fd =
	    openat(dir, "health-check", O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return "create a file";
	for (size_t i = 0; i < sizeof out; i++)
		out[i] = (char)(i * 7 + i / 256);
	if (write(fd, out, sizeof out) != (ssize_t)sizeof out)
		return "write a file";
	if (fsync(fd) < 0)
		return "sync a file";
	errno = EIO;
	if (pread(fd, in, sizeof in, 0) != (ssize_t)sizeof in || memcmp(in, out, sizeof in) != 0)
		return "read what was written";
	return unlinkat(dir, "health-check", 0) < 0 ? "remove a file" : NULL;
}

/* Returns whether nothing can be written there. */
static bool
is_read_only(const char *dir)
{
	cleanup_close int at = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	cleanup_close int fd =
	    at < 0 ? -1 : openat(at, "health-check", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	return at >= 0 && fd < 0 && errno == EROFS;
}

static bool
can_fork(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	return pid > 0 && waitpid(pid, NULL, 0) == pid;
}

/* Returns whether the task could do what tasks do. */
static bool
check_task(const char *dir, const char *read_only)
{
	cleanup_close int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const char *failed = fd < 0 ? "open it" : write_file(fd);
	bool ok = false;

	if (failed)
		printf("in the task's directory %s: %s: %s\n", dir, failed, strerror(errno));
	else if (geteuid() == 0)
		printf("the task runs as root\n");
	else if (*read_only && !is_read_only(read_only))
		printf("%s is mounted read-only, but a file could be created there\n", read_only);
	else if (!can_fork())
		printf("the task cannot start a process: %s\n", strerror(errno));
	else
		ok = printf("ok\n") > 0;
	(void)fflush(stdout);
	return ok;
}

/* The child's exit code is the errno. It may never end, if the volume's file system hangs. */
static pid_t
begin_volume(const char *path)
{
	pid_t pid = fork();
	struct statvfs fs;

	if (pid == 0)
		_exit(statvfs(path, &fs) < 0 ? errno & 0x7f : 0);
	return pid;
}

static void
print_volume(const char *name, pid_t pid, int status)
{
	int len = (int)strcspn(name, "=");

	if (pid < 0)
		printf("volume %.*s: cannot be checked\n", len, name);
	else if (!WIFEXITED(status))
		printf("volume %.*s: hung\n", len, name);
	else if (WEXITSTATUS(status) != 0)
		printf("volume %.*s: %s\n", len, name, strerror(WEXITSTATUS(status)));
	else
		printf("volume %.*s: ok\n", len, name);
}

/* All are checked at the same time. */
static void
check_volumes(char *const *volumes, int n)
{
	const struct timespec pause = { .tv_nsec = POLL_MS * 1000000L };
	int left = 0, status[VOLUMES_MAX];
	pid_t pids[VOLUMES_MAX];

	for (int i = 0; i < n; i++) {
		pids[i] = begin_volume(volumes[i] + strcspn(volumes[i], "=") + 1);
		status[i] = SIGKILL; /* as if a signal had ended it: it has not ended */
		left += pids[i] > 0;
	}
	for (int ms = 0; left > 0 && ms < VOLUME_WAIT_MS; ms += POLL_MS) {
		for (int i = 0; i < n; i++)
			left -= pids[i] > 0 && !WIFEXITED(status[i]) &&
				waitpid(pids[i], &status[i], WNOHANG) == pids[i];
		if (left > 0)
			(void)nanosleep(&pause, NULL);
	}
	for (int i = 0; i < n; i++)
		print_volume(volumes[i], pids[i], status[i]);
}

static int
check_health(int n, char **args)
{
	sigset_t stop;
	int signo;

	if (n < 2 || n - 2 > VOLUMES_MAX)
		return 2;
	(void)sigemptyset(&stop);
	(void)sigaddset(&stop, SIGTERM);
	(void)sigprocmask(SIG_BLOCK, &stop, NULL);
	(void)alarm(LIFE_SECONDS);
	if (check_task(args[0], args[1]))
		check_volumes(args + 2, n - 2);
	printf("done\n");
	if (fflush(stdout) != 0)
		return 1;
	return sigwait(&stop, &signo) == 0 ? 0 : 1;
}

int
exe_health_main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "--describe") == 0) {
		exe_sandbox_describe();
		return 0;
	}
	return argc > 2 && strcmp(argv[1], "health-check") == 0 ? check_health(argc - 2, argv + 2)
								: 2;
}
