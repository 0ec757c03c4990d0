// SPDX-License-Identifier: Apache-2.0
/* mnt_roots.c: the roots below which all is made, and names in requests. Runs in: mount-helper. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
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
static const char *const places[MNT_PLACES] = {
	[MNT_PLACE_ALLOC] = "alloc",
	[MNT_PLACE_CSI] = "csi",
	[MNT_PLACE_SOCK] = "csi/sock",
};

int
mnt_roots_open(void *state, const struct proc_args *args, struct err *e)
{
	struct mnt *m = state;
	char proc[32];
	ssize_t n;
	int r;

	(void)umask(0); /* each directory is made with its mode at once */
	m->args = args;
	(void)snprintf(proc, sizeof proc, "/proc/self/fd/%d", FD_DATA);
	n = readlink(proc, m->data_dir, sizeof m->data_dir - 1);
	if (n < 0 || (size_t)n >= sizeof m->data_dir - 1)
		return err_set(
		    e, n < 0 ? -errno : -ENAMETOOLONG, "find the path of %s", args->data_dir);
	for (size_t i = 0; i < MNT_PLACES; i++) {
		r = m->root_fds[i] = fd_open_beneath(FD_DATA, places[i], O_RDONLY | O_DIRECTORY, 0);
		if (r < 0)
			return err_set(e, r, "open %s/%s", m->data_dir, places[i]);
	}
	r = dir_ensure_at(m->root_fds[MNT_PLACE_SOCK], ".trash", 0700, 0, 0, &m->trash_fd);
	return r < 0 ? err_set(e, r, "make %s/csi/sock/.trash", m->data_dir) : 0;
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
