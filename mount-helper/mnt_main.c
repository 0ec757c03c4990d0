// SPDX-License-Identifier: Apache-2.0
/* mnt_main.c: the mount-helper, from its constant. Runs in: mount-helper, as root. */
#include "mount-helper/mnt.h"

#include <linux/capability.h>

#include "common/privs.h"
#include "mount-helper/mnt_filter.h"

static struct mnt mnt = { .workers.spec = &mnt_spec };

static const struct proc_handle handlers[] = {
	{ MNT_ALLOC_RELEASE_REQ, 10000, mnt_on_alloc_release },
	{ MNT_DISK_LIMIT_REQ, 10000, mnt_on_disk_limit },
	{ MNT_PLUGIN_ROOT_MAKE_REQ, 10000, mnt_on_plugin_root_make },
	{ MNT_PLUGIN_ROOT_REMOVE_REQ, 10000, mnt_on_plugin_root_remove },
	{ MNT_PLUGIN_CONNECT_REQ, 10000, mnt_on_plugin_connect },
	{ MNT_VOLUME_PROVE_REQ, 10000, mnt_on_volume_prove },
	{ 0 },
};

static void
collect(void *state)
{
	struct mnt *m = state;

	workers_collect(&m->workers);
}

static int
next_timeout(void *state)
{
	const struct mnt *m = state;

	return workers_timeout(&m->workers);
}

const struct proc_spec mnt_spec = {
	.name = "mount-helper",
	.peer = IPC_MOUNT_HELPER,
	.stays_root = true, /* PRIVSEP.md, "mount-helper" */
	.caps = CAP_BIT(SYS_ADMIN) | CAP_BIT(DAC_OVERRIDE) | CAP_BIT(FOWNER),
	.no_new_privs = true,
	.lock_securebits = true,
	.filter = &mnt_prog,
	.handlers = handlers,
	.state = &mnt,
	.init = mnt_roots_open,
	.between = collect,
	.timeout_ms = next_timeout,
};

int
main(int argc, char **argv)
{
	return proc_main(&mnt_spec, argc, argv);
}
