// SPDX-License-Identifier: Apache-2.0
/* exe_user.c: finds the user of a container in the image's own /etc/passwd and /etc/group. Nothing
 * there is trusted, and nothing of it counts outside of the container. Runs in: the container's
 * child, as root of its user namespace. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "executor/exe_inside.h"
#include "proto/container_ids.h"

#define FILE_MAX ((size_t)4 << 20)

/* A file of the image, mapped. */
struct text {
	char *at;
	size_t len;
};

static void
text_done(struct text *t)
{
	if (t->at)
		(void)munmap(t->at, t->len);
}

/* A private map, because the file may be anything, also a device that the image has instead. A
 * missing file is an empty one. */
static int
text_open(const char *path, struct text *ret)
{
	cleanup_close int fd =
	    fd_open_in_root(exe_inside.root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	*ret = (struct text){ 0 };
	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > (off_t)FILE_MAX)
		return -EINVAL;
	if (st.st_size == 0)
		return 0;
	ret->len = (size_t)st.st_size;
	ret->at = mmap(NULL, ret->len, PROT_READ, MAP_PRIVATE, fd, 0);
	if (ret->at == MAP_FAILED)
		return ret->at = NULL, -errno;
	return 0;
}

/* Copies the next line, without what does not fit, and splits it at colons. Returns the number of
 * fields, or -1 at the end. */
static int
next_line(const struct text *t, size_t *at, char *line, size_t size, char *fields[], int max)
{
	size_t len = 0;
	int n = 1;

	if (*at >= t->len)
		return -1;
	for (; *at < t->len && t->at[*at] != '\n'; ++*at)
		if (len + 1 < size)
			line[len++] = t->at[*at];
	++*at;
	line[len] = '\0';
	fields[0] = line;
	for (char *c = line; *c && n < max; c++)
		if (*c == ':') {
			*c = '\0';
			fields[n++] = c + 1;
		}
	return n;
}

/* A number within the container's ids. */
static bool
read_id(const char *text, uint32_t *ret)
{
	char *end;
	unsigned long n;

	if (text[0] < '0' || text[0] > '9' || strlen(text) > 10)
		return false;
	n = strtoul(text, &end, 10);
	*ret = (uint32_t)n;
	return *end == '\0' && n < CONTAINER_IDS;
}

/* A number that cannot be an id. It is not taken as a name, by which an image could make it another
 * user than the job's. */
static bool
is_wrong_number(const char *text)
{
	uint32_t id;

	return *text && !text[strspn(text, "0123456789")] && !read_id(text, &id);
}

/* Docker's order: a name comes before a number that is the same text. A number needs no entry. */
static int
find_passwd(const char *name, char user[256])
{
	struct text t = { 0 };
	char line[1024], *f[7];
	uint32_t number = 0, uid, gid;
	bool is_number = read_id(name, &number), found = false;
	size_t at = 0;
	int n, r = is_wrong_number(name) ? -ENOENT : text_open("/etc/passwd", &t);

	while (r == 0 && !found && (n = next_line(&t, &at, line, sizeof line, f, 7)) >= 0) {
		if (n < 6 || !read_id(f[2], &uid) || !read_id(f[3], &gid))
			continue;
		found = strcmp(f[0], name) == 0 || (is_number && uid == number);
		if (!found)
			continue;
		exe_inside.uid = uid;
		exe_inside.gid = gid;
		(void)snprintf(user, 256, "%s", f[0]);
		(void)snprintf(exe_inside.home, sizeof exe_inside.home, "%s", f[5]);
	}
	text_done(&t);
	if (r == 0 && !found && is_number)
		exe_inside.uid = number;
	return r < 0 || found || is_number ? r : -ENOENT;
}

static bool
is_member(const char *list, const char *user)
{
	size_t len = strlen(user);

	for (const char *at = list; len > 0 && *at; at += *at == ',') {
		size_t word = strcspn(at, ",");

		if (word == len && memcmp(at, user, len) == 0)
			return true;
		at += word;
	}
	return false;
}

static int
add_gid(gid_t gid)
{
	for (uint32_t i = 0; i < exe_inside.n_groups; i++)
		if (exe_inside.groups[i] == gid)
			return 0;
	if (exe_inside.n_groups == EXE_GROUPS_MAX)
		return -E2BIG;
	exe_inside.groups[exe_inside.n_groups++] = gid;
	return 0;
}

/* With a user, adds all groups of which he is a member; else returns the group of that name or
 * number in *ret. */
static int
read_groups(const char *user, const char *name, gid_t *ret)
{
	struct text t = { 0 };
	char line[8192], *f[4];
	uint32_t gid, number = 0;
	bool found = false;
	size_t at = 0;
	int n, r = name && is_wrong_number(name) ? -ENOENT : text_open("/etc/group", &t);

	while (r == 0 && !found && (n = next_line(&t, &at, line, sizeof line, f, 4)) >= 0) {
		if (n < 3 || !read_id(f[2], &gid))
			continue;
		if (name && (found = strcmp(f[0], name) == 0))
			*ret = gid;
		else if (user && n == 4 && is_member(f[3], user))
			r = add_gid(gid);
	}
	text_done(&t);
	if (r == 0 && name && !found) {
		if (!read_id(name, &number))
			return -ENOENT;
		*ret = number;
	}
	return r;
}

int
exe_user_add_group(const char *text)
{
	gid_t gid = 0;
	int r = read_groups(NULL, text, &gid);

	return r < 0 ? r : add_gid(gid);
}

/* Without an entry for it, a user has group 0 and the home directory "/", as under Docker. */
int
exe_user_find(const char *text)
{
	char name[256], user[256] = "";
	const char *group;
	int r;

	exe_inside.uid = exe_inside.gid = 0;
	(void)strcpy(exe_inside.home, "/");
	if (!text || !*text)
		text = "0";
	group = strchr(text, ':');
	if ((size_t)snprintf(name, sizeof name, "%.*s", (int)strcspn(text, ":"), text) >=
	    sizeof name)
		return -ENAMETOOLONG;
	r = find_passwd(name[0] ? name : "0", user);
	if (r == 0 && group && group[1])
		r = read_groups(NULL, group + 1, &exe_inside.gid);
	else if (r == 0 && user[0])
		r = read_groups(user, NULL, NULL);
	/* CVE-2022-36109: a set-group-id program must not lose it. */
	return r < 0 ? r : add_gid(exe_inside.gid);
}
