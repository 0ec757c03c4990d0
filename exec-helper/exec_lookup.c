// SPDX-License-Identifier: Apache-2.0
/* exec_lookup.c: looks up a user through NSS. That loads foreign code, so the process first drops
 * to nobody, without capabilities, not dumpable. Runs in: exec-helper's look-up child. */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/fd.h"
#include "exec-helper/exec.h"

#define NOBODY 65534

static void
fill_groups(struct exe_user *u, const char *name)
{
	int n = EXE_GROUPS_MAX;

	if (getgrouplist(name, u->gid, u->groups, &n) < 0)
		_exit(1); /* more than EXE_GROUPS_MAX groups: starting with only some of them would
			     be wrong */
	u->n_groups = (uint32_t)n;
}

static int
answer_not_found(struct exe_user *u)
{
	u->n_groups = EXEC_USER_NOT_FOUND;
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
	u.gid = NOBODY; /* nobody's group, because a number without a user may be the gid of disk,
			   shadow or docker */
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
	}
	return fd_write_full(1, &u, sizeof u) < 0;
}
