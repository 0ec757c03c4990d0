// SPDX-License-Identifier: Apache-2.0
/*
 * exec_user.c: who a user is. NSS loads foreign code, so a child asks it: as nobody, without a
 * capability, not dumpable, killed at its deadline through a cgroup of its own (exec-helper has no
 * CAP_KILL). Runs in: exec-helper, the child.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/fd.h"
#include "exec-helper/exec.h"

#define NOBODY    65534
#define END_MS    100        /* what takes longer hangs in the kernel */
#define NOT_FOUND UINT32_MAX /* in n_groups */

/* Reads the whole answer or gives up at the deadline. */
static int
read_answer(int fd, struct exe_user *ret)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint64_t end = clock_ms() + EXEC_LOOKUP_MS, now;
	size_t got = 0;

	while (got < sizeof *ret) {
		ssize_t n;

		now = clock_ms();
		n = now >= end ? 0 : poll(&p, 1, (int)(end - now));
		if (n == 0)
			return -ETIMEDOUT;
		if (n > 0 && (n = read(fd, (char *)ret + got, sizeof *ret - got)) == 0)
			return -EBADMSG;
		if (n < 0 && errno != EINTR)
			return -errno;
		got += n > 0 ? (size_t)n : 0;
	}
	return ret->n_groups == NOT_FOUND ? -ENOENT : 0;
}

/*
 * Nothing of it stays, whatever it started. The cgroup is made anew each time: once killed, kernels
 * from 6.13 on kill at once what is cloned into it.
 */
static void
remove_lookup(struct exec_state *s, int dir)
{
	int exec = s->cgroup.exec[CGROUP_V2];

	if (cgroup_rmdir(exec, "lookup") < 0 && cgroup_kill(dir) == 0 &&
	    cgroup_wait_empty(dir, END_MS) == 0)
		(void)cgroup_rmdir(exec, "lookup");
}

/* One that is there is of an exec-helper that died over it, and may be killed already. */
static int
make_lookup(struct exec_state *s)
{
	int exec = s->cgroup.exec[CGROUP_V2], dir;
	bool made = mkdirat(exec, "lookup", 0755) == 0;

	if (!made && errno != EEXIST)
		return -errno;
	dir = openat(exec, "lookup", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (made || dir < 0)
		return dir < 0 ? -errno : dir;
	remove_lookup(s, dir);
	(void)close(dir);
	if (mkdirat(exec, "lookup", 0755) < 0)
		return -errno;
	dir = openat(exec, "lookup", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return dir < 0 ? -errno : dir;
}

static int
ask_child(struct exec_state *s, const char *name, struct exe_user *ret)
{
	cleanup_close int dir = -1, in = -1;
	int pipes[2], r;

	if (pipe2(pipes, O_CLOEXEC) < 0)
		return -errno;
	in = pipes[0];
	r = dir = make_lookup(s);
	if (r >= 0)
		r = (int)exec_spawn_lookup(name, pipes[1], dir);
	(void)close(pipes[1]);
	if (r >= 0)
		r = read_answer(in, ret);
	if (dir >= 0)
		remove_lookup(s, dir);
	return r;
}

static bool
name_is_user(const char *name)
{
	size_t len = strnlen(name, CONFIG_NAME_SIZE);

	if (len == 0 || len >= CONFIG_NAME_SIZE || name[0] == '-')
		return false;
	for (size_t i = 0; i < len; i++)
		if (name[i] <= ' ' || name[i] == 0x7f || strchr(":/,=", name[i]))
			return false;
	return true;
}

/* The answer came from foreign code: it names a user, but nothing in it is trusted to be
 * well-formed. */
static bool
answer_is_sound(const struct exe_user *u)
{
	return u->uid != (uid_t)-1 && u->gid != (gid_t)-1 && u->n_groups <= GROUPS_MAX &&
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

	if (!name_is_user(name))
		return err_say(e, -EINVAL, "'%.64s' is not a user name", name);
	for (c = s->users; c < s->users + EXEC_USERS_MAX; c++) {
		if (c->until_ms > now && strcmp(c->asked, name) == 0) {
			*ret = c->user;
			return 0;
		}
		if (c->until_ms < oldest->until_ms)
			oldest = c;
	}
	r = ask_child(s, name, &user);
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

static void
fill_groups(struct exe_user *u, const char *name)
{
	int n = GROUPS_MAX;

	if (getgrouplist(name, u->gid, u->groups, &n) < 0)
		_exit(1); /* more than GROUPS_MAX: starting without some of them would be wrong */
	u->n_groups = (uint32_t)n;
}

static int
answer_not_found(struct exe_user *u)
{
	u->n_groups = NOT_FOUND;
	return fd_write_full(1, u, sizeof *u) < 0;
}

const struct proc_child exec_lookup_child = {
	.name = "exec-helper-lookup",
	.user = "nobody",
	.privs = { .uid = NOBODY, .gid = NOBODY, .no_new_privs = true },
};

int
exec_lookup_main(const char *name)
{
	struct exe_user u = { .home = "/", .shell = "/bin/sh" };
	bool number = name[strspn(name, "0123456789")] == '\0';
	struct passwd *pw;
	struct err e;

	if (dup2(0, 2) < 0 || privs_drop(&exec_lookup_child.privs, &e) < 0)
		return 1;
	(void)alarm(EXEC_LOOKUP_MS / 1000 + 1);
	errno = 0;
	u.uid = (uid_t)strtoul(name, NULL, 10);
	u.gid = u.uid;
	if (number && (errno || strlen(name) > 10 || strtoul(name, NULL, 10) >= UINT32_MAX))
		return answer_not_found(&u);
	pw = number ? getpwuid(u.uid) : getpwnam(name);
	if (!pw && !number)
		return answer_not_found(&u);
	(void)snprintf(u.name, sizeof u.name, "%s", pw ? pw->pw_name : name);
	if (pw) {
		u.uid = pw->pw_uid;
		u.gid = pw->pw_gid;
		if (pw->pw_dir && pw->pw_dir[0] == '/')
			(void)snprintf(u.home, sizeof u.home, "%s", pw->pw_dir);
		if (pw->pw_shell && pw->pw_shell[0] == '/')
			(void)snprintf(u.shell, sizeof u.shell, "%s", pw->pw_shell);
		if (!number)
			fill_groups(&u, name);
	} else if (getgrgid(u.gid)) {
		u.gid = NOBODY; /* a user's number: it does not mean disk, shadow or docker */
	}
	return fd_write_full(1, &u, sizeof u) < 0;
}
