// SPDX-License-Identifier: Apache-2.0
/* mnt_roots.c: the roots below which all is made, and names in requests. Runs in: mount-helper. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/path.h"
#include "mount-helper/mnt.h"

const char *const mnt_kind_names[MNT_KINDS] = {
	[PLUGIN_KIND__PLUGIN_CONTROLLER] = "controller",
	[PLUGIN_KIND__PLUGIN_NODE] = "node",
	[PLUGIN_KIND__PLUGIN_MONOLITH] = "monolith",
};

/* The launcher made them all, with owner and mode. */
static const struct root {
	MntRoot root;
	const char *name;
	bool has_trash;
} roots[] = {
	{ MNT_ROOT__MNT_ROOT_ALLOC, "alloc", true },
	{ MNT_ROOT__MNT_ROOT_SECRETS, "secrets", true },
	{ MNT_ROOT__MNT_ROOT_LOGS, "logs", true },
	{ MNT_ROOT__MNT_ROOT_CSI, "csi", false },
	{ MNT_ROOT__MNT_ROOT_CSI_SOCK, "csi/sock", true },
};

static int
open_root(struct mnt *m, const struct root *root, struct err *e)
{
	int *fd = &m->root_fds[root->root], r;

	*fd = fd_open_beneath(FD_DATA, root->name, O_RDONLY | O_DIRECTORY, 0);
	if (*fd < 0)
		return err_set(e, *fd, "open %s/%s", m->data_dir, root->name);
	if (!root->has_trash)
		return 0;
	r = dir_ensure_at(*fd, ".trash", 0700, 0, 0, &m->trash_fds[root->root]);
	return r < 0 ? err_set(e, r, "make %s/%s/.trash", m->data_dir, root->name) : 0;
}

int
mnt_roots_open(void *state, const struct proc_args *args, struct err *e)
{
	struct mnt *m = state;
	char proc[32];
	ssize_t n;
	int r;

	(void)umask(0); /* each directory is made with its mode at once, also by the children */
	m->args = args;
	(void)snprintf(proc, sizeof proc, "/proc/self/fd/%d", FD_DATA);
	n = readlink(proc, m->data_dir, sizeof m->data_dir - 1);
	if (n < 0 || (size_t)n >= sizeof m->data_dir - 1)
		return err_set(
		    e, n < 0 ? -errno : -ENAMETOOLONG, "find the path of %s", args->data_dir);
	for (size_t i = 0; i < ELEMENTSOF(roots); i++)
		if ((r = open_root(m, &roots[i], e)) < 0)
			return r;
	m->has_quota = mnt_quota_is_on(m->root_fds[MNT_ROOT__MNT_ROOT_ALLOC]);
	m->trash_full = true; /* what a predecessor left */
	return 0;
}

int
mnt_alloc_read(const ProtobufCBinaryData *field, char ret[ID_UUID_SIZE], struct err *e)
{
	struct id id;

	if (!id_from_bytes(field->data, field->len, &id))
		return err_say(
		    e, -EINVAL, "the request's alloc is not an id: it has %zu bytes", field->len);
	id_to_uuid(&id, ret);
	return 0;
}

int
mnt_plugin_path(PluginKind kind, const char *plugin, char ret[PLUGIN_PATH_SIZE], struct err *e)
{
	if (kind == PLUGIN_KIND__PLUGIN_NONE || (unsigned)kind >= MNT_KINDS)
		return err_say(e, -EINVAL, "there is no kind %d of plugin", (int)kind);
	if (!name_is_component(plugin))
		return err_say(e, -EINVAL, "'%.140s' cannot be the name of a plugin", plugin);
	(void)snprintf(ret, PLUGIN_PATH_SIZE, "%s/%s", mnt_kind_names[kind], plugin);
	return 0;
}

int
mnt_on_disk_stat(
    void *state, const struct ipc_packet *req, ProtobufCMessage *rep, int *ret_fd, struct err *e)
{
	MntDiskStatRep *answer = (MntDiskStatRep *)(void *)rep;
	struct statfs fs;

	if (fstatfs(FD_DATA, &fs) < 0)
		return err_set(e, -errno, "ask for the space in the data directory");
	answer->total_bytes = (uint64_t)fs.f_blocks * (uint64_t)fs.f_frsize;
	answer->free_bytes = (uint64_t)fs.f_bavail * (uint64_t)fs.f_frsize;
	answer->total_inodes = (uint64_t)fs.f_files;
	answer->free_inodes = (uint64_t)fs.f_ffree;
	return 0;
}
