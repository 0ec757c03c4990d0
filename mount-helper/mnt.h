/* SPDX-License-Identifier: Apache-2.0 */
/* mnt.h: what the files of the mount-helper share. Runs in: mount-helper, as root. */
#ifndef DROVER_MOUNT_HELPER_MNT_H
#define DROVER_MOUNT_HELPER_MNT_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"
#include "common/id.h"
#include "common/proc.h"
#include "common/worker.h"
#include "proto/agent_config.h"
#include "proto/mount.pb-c.h"

#define MNT_KINDS        4 /* of plugin: PluginKind, NONE unused */
#define PLUGIN_PATH_SIZE (sizeof "controller/" + NAME_BYTES_MAX)

enum mnt_place { MNT_PLACE_ALLOC, MNT_PLACE_CSI, MNT_PLACE_SOCK, MNT_PLACES };

struct mnt {
	const struct proc_args *args;
	char data_dir[CONFIG_PATH_SIZE]; /* without links, as mountinfo has it */
	int root_fds[MNT_PLACES]; /* by enum mnt_place; directories that no task can change */
	int trash_fd;             /* of csi/sock */
	struct workers workers;
};

extern const struct proc_spec mnt_spec;

/* mnt_roots.c: opens the roots, before the drop. */
int mnt_roots_open(void *state, const struct proc_args *args, struct err *e);
extern const char *const mnt_kind_names[MNT_KINDS];

/* One handler per message of proto/mount.proto; see proc_handler in common/proc.h. */
proc_handler mnt_on_alloc_release, mnt_on_disk_limit, mnt_on_plugin_dir_make,
    mnt_on_plugin_dir_remove, mnt_on_plugin_connect, mnt_on_volume_dir_make, mnt_on_volume_prove,
    mnt_on_volume_dir_remove;

/* "node/name", below csi/; -EINVAL unless the kind has a directory and the name may be a component.
 */
int mnt_plugin_path(PluginKind kind, const char *plugin, char ret[PLUGIN_PATH_SIZE], struct err *e);

/*
 * mnt_trash.c: moves dir_fd's name, a path perhaps, out of the way at once; file-helper removes it
 * later. 0, also if it was not there.
 */
int mnt_trash_put(const struct mnt *m, int dir_fd, const char *name, struct err *e);

/* mnt_release.c: takes the secrets of an alloc's raw_exec tasks off. 0 or -errno. */
int mnt_secrets_unmount(const struct mnt *m, const char *alloc, struct err *e);

/* mnt_quota.c: an alloc that is to be removed has no limit any more; its project is free when it is
 * gone. */
void mnt_quota_drop(const struct mnt *m, const char *alloc);

/*
 * mnt_plugin.c: the root of a plugin by its path below csi/, O_PATH. -ENOENT; -EBUSY when something
 * else is mounted on it; with need_mount -ENOTCONN when it is no mount point of its own (after a
 * reboot, until the plugin is started again).
 */
int mnt_plugin_root_open(
    const struct mnt *m, const char *path, bool need_mount, int *ret_fd, struct err *e);

/* mnt_volume.c: removes per-alloc/<alloc> of all plugins, which must be empty. 0 or -errno. */
int mnt_volume_alloc_remove(const struct mnt *m, const char *alloc, struct err *e);

#endif
