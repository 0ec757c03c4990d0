// SPDX-License-Identifier: Apache-2.0
/* mnt_main.c: the mount-helper, from its constant. Runs in: mount-helper, as root. */
#include "mount-helper/mnt.h"

#include <linux/capability.h>

#include "common/privs.h"
#include "mount-helper/mnt_filter.h"

static struct mnt mnt = { .mounts_fd = -1 };

static const struct proc_handle handlers[] = {
	{ MNT_ALLOC_DIR_MAKE_REQ, 10000, mnt_on_alloc_dir_make },
	{ MNT_ALLOC_DIR_REMOVE_REQ, 10000, mnt_on_alloc_dir_remove },
	{ MNT_PLUGIN_DIR_MAKE_REQ, 10000, mnt_on_plugin_dir_make },
	{ MNT_PLUGIN_DIR_REMOVE_REQ, 10000, mnt_on_plugin_dir_remove },
	{ MNT_PLUGIN_CONNECT_REQ, 10000, mnt_on_plugin_connect },
	{ MNT_VOLUME_DIR_MAKE_REQ, 10000, mnt_on_volume_dir_make },
	{ MNT_VOLUME_PROVE_REQ, 10000, mnt_on_volume_prove },
	{ MNT_VOLUME_DIR_REMOVE_REQ, 10000, mnt_on_volume_dir_remove },
	{ MNT_ROOT_LIST_REQ, 10000, mnt_on_root_list },
	{ MNT_DISK_STAT_REQ, 5000, mnt_on_disk_stat },
	{ MNT_ALLOC_FS_REQ, 10000, mnt_on_alloc_fs },
	{ MNT_DISK_USAGE_REQ, 5000, mnt_on_disk_usage },
	{ 0 },
};

const struct proc_spec mnt_spec = {
	.name = "mount-helper",
	.peer = IPC_MOUNT_HELPER,
	.stays_root = true, /* PRIVSEP.md, "mount-helper" */
	.caps = CAP_BIT(SYS_ADMIN) | CAP_BIT(CHOWN) | CAP_BIT(DAC_OVERRIDE) | CAP_BIT(FOWNER),
	.no_new_privs = true,
	.lock_securebits = true,
	.filter = &mnt_prog,
	.handlers = handlers,
	.state = &mnt,
	.init = mnt_roots_open,
	.between = mnt_child_collect,
	.timeout_ms = mnt_child_timeout,
};

int
main(int argc, char **argv)
{
	return proc_main(&mnt_spec, argc, argv);
}
