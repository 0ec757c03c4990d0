// SPDX-License-Identifier: Apache-2.0
/* exe_command.c: the task's child after its drop: writes files, opens the terminal, executes the
 * program. Runs in: the task's child, as the task's user. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/crash.h"
#include "common/fd.h"
#include "executor/exe_inside.h"
#include "executor/exe_start.h"
#include "proto/task_spec.h"

#define FD_REPORT (STDERR_FILENO + 1)
#define FD_ALIVE  (FD_REPORT + 1)
#define FD_API    (FD_ALIVE + 1)
#define FD_RESOLV (FD_API + 1)

/* Resets the remaining state of the executor that needs no root. */
static int
take_state(struct exe *x)
{
	const sigset_t none = { 0 };
	struct rlimit nofile;

	if (setsid() < 0)
		return -errno;
	for (int i = 0; i < (int)ELEMENTSOF(x->ends); i++)
		if (x->ends[i] >= 0 && dup2(x->ends[i], i) < 0)
			return -errno;
	if (!exe_inside.own_nofile && getrlimit(RLIMIT_NOFILE, &nofile) == 0 &&
	    nofile.rlim_cur != nofile.rlim_max) {
		nofile.rlim_cur = nofile.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &nofile);
	}
	return sigprocmask(SIG_SETMASK, &none, NULL) < 0 ? -errno : 0;
}

/* Moves a descriptor to its number; what is there is closed. The others must still be above all of
 * these numbers, or at their own. */
static int
keep_fd(int *fd, int to)
{
	if (*fd < 0)
		return close(to) < 0 && errno != EBADF ? -errno : 0;
	if (*fd != to && dup3(*fd, to, O_CLOEXEC) < 0)
		return -errno;
	*fd = to;
	return 0;
}

/* The descriptors of the set-up lead out of the task's root, and /proc/self/fd shows them until the
 * execve. So all but the reporting descriptor, a new socket and a new file are closed before the
 * first path of the task is resolved. dir gets the path of the task's directory without a trailing
 * slash. */
static int
enter_dir(struct exe *x, char dir[PATH_MAX])
{
	bool raw = x->setup->driver == DRIVER_RAW_EXEC;

	if ((raw ? fchdir(x->task_dir) : chdir("/")) < 0 ||
	    keep_fd(&x->child_report, FD_REPORT) < 0 || keep_fd(&x->alive, FD_ALIVE) < 0 ||
	    keep_fd(&x->api, FD_API) < 0 || keep_fd(&x->resolv_conf, FD_RESOLV) < 0 ||
	    close_range(FD_RESOLV + 1, ~0U, 0) < 0 || (raw && !getcwd(dir, PATH_MAX)))
		return -errno;
	return 0;
}

/* Executes the command below dir. Returns the errno; if the file does not exist, the search
 * continues. */
static int
try_command(struct exe *x, const char *dir, size_t dir_len, const char *below)
{
	char path[PATH_MAX];

	if ((size_t)snprintf(
		path, PATH_MAX, "%.*s%s%s", (int)dir_len, dir, below, x->spec.command) >= PATH_MAX)
		return ENAMETOOLONG;
	(void)execve(path, x->spec.argv, x->spec.envp);
	return errno;
}

static const char *
path_of(char *const *envp)
{
	for (; *envp; envp++)
		if (strncmp(*envp, "PATH=", 5) == 0)
			return *envp + 5;
	return EXE_BASE_PATH;
}

/* Searches the task's directory first, then the path as given, then PATH. Returns an errno. */
static int
run_command(struct exe *x, const char *dir)
{
	static const char *const own[] = { "/local/", "/" };
	const char *command = x->spec.command;
	int r, found = ENOENT;

	if (command[0] == '/' || (x->container && strchr(command, '/'))) {
		(void)execve(command, x->spec.argv, x->spec.envp);
		return errno;
	}
	for (size_t i = 0; i < ELEMENTSOF(own) && !x->container; i++)
		if ((r = try_command(x, dir, strlen(dir), own[i])) != ENOENT)
			found = r;
	if (strchr(command, '/'))
		return found;
	for (const char *at = path_of(x->spec.envp); *at;) {
		size_t len = strcspn(at, ":");

		r = at[0] == '/' ? try_command(x, at, len, "/") : ENOENT;
		if (r != ENOENT && r != ENOTDIR)
			found = r;
		at += len + (at[len] == ':');
	}
	return found;
}

int
exe_spec_load(struct exe *x)
{
	int r = fd_memfd_map(EXE_FD_SPEC, SPEC_BYTES_MAX, &x->spec.map, &x->spec.size);

	if (r < 0)
		return r;
	r = exe_spec_read(x->spec.map, x->spec.size, &x->spec);
	return r < 0 || !x->spec.command != (x->setup->session == EXE_SESSION_FILE) ? -EBADMSG : 0;
}

/* All steps before the program. Returns 0, or -errno with the failed step. */
static int
prepare(struct exe *x, char dir[PATH_MAX], enum exe_step *ret_step)
{
	int r;

	*ret_step = EXE_STEP_SPEC;
	if (!x->container && (r = exe_spec_load(x)) < 0)
		return r;
	*ret_step = EXE_STEP_CWD;
	if ((r = take_state(x)) < 0 || (r = enter_dir(x, dir)) < 0)
		return r;
	*ret_step = EXE_STEP_RESOLV_CONF;
	if ((r = exe_resolv_conf_write(x)) < 0)
		return r;
	*ret_step = EXE_STEP_SECRETS;
	if (!exe_inside.files_written && (r = exe_files_write(x)) < 0)
		return r;
	exe_files_listen(x);
	*ret_step = EXE_STEP_TERMINAL;
	if (x->tty && (r = exe_terminal_open(x)) < 0)
		return r;
	*ret_step = EXE_STEP_CWD;
	return x->spec.cwd && chdir(x->spec.cwd) < 0 ? -errno : 0;
}

void
exe_command_run(struct exe *x)
{
	char dir[PATH_MAX] = "";
	enum exe_step step;
	int r = prepare(x, dir, &step);

	if (r < 0) {
		exe_child_report(x, x->record.detail << 8 | step, -r);
		_exit(127);
	}
	CRASH_POINT(EXE_TASK_BEFORE_EXEC);
	exe_child_report(x, EXE_STEP_COMMAND, 0);
	if (x->setup->session == EXE_SESSION_FILE)
		_exit(0);
	exe_spec_words(x);
	if (exe_inside.init && !x->session && (r = exe_init_fork()) < 0)
		exe_child_report(x, 0, -r);
	exe_child_report(x, 0, run_command(x, dir));
	_exit(127);
}
