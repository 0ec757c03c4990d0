// SPDX-License-Identifier: Apache-2.0
/* exec_user.c: looks up users in a child (exec_lookup.c), which is killed at its deadline through
 * its cgroup, because exec-helper has no CAP_KILL. Runs in: exec-helper. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/fd.h"
#include "exec-helper/exec.h"

#define END_MS      100 /* a child that takes longer to die hangs in the kernel */
#define LOOKUPS_MAX 16  /* limit of such hanging children */
#define LOOKUP      "lookup-%d"

/* The child writes its answer in one write, which a pipe keeps atomic (PIPE_BUF). Signals are
 * blocked, so that a stop of the unit does not interrupt the wait. */
static int
read_answer(int fd, struct exe_user *ret)
{
	const struct timespec limit = { .tv_sec = EXEC_LOOKUP_MS / 1000 };
	struct pollfd p = { .fd = fd, .events = POLLIN };
	sigset_t all;

	_Static_assert(sizeof *ret <= PIPE_BUF && EXEC_LOOKUP_MS % 1000 == 0, "one whole answer");
	(void)sigfillset(&all);
	if (ppoll(&p, 1, &limit, &all) <= 0)
		return -ETIMEDOUT;
	if (read(fd, ret, sizeof *ret) != (ssize_t)sizeof *ret)
		return -EBADMSG;
	return ret->n_groups == EXEC_USER_NOT_FOUND ? -ENOENT : 0;
}

/* Kills everything that a look-up child started, also of an earlier exec-helper that died. The
 * cgroup is made again each time, because kernels from 6.13 on immediately kill a process that is
 * cloned into a killed cgroup. -ETIMEDOUT: the child hangs in the kernel and keeps its cgroup. */
static int
remove_lookup(struct exec_state *s, int i, int wait_ms)
{
	int exec = s->cgroup.exec[CGROUP_V2], r;
	cleanup_close int dir = -1;
	char name[16];

	(void)snprintf(name, sizeof name, LOOKUP, i);
	if (cgroup_rmdir(exec, name) == 0)
		return 0;
	dir = openat(exec, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0 || (r = cgroup_kill(dir)) < 0)
		return dir < 0 ? -errno : r;
	r = cgroup_wait_empty(dir, wait_ms);
	return r < 0 ? r : cgroup_rmdir(exec, name);
}

static int
ask_child(struct exec_state *s, int i, const char *name, struct exe_user *ret)
{
	int exec = s->cgroup.exec[CGROUP_V2], pipes[2], r;
	cleanup_close int dir = -1, in = -1;
	char own[16];

	(void)snprintf(own, sizeof own, LOOKUP, i);
	if (pipe2(pipes, O_CLOEXEC) < 0)
		return -errno;
	in = pipes[0];
	if (mkdirat(exec, own, 0755) == 0)
		dir = openat(exec, own, O_PATH | O_DIRECTORY | O_CLOEXEC);
	r = dir < 0 ? -errno : (int)exec_spawn_lookup(name, pipes[1], dir);
	(void)close(pipes[1]);
	if (r >= 0)
		r = read_answer(in, ret);
	return r;
}

/* Uses the first cgroup without a hanging child. */
static int
ask(struct exec_state *s, const char *name, struct exe_user *ret)
{
	int place = -1, r;

	for (int i = LOOKUPS_MAX - 1; i >= 0; i--)
		if (remove_lookup(s, i, 0) == 0)
			place = i;
	if (place < 0)
		return -EBUSY;
	r = ask_child(s, place, name, ret);
	(void)remove_lookup(s, place, END_MS);
	return r;
}

/* The answer came from foreign code: it may name any user, but its form is checked. */
static bool
answer_is_sound(const struct exe_user *u)
{
	return u->uid != (uid_t)-1 && u->gid != (gid_t)-1 && u->n_groups <= EXE_GROUPS_MAX &&
	       strnlen(u->name, sizeof u->name) < sizeof u->name &&
	       strnlen(u->home, sizeof u->home) < sizeof u->home &&
	       strnlen(u->shell, sizeof u->shell) < sizeof u->shell && u->home[0] == '/';
}

int
exec_user_find(struct exec_state *s, const char *name, struct exe_user *ret, struct err *e)
{
	uint64_t now = clock_ms();
	struct exec_cached_user *c, *oldest = &s->users[0];
	struct exe_user user;
	int r;

	if (strlen(name) >= sizeof c->asked)
		return err_say(e, -EINVAL, "'%.64s' is not a user name", name);
	for (c = s->users; c < s->users + EXEC_USERS_MAX; c++) {
		if (c->until_ms > now && strcmp(c->asked, name) == 0) {
			*ret = c->user;
			return 0;
		}
		if (c->until_ms < oldest->until_ms)
			oldest = c;
	}
	r = ask(s, name, &user);
	if (r == -ENOENT)
		return err_say(e, r, "user \"%s\" does not exist", name);
	if (r == -ETIMEDOUT)
		return err_say(
		    e, r, "looking up user \"%s\" took longer than %d ms", name, EXEC_LOOKUP_MS);
	if (r == 0 && !answer_is_sound(&user))
		r = -EBADMSG;
	if (r < 0)
		return err_set(e, r, "look up user \"%s\"", name);
	*oldest =
	    (struct exec_cached_user){ .until_ms = clock_ms() + EXEC_USER_TTL_MS, .user = user };
	(void)strcpy(oldest->asked, name);
	*ret = user;
	return 0;
}
