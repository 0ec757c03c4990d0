// SPDX-License-Identifier: Apache-2.0
/* file_main.c: the file-helper, from its constant. Runs in: file-helper. */
#include <linux/capability.h>

#include "common/privs.h"
#include "file-helper/file.h"
#include "file-helper/file_filter.h"

static const struct proc_spec file_spec;
static struct file file = { .workers.spec = &file_spec };

static const struct proc_handle handlers[] = {
	{ FILE_ALLOC_DIR_MAKE_REQ, 10000, file_on_alloc_dir_make },
	{ FILE_ALLOC_DIR_REMOVE_REQ, 10000, file_on_alloc_dir_remove },
	{ FILE_PLUGIN_DIR_MAKE_REQ, 10000, file_on_plugin_dir_make },
	{ FILE_PLUGIN_DIR_REMOVE_REQ, 10000, file_on_plugin_dir_remove },
	{ FILE_VOLUME_DIR_MAKE_REQ, 10000, file_on_volume_dir_make },
	{ FILE_VOLUME_DIR_REMOVE_REQ, 10000, file_on_volume_dir_remove },
	{ FILE_ROOT_LIST_REQ, 10000, file_on_root_list },
	{ FILE_DISK_STAT_REQ, 5000, file_on_disk_stat },
	{ FILE_ALLOC_FS_REQ, 10000, file_on_alloc_fs },
	{ FILE_DISK_USAGE_REQ, 5000, file_on_disk_usage },
	{ 0 },
};

static void
collect(void *state)
{
	struct file *f = state;

	workers_collect(&f->workers);
	file_trash_empty(f);
}

static int
next_timeout(void *state)
{
	const struct file *f = state;

	return workers_timeout(&f->workers);
}

static const struct proc_spec file_spec = {
	.name = "file-helper",
	.peer = IPC_FILE_HELPER,
	/* Gives directories away; reads and removes what is another's; in sticky directories too.
	 */
	.caps = CAP_BIT(CHOWN) | CAP_BIT(DAC_OVERRIDE) | CAP_BIT(FOWNER),
	.no_new_privs = true,
	.lock_securebits = true,
	.filter = &file_prog,
	.handlers = handlers,
	.state = &file,
	.init = file_roots_open,
	.between = collect,
	.timeout_ms = next_timeout,
};

int
main(int argc, char **argv)
{
	return proc_main(&file_spec, argc, argv);
}
