// SPDX-License-Identifier: Apache-2.0
/* lau_users.c: the users of the agent: by name; with -dev from a range, because several such agents
 * may run on one machine, also beside an installed one. Runs in: launcher. */
#include <dirent.h>
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/proc.h"
#include "launcher/launcher.h"

/* systemd's range for users without a name: nothing else uses it (systemd.io/UIDS-GIDS). */
#define RANGE_LOW   61184
#define RANGE_SLOTS ((65519 - RANGE_LOW + 1) / LAU_USERS)
#define NOBODY      65534

static const char *const names[LAU_USERS] = {
#define AGENT_USER(id, name) (name),
#include "proto/agent_users.def"
#undef AGENT_USER
};

/* Reads /etc/passwd directly, because getpwnam(3) would load NSS modules into a root process.
 * Returns the number of users found. */
static int
find_names(struct lau_users *users)
{
	cleanup_file FILE *f = fopen("/etc/passwd", "re");
	unsigned found = 0;
	struct passwd *pw;

	while (f && (pw = fgetpwent(f)))
		for (int i = 0; i < LAU_USERS; i++)
			if (strcmp(pw->pw_name, names[i]) == 0) {
				users->uid[i] = pw->pw_uid;
				users->gid[i] = pw->pw_gid;
				found |= 1u << i;
			}
	return __builtin_popcount(found);
}

/* The processes are separated by their users, so no two may share a uid or a gid. */
static int
check_apart(const struct lau_users *users, struct err *e)
{
	for (int i = 0; i < LAU_USERS; i++) {
		const uid_t uid = users->uid[i];
		const gid_t gid = users->gid[i];

		if (uid == 0 || gid == 0 || uid == NOBODY || gid == NOBODY)
			return err_say(e, -EPERM,
			    "user %s has the ids %u:%u: it must be neither root nor nobody, nor in "
			    "a group of theirs",
			    names[i], uid, gid);
		for (int j = 0; j < i; j++)
			if (uid == users->uid[j] || gid == users->gid[j])
				return err_say(e, -EPERM,
				    "users %s (%u:%u) and %s (%u:%u) must differ, in the user id "
				    "and in the group id",
				    names[j], users->uid[j], users->gid[j], names[i], uid, gid);
	}
	return 0;
}

static bool
is_in_range(unsigned id, unsigned first)
{
	return id >= first && id < first + LAU_USERS;
}

/* Returns true if a user, a group or a process has one of the ids that start at first. */
static bool
is_taken(unsigned first)
{
	cleanup_file FILE *users = fopen("/etc/passwd", "re"), *groups = fopen("/etc/group", "re");
	cleanup_dir DIR *proc = opendir("/proc");
	struct dirent *entry;
	struct passwd *pw;
	struct group *gr;
	struct stat st;

	while (users && (pw = fgetpwent(users)))
		if (is_in_range(pw->pw_uid, first) || is_in_range(pw->pw_gid, first))
			return true;
	while (groups && (gr = fgetgrent(groups)))
		if (is_in_range(gr->gr_gid, first))
			return true;
	while (proc && (entry = readdir(proc)))
		if (fstatat(dirfd(proc), entry->d_name, &st, 0) == 0 &&
		    is_in_range(st.st_uid, first))
			return true;
	return false;
}

static void
set_range(struct lau_users *users, unsigned first)
{
	for (unsigned i = 0; i < LAU_USERS; i++)
		users->uid[i] = users->gid[i] = first + i;
}

/* The range is kept for ever, because executors of an earlier start have these ids. */
static int
find_range(struct launcher *l, struct err *e)
{
	unsigned long at = strtoul(l->instance, NULL, 16), first;
	cleanup_free char *text = NULL;
	char line[16];
	ssize_t n = fd_read_file(l->data_fd, "uids", 64, &text);
	int r;

	if (n >= 0) {
		first = strtoul(text, NULL, 10);
		if (first < RANGE_LOW || first >= RANGE_LOW + RANGE_SLOTS * LAU_USERS)
			return err_say(
			    e, -EINVAL, "%s/uids does not hold a uid of the range", l->data);
		set_range(&l->users, (unsigned)first);
		return 0;
	}
	if (n != -ENOENT)
		return err_set(e, (int)n, "read %s/uids", l->data);
	for (unsigned tries = 0; tries < RANGE_SLOTS; tries++) {
		first = RANGE_LOW + (at + tries) % RANGE_SLOTS * LAU_USERS;
		if (is_taken((unsigned)first))
			continue;
		(void)snprintf(line, sizeof line, "%lu\n", first);
		r = lau_file_replace(l->data_fd, "uids", 0644, line, strlen(line));
		set_range(&l->users, (unsigned)first);
		return r < 0 ? err_set(e, r, "write %s/uids", l->data) : 0;
	}
	return err_say(e, -EUSERS, "too few user ids are free between %d and 65519", RANGE_LOW);
}

int
lau_users_find(struct launcher *l, struct err *e)
{
	if (l->dev)
		return find_range(l, e);
	if (find_names(&l->users) == LAU_USERS)
		return check_apart(&l->users, e);
	return err_say(e, -ENOENT,
	    "the users drover, drover-exec, drover-csi, drover-heartbeat, drover-check, "
	    "drover-file, drover-parser, drover-fetcher, drover-renderer, drover-listener and "
	    "drover-images must be in /etc/passwd: run systemd-sysusers, or try `drover agent "
	    "-dev`");
}
