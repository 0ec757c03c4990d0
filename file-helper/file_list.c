// SPDX-License-Identifier: Apache-2.0
/* file_list.c: lists directories for `drover leaks` and for the start. Runs in: file-helper. Asked
 * by: supervisor. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/csi_place.h"
#include "common/fd.h"
#include "common/path.h"
#include "file-helper/file.h"

#define LIST_BYTES_MAX (16u * 1024 * 1024)
#define PATH_SIZE      2048

struct names {
	FILE *out;
	uint32_t count;
	bool with_trash; /* entries that could not be removed, not those that are being removed */
};

static int
add_name(struct names *list, const char *name)
{
	if (ftell(list->out) > (long)LIST_BYTES_MAX)
		return -EFBIG;
	(void)fputs(name, list->out);
	(void)fputc('\0', list->out);
	list->count++;
	return 0;
}

/* Lists the paths below dir_fd's `name`, `depth` directories deep, that have no entries below them.
 * A missing path, or one that is not a directory, has none. The trash counts as one level. */
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

		if ((trash && !list->with_trash) || strcmp(n, ".fetch") == 0)
			continue;
		if ((size_t)snprintf(path, sizeof path, "%s%s%s", prefix, prefix[0] ? "/" : "",
			n) >= sizeof path)
			return -ENAMETOOLONG;
		r = depth > 1 || trash ? list_below(list, dirfd(d), n, path, trash ? 1 : depth - 1)
				       : 0;
		if (r >= 0 && list->count == before && !trash)
			r = add_name(list, path);
	}
	return r;
}

/* Lists the plugins of csi/<kind> with their volumes. */
static int
list_plugins(struct names *list, int csi, const char *kind)
{
	cleanup_dir DIR *d = NULL;
	char path[PATH_SIZE];
	const char *n;
	int r = dir_open_at(csi, kind, &d);

	if (r == -ENOENT)
		return 0;
	while (r >= 0 && (n = dir_next(d))) {
		uint32_t before = list->count;

		(void)snprintf(path, sizeof path, "%s/%s/staging", kind, n);
		r = list_below(list, csi, path, path, 2);
		(void)snprintf(path, sizeof path, "%s/%s/per-alloc", kind, n);
		r = r < 0 ? r : list_below(list, csi, path, path, 3);
		(void)snprintf(path, sizeof path, "%s/%s", kind, n);
		if (r >= 0 && list->count == before)
			r = add_name(list, path);
	}
	return r;
}

static int
list_csi(struct names *list, int csi)
{
	int r = 0;

	for (int kind = PLUGIN_CONTROLLER; r >= 0 && kind < CSI_KINDS; kind++)
		r = list_plugins(list, csi, csi_kind_dirs[kind]);
	return r;
}

int
file_on_root_list(struct file *f, const struct file_root_list_req *req,
    struct file_root_list_rep *rep, int *ret_fd, struct err *e)
{
	cleanup_free char *buf = NULL;
	struct names list = { .with_trash = !file_trash_is_busy(f) };
	size_t size = 0;
	int r;

	if (req->root == FILE_ROOT_NONE)
		return err_say(e, -EINVAL, "there is no root %d", (int)req->root);
	list.out = open_memstream(&buf, &size);
	if (!list.out)
		return err_set(e, -errno, "list root %d", (int)req->root);
	if (req->root == FILE_ROOT_CSI)
		r = list_csi(&list, f->root_fds[req->root]);
	else
		r = list_below(&list, f->root_fds[req->root], ".", "", 1);
	if (fclose(list.out) != 0 && r >= 0)
		r = -ENOMEM;
	if (r < 0)
		return err_set(e, r, "list root %d", (int)req->root);
	*ret_fd = fd_memfd_sealed("names", buf, size);
	rep->count = list.count;
	rep->removing = !list.with_trash;
	return *ret_fd < 0 ? err_set(e, *ret_fd, "list root %d", (int)req->root) : 0;
}
