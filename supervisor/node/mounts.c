// SPDX-License-Identifier: Apache-2.0
/*
 * mounts.c: the mounts below the data directory. mountinfo is read again only after poll(2) has
 * reported a change (proc(5)), because reading it for each removal would take time in proportion to
 * the mounts of the whole machine. Runs in: supervisor.
 */
#include "supervisor/node/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "common/mountinfo.h"
#include "supervisor/core/sup.h"

struct mounts {
	int fd;       /* of mountinfo, for poll(2); -1: not opened yet */
	char *list;   /* what mounts_list() returned last */
	char **paths; /* those of the list, sorted */
	size_t n;
};

void
mounts_new(struct sup *sup)
{
	sup->mounts = mem_new(struct mounts);
	sup->mounts->fd = -1;
}

void
mounts_free(struct sup *sup)
{
	if (!sup->mounts)
		return;
	close_p(&sup->mounts->fd);
	free(sup->mounts->list);
	free(sup->mounts->paths);
	free_p(&sup->mounts);
}

/* Shrinks the text in place to the paths below data_dir, each with its NUL, and an empty one at the
 * end. Returns the length with all NULs. */
static size_t
keep_own(const char *data_dir, char *text)
{
	char *to = text, *at = text;
	struct mountinfo mi;
	int r;

	while ((r = mountinfo_next(&at, &mi)) != 0) {
		const char *rest = r < 0 ? NULL : mountinfo_below(mi.target, data_dir);
		size_t len = rest ? strlen(rest) : 0;

		if (len == 0)
			continue;
		memmove(to, rest, len + 1);
		to += len + 1;
	}
	*to = '\0';
	return (size_t)(to - text) + 1;
}

static int
compare_paths(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void
sort_paths(struct mounts *m)
{
	size_t i = 0;

	m->n = 0;
	for (const char *at = m->list; *at; at += strlen(at) + 1)
		m->n++;
	m->paths = mem_resize(m->paths, m->n + 1, sizeof *m->paths);
	for (char *at = m->list; *at; at += strlen(at) + 1)
		m->paths[i++] = at;
	qsort(m->paths, m->n, sizeof *m->paths, compare_paths);
}

int
mounts_list(const struct sup *sup, const char **ret)
{
	struct mounts *m = sup->mounts;
	struct pollfd p = { .events = POLLPRI };
	char *text = NULL;
	int r;

	/* Opened before the first reading, so that poll() reports a change during the reading. */
	if (m->fd < 0)
		m->fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	p.fd = m->fd;
	if (!m->list || m->fd < 0 || poll(&p, 1, 0) != 0) {
		free_p(&m->list); /* if reading fails: poll() does not report this change again */
		r = mountinfo_read(&text);
		if (r < 0)
			return r;
		m->list = mem_resize(text, keep_own(sup->args.data_dir, text), 1);
		sort_paths(m);
	}
	*ret = m->list;
	return 0;
}

int
mounts_has(const struct sup *sup, const char *path)
{
	const struct mounts *m = sup->mounts;
	const char *list;
	int r = mounts_list(sup, &list);

	if (r < 0)
		return r;
	return bsearch(&path, m->paths, m->n, sizeof *m->paths, compare_paths) != NULL;
}

int
mounts_shows(const char *path, const char *dir)
{
	/* In a line of mountinfo, the target follows the directory of its file system. */
	cleanup_free char *root = mem_printf("/%s ", dir), *target = mem_printf("/%s", path),
			  *text = NULL;
	int r = mountinfo_read(&text);

	if (r < 0)
		return r;
	for (const char *at = text; (at = strstr(at, root));) {
		at += strlen(root);
		size_t len = strcspn(at, " \n"), end = strlen(target);

		if (len >= end && memcmp(at + len - end, target, end) == 0)
			return 1;
	}
	return 0;
}

bool
mount_is_secrets(const char *path, struct id *ret_alloc, const char **ret_task, size_t *ret_len)
{
	const char *below = mountinfo_below(path, "alloc"), *task, *end;
	char alloc[ID_UUID_SIZE] = "";

	if (!below || strcspn(below, "/") != ID_UUID_SIZE - 1)
		return false;
	memcpy(alloc, below, ID_UUID_SIZE - 1);
	task = below + ID_UUID_SIZE;
	end = below[ID_UUID_SIZE - 1] ? strchr(task, '/') : NULL;
	if (!end || strcmp(end, "/secrets") != 0 || !id_from_uuid(alloc, ret_alloc))
		return false;
	*ret_task = task;
	*ret_len = (size_t)(end - task);
	return true;
}

int
mounts_refuse(const struct sup *sup, const struct id *alloc, struct err *e)
{
	char name[ID_UUID_SIZE];
	const char *path, *task;
	struct id other;
	size_t len;
	int r = mounts_list(sup, &path);

	id_to_uuid(alloc, name);
	if (r < 0)
		return err_set(e, r, "read the mounts of this machine");
	for (; *path; path += strlen(path) + 1) {
		/* With -dev the names of networks are below the data directory, but in no alloc's.
		 */
		if (mount_is_secrets(path, &other, &task, &len) ||
		    mountinfo_below(path, "rt/netns"))
			continue;
		/* In the trash a directory's name is longer than the id, so it does not match. */
		for (const char *at = path; (at = strstr(at, name)); at++)
			if (mountinfo_below(at, name))
				return err_say(e, -EBUSY,
				    "alloc %s cannot be removed: %s/%.256s is still mounted", name,
				    sup->args.data_dir, path);
	}
	return 0;
}
