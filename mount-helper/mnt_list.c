// SPDX-License-Identifier: Apache-2.0
/* mnt_list.c: lists for `drover leaks` and the start. Runs in: mount-helper, as root. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/path.h"
#include "mount-helper/mnt.h"

#define LIST_BYTES_MAX (16u * 1024 * 1024)
#define PATH_SIZE      2048

struct names {
	FILE *out;
	uint32_t count;
	bool with_trash; /* what could not be removed; not what is about to be */
};

static int
add(struct names *list, const char *name)
{
	if (ftell(list->out) > (long)LIST_BYTES_MAX)
		return -EFBIG;
	(void)fputs(name, list->out);
	(void)fputc('\0', list->out);
	list->count++;
	return 0;
}

/*
 * The paths below dir_fd's name, `depth` directories deep, that have nothing below them. What is
 * gone, or is no directory, has nothing below it; a mount point is named and never entered. A trash
 * is one level, whatever lies in it.
 */
static int
list_below(struct names *list, int dir_fd, const char *name, const char *prefix, int depth)
{
	cleanup_dir DIR *d = NULL;
	char path[PATH_SIZE];
	const char *n;
	int r = dir_open_at(dir_fd, name, &d);

	if (r == -ENOENT || r == -ENOTDIR || r == -ELOOP || r == -EXDEV)
		return 0;
	while (r >= 0 && (n = dir_next(d))) {
		bool trash = strcmp(n, ".trash") == 0;
		uint32_t before = list->count;

		if (trash && !list->with_trash)
			continue;
		if ((size_t)snprintf(path, sizeof path, "%s%s%s", prefix, prefix[0] ? "/" : "",
			n) >= sizeof path)
			return -ENAMETOOLONG;
		r = depth > 1 || trash ? list_below(list, dirfd(d), n, path, trash ? 1 : depth - 1)
				       : 0;
		if (r >= 0 && list->count == before && !trash)
			r = add(list, path);
	}
	return r;
}

static int
list_plugins(struct names *list, const struct mnt *m, const char *kind)
{
	int csi = m->root_fds[MNT_ROOT__MNT_ROOT_CSI], r;
	char path[PATH_SIZE], below[PATH_SIZE + 16];
	cleanup_dir DIR *d = NULL;
	const char *n;

	r = dir_open_at(csi, kind, &d);
	if (r == -ENOENT)
		return 0;
	while (r >= 0 && (n = dir_next(d))) {
		cleanup_close int root = -1;
		uint32_t before = list->count;

		(void)snprintf(path, sizeof path, "%s/%s", kind, n);
		if (mnt_plugin_root_open(m, path, false, &root, NULL) == 0) {
			(void)snprintf(below, sizeof below, "%s/staging", path);
			r = list_below(list, root, "staging", below, 2);
			(void)snprintf(below, sizeof below, "%s/per-alloc", path);
			r = r < 0 ? r : list_below(list, root, "per-alloc", below, 3);
		}
		if (r >= 0 && list->count == before)
			r = add(list, path);
	}
	return r;
}

static int
list_csi(struct names *list, const struct mnt *m)
{
	int r = 0;

	for (int kind = PLUGIN_KIND__PLUGIN_CONTROLLER; r >= 0 && kind < MNT_KINDS; kind++)
		r = list_plugins(list, m, mnt_kind_names[kind]);
	return r;
}

/* Mount points below the data directory, relative to it. */
static int
list_mounts(struct names *list, struct mnt *m, struct err *e)
{
	const char *path;
	int r = mnt_mounts_look(m, &path, e);

	for (; r >= 0 && *path; path += strlen(path) + 1)
		r = add(list, path);
	return r;
}

int
mnt_on_root_list(
    void *state, const struct ipc_packet *p, ProtobufCMessage *rep, int *ret_fd, struct err *e)
{
	struct mnt *m = state;
	const MntRootListReq *req = (const MntRootListReq *)(const void *)p->msg;
	cleanup_free char *buf = NULL;
	struct names list = { .with_trash = !mnt_trash_is_busy(m) };
	size_t size = 0;
	int r;

	if (req->root <= MNT_ROOT__MNT_ROOT_NONE || req->root > MNT_ROOT__MNT_ROOT_MOUNTS)
		return err_say(e, -EINVAL, "there is no root %d", (int)req->root);
	list.out = open_memstream(&buf, &size);
	if (!list.out)
		return err_set(e, -errno, "list root %d", (int)req->root);
	if (req->root == MNT_ROOT__MNT_ROOT_MOUNTS)
		r = list_mounts(&list, m, e);
	else if (req->root == MNT_ROOT__MNT_ROOT_CSI)
		r = list_csi(&list, m);
	else
		r = list_below(&list, m->root_fds[req->root], ".", "", 1);
	if (fclose(list.out) != 0 && r >= 0)
		r = -ENOMEM;
	if (r < 0)
		return err_set(e, r, "list root %d", (int)req->root);
	*ret_fd = fd_memfd_sealed("names", buf, size);
	((MntRootListRep *)(void *)rep)->count = list.count;
	return *ret_fd < 0 ? err_set(e, *ret_fd, "list root %d", (int)req->root) : 0;
}
