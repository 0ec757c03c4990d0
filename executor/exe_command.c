// SPDX-License-Identifier: Apache-2.0
/* exe_command.c: the task's child after its drop: the task's files, its terminal, its program. Runs
 * in: the task's child, as the task's user. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/crash.h"
#include "executor/exe.h"

/*
 * The set-up's descriptors lead out of the task's root, and until the execve /proc/self/fd leads to
 * them: they are closed before the first path of the task's is looked up. dir gets the path of the
 * task's own directory without a slash at its end.
 */
static int
enter_dir(struct exe *x, char dir[PATH_MAX])
{
	bool raw = x->setup->driver == DRIVER_RAW_EXEC;

	if ((raw ? fchdir(x->task_dir) : chdir("/")) < 0 ||
	    close_range(STDERR_FILENO + 1, ~0U, 0) < 0 || (raw && !getcwd(dir, PATH_MAX)))
		return -errno;
	return 0;
}

/* Executes the command below dir. Comes back with the errno if there is no such file, which means:
 * look on. */
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

/* The task's own directory first, then as given, then PATH. Returns an errno. */
static int
run_command(struct exe *x, const char *dir)
{
	static const char *const own[] = { "/local/", "/" };
	const char *command = x->spec.command;
	int r, found = ENOENT;

	if (command[0] == '/') {
		(void)execve(command, x->spec.argv, x->spec.envp);
		return errno;
	}
	for (size_t i = 0; i < ELEMENTSOF(own); i++)
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
exe_command_run(struct exe *x)
{
	char dir[PATH_MAX] = "";
	int r;

	x->child_step = EXE_STEP_SPEC;
	r = exe_spec_read(x->spec.map, x->spec.size, &x->spec);
	if (r < 0 || !x->spec.command != (x->setup->session == EXE_SESSION_FILE))
		return EBADMSG;
	x->child_step = EXE_STEP_CWD;
	if ((r = enter_dir(x, dir)) < 0)
		return -r;
	x->child_step = EXE_STEP_SECRETS;
	if ((r = exe_secrets_write(x)) < 0)
		return -r;
	if (x->setup->tty) {
		x->child_step = EXE_STEP_PIPES;
		if ((r = exe_terminal_open(x)) < 0)
			return -r;
	}
	x->child_step = EXE_STEP_CWD;
	if (x->spec.cwd && chdir(x->spec.cwd) < 0)
		return errno;
	CRASH_POINT(EXE_TASK_BEFORE_EXEC);
	x->child_step = EXE_STEP_COMMAND;
	if (x->setup->session == EXE_SESSION_FILE)
		return 0;
	r = exe_spec_words(x);
	return r < 0 ? -r : run_command(x, dir);
}
