// SPDX-License-Identifier: Apache-2.0
/* mnt_roots.c: the roots below which all is made, and names in requests. Runs in: mount-helper. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
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

/*
 * logs and secrets are the launcher's to make: one has a group, the other is a file system of its
 * own.
 */
static const struct root {
	MntRoot root;
	const char *name;
	bool ours, has_trash;
} roots[] = {
	{ MNT_ROOT__MNT_ROOT_ALLOC, "alloc", true, true },
	{ MNT_ROOT__MNT_ROOT_SECRETS, "secrets", false, true },
	{ MNT_ROOT__MNT_ROOT_LOGS, "logs", false, true },
	{ MNT_ROOT__MNT_ROOT_CSI, "csi", true, false },
	{ MNT_ROOT__MNT_ROOT_CSI_SOCK, "csi/sock", true, true },
};

static int
open_root(struct mnt *m, const struct root *root, struct err *e)
{
	int *fd = &m->root_fds[root->root], r;

	if (root->ours && mkdirat(m->data_fd, root->name, 0711) < 0 && errno != EEXIST)
		return err_set(e, -errno, "make %s/%s", m->data_dir, root->name);
	*fd = fd_open_beneath(m->data_fd, root->name, O_RDONLY | O_DIRECTORY, 0);
	if (*fd < 0)
		return err_set(e, *fd, "open %s/%s", m->data_dir, root->name);
	/*
	 * So that a directory made in it has the supervisor's group at once: without CAP_FSETID
	 * nobody can give it the bit later.
	 */
	if (root->root == MNT_ROOT__MNT_ROOT_LOGS &&
	    (fchown(*fd, 0, m->drover_gid) < 0 || fchmod(*fd, 02750) < 0))
		return err_set(e, -errno, "give %s/logs to group %u", m->data_dir, m->drover_gid);
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
	m->data_fd = FD_DATA;
	(void)snprintf(proc, sizeof proc, "/proc/self/fd/%d", m->data_fd);
	n = readlink(proc, m->data_dir, sizeof m->data_dir - 1);
	if (n < 0 || (size_t)n >= sizeof m->data_dir - 1)
		return err_set(
		    e, n < 0 ? -errno : -ENAMETOOLONG, "find the path of %s", args->data_dir);
	(void)snprintf(m->cgroup, sizeof m->cgroup, "%s", args->cgroup);
	memcpy(m->agent_uids, args->agent_uids, sizeof m->agent_uids);
	m->executor_uid = args->executor_uid;
	m->executor_gid = args->executor_gid;
	m->drover_gid = args->drover_gid;
	for (size_t i = 0; i < ELEMENTSOF(roots); i++)
		if ((r = open_root(m, &roots[i], e)) < 0)
			return r;
	for (int kind = PLUGIN_KIND__PLUGIN_CONTROLLER; kind < MNT_KINDS; kind++) {
		r = dir_make_at(m->root_fds[MNT_ROOT__MNT_ROOT_CSI], mnt_kind_names[kind], 0711, 0,
		    0, &m->kind_fds[kind]);
		if (r < 0)
			return err_set(e, r, "make %s/csi/%s", m->data_dir, mnt_kind_names[kind]);
	}
	m->trash_full = true; /* what a predecessor left */
	return 0;
}

int
mnt_id_read(const ProtobufCBinaryData *field, const char *what, struct id *ret,
    char ret_uuid[ID_UUID_SIZE], struct err *e)
{
	if (!id_from_bytes(field->data, field->len, ret))
		return err_say(e, -EINVAL, "the request's %s is not an id: it has %zu bytes", what,
		    field->len);
	id_to_uuid(ret, ret_uuid);
	return 0;
}

int
mnt_plugin_check(PluginKind kind, const char *plugin, struct err *e)
{
	if (kind == PLUGIN_KIND__PLUGIN_NONE || (unsigned)kind >= MNT_KINDS)
		return err_say(e, -EINVAL, "there is no kind %d of plugin", (int)kind);
	if (!name_is_component(plugin))
		return err_say(e, -EINVAL, "'%.140s' cannot be the name of a plugin", plugin);
	return 0;
}

int
mnt_on_disk_stat(
    void *state, const struct ipc_packet *req, ProtobufCMessage *rep, int *ret_fd, struct err *e)
{
	const struct mnt *m = state;
	MntDiskStatRep *answer = (MntDiskStatRep *)(void *)rep;
	struct statfs fs;

	if (fstatfs(m->data_fd, &fs) < 0)
		return err_set(e, -errno, "ask for the space in %s", m->data_dir);
	answer->total_bytes = (uint64_t)fs.f_blocks * (uint64_t)fs.f_frsize;
	answer->free_bytes = (uint64_t)fs.f_bavail * (uint64_t)fs.f_frsize;
	return 0;
}
