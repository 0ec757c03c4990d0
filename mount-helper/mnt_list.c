// SPDX-License-Identifier: Apache-2.0
/* mnt_list.c: what there is below each root, for `drover leaks` and the start. Runs in:
 * mount-helper, as root. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/mountinfo.h"
#include "mount-helper/mnt.h"

#define LIST_BYTES_MAX (16u * 1024 * 1024)
#define CSI_PATH_MAX   (6 * (NAME_BYTES_MAX + 1) + 256)

struct names {
	FILE *out;
	uint32_t count;
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

/* -ENOENT when the directory is gone, -EXDEV when something is mounted there. The descriptor goes
 * with *ret. */
static int
open_list(int dir_fd, const char *path, DIR **ret)
{
	int fd = fd_open_same_mount(dir_fd, path, O_RDONLY | O_DIRECTORY);

	if (fd < 0)
		return fd;
	*ret = fdopendir(fd);
	if (*ret)
		return 0;
	close_p(&fd);
	return -errno;
}

/* The next entry but "." and "..", or NULL. */
static const char *
next_name(DIR *d)
{
	struct dirent *entry;

	do
		entry = readdir(d);
	while (entry && (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0));
	return entry ? entry->d_name : NULL;
}

/* The names in a root, and those in its trash as ".trash/…". */
static int
list_root(struct names *list, int dir_fd, const char *path)
{
	bool in_trash = strcmp(path, ".") != 0;
	cleanup_dir DIR *d = NULL;
	char name[512];
	const char *n;
	int r = open_list(dir_fd, path, &d);

	while (r >= 0 && (n = next_name(d))) {
		(void)snprintf(name, sizeof name, "%s%s", in_trash ? ".trash/" : "", n);
		r = in_trash || strcmp(n, ".trash") != 0 ? add(list, name)
							 : list_root(list, dir_fd, ".trash");
	}
	return r;
}

/*
 * The directories below csi, depth of them at most: each path that has nothing below it. A volume's
 * own mount is named, not entered. What a plugin put there that cannot be drover's (names, files)
 * is left out.
 */
static int
list_csi(struct names *list, int dir_fd, const char *name, const char *above, int depth)
{
	char path[CSI_PATH_MAX];
	cleanup_dir DIR *d = NULL;
	uint32_t before = list->count;
	const char *n;
	int r;

	if ((size_t)snprintf(path, sizeof path, "%s%s%s", above, above[0] ? "/" : "", name) >=
	    sizeof path)
		return -ENAMETOOLONG;
	r = depth > 0 ? open_list(dir_fd, name, &d) : 0;
	if (r == -ENOENT || r == -ENOTDIR || r == -ELOOP)
		return 0;
	if (r < 0 && r != -EXDEV)
		return r;
	while (d && (n = next_name(d)))
		if (name_is_component(n) && (r = list_csi(list, dirfd(d), n, path, depth - 1)) < 0)
			return r;
	return list->count == before ? add(list, path) : 0;
}

static int
list_plugin(struct names *list, const struct mnt *m, PluginKind kind, const char *plugin)
{
	char path[NAME_BYTES_MAX + 16];
	cleanup_close int root = -1;
	uint32_t before = list->count;
	int r = mnt_plugin_root_open(m, kind, plugin, false, &root, NULL);

	(void)snprintf(path, sizeof path, "%s/%s", mnt_kind_names[kind], plugin);
	if (r == 0 && ((r = list_csi(list, root, "staging", path, 3)) < 0 ||
			  (r = list_csi(list, root, "per-alloc", path, 4)) < 0))
		return r;
	return list->count == before ? add(list, path) : 0;
}

static int
list_plugins(struct names *list, const struct mnt *m)
{
	for (int kind = PLUGIN_KIND__PLUGIN_CONTROLLER; kind < MNT_KINDS; kind++) {
		cleanup_dir DIR *d = NULL;
		const char *n;
		int r = open_list(m->kind_fds[kind], ".", &d);

		while (r >= 0 && (n = next_name(d)))
			r = name_is_component(n) ? list_plugin(list, m, (PluginKind)kind, n) : 0;
		if (r < 0)
			return r;
	}
	return 0;
}

/* Mount points below the data directory, relative to it. */
static int
list_mounts(struct names *list, const struct mnt *m)
{
	cleanup_free char *text = NULL;
	struct mountinfo mi;
	const char *rest;
	int r = mountinfo_read(&text);

	if (r < 0)
		return r;
	for (char *at = text; (r = mountinfo_next(&at, &mi)) != 0;)
		if (r > 0 && (rest = mountinfo_below(mi.target, m->data_dir)) && rest[0] &&
		    (r = add(list, rest)) < 0)
			return r;
	return 0;
}

int
mnt_on_root_list(
    void *state, const struct ipc_packet *p, ProtobufCMessage *rep, int *ret_fd, struct err *e)
{
	const struct mnt *m = state;
	const MntRootListReq *req = (const MntRootListReq *)(const void *)p->msg;
	cleanup_free char *buf = NULL;
	struct names list = { 0 };
	size_t size = 0;
	int r;

	if (req->root <= MNT_ROOT__MNT_ROOT_NONE || req->root > MNT_ROOT__MNT_ROOT_MOUNTS)
		return err_say(e, -EINVAL, "there is no root %d", (int)req->root);
	list.out = open_memstream(&buf, &size);
	if (!list.out)
		return err_set(e, -errno, "list root %d", (int)req->root);
	if (req->root == MNT_ROOT__MNT_ROOT_MOUNTS)
		r = list_mounts(&list, m);
	else if (req->root == MNT_ROOT__MNT_ROOT_CSI)
		r = list_plugins(&list, m);
	else
		r = list_root(&list, m->root_fds[req->root], ".");
	if (fclose(list.out) != 0 && r >= 0)
		r = -ENOMEM;
	if (r < 0)
		return err_set(e, r, "list root %d", (int)req->root);
	*ret_fd = fd_memfd_sealed("names", buf, size);
	((MntRootListRep *)(void *)rep)->count = list.count;
	return *ret_fd < 0 ? err_set(e, *ret_fd, "list root %d", (int)req->root) : 0;
}
