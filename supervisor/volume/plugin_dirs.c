// SPDX-License-Identifier: Apache-2.0
/* plugin_dirs.c: removes the directories of a plugin. Runs in: supervisor. */
#include "supervisor/volume/plugin_dirs.h"

#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "supervisor/table/alloc_table.h"
#include "supervisor/core/sup_calls.h"
#include "supervisor/volume/plugins.h"
#include "supervisor/volume/volumes.h"

struct removal {
	struct id alloc;
	enum csi_plugin_kind kind;
	char plugin[NAME_BYTES_MAX + 1];
};

/* Is another alloc's task to be this plugin? By what is in the rows: its runner may be made later.
 */
static bool
root_is_wanted(struct sup *sup, const struct removal *rm)
{
	if (plugin_exists(sup, rm->plugin) || volume_plugin_has_mounts(sup, rm->plugin))
		return true;
	alloc_foreach(sup, sa)
	{
		for (size_t i = 0; i < sa->group->tasks.n; i++) {
			const struct csi_plugin_block *other = sa->group->tasks.v[i].csi_plugin;

			if (other && !id_equal(&sa->id, &rm->alloc) &&
			    !alloc_client_terminal(&sa->a) && str_eq(other->id, rm->plugin) &&
			    other->type == rm->kind)
				return true;
		}
	}
	return false;
}

static void
on_removed(struct sup *sup, void *arg, int r, const void *rep, int fd, const struct err *e)
{
	if (r < 0)
		log_warn("%s", e->msg);
}

/*
 * Asked again: an alloc that is to be this plugin may have come meanwhile. Its root is there
 * already then, and is mounted again after this.
 */
static void
on_unmounted(struct sup *sup, void *arg, int r, const void *rep, int fd, const struct err *e)
{
	struct file_plugin_dir_remove_req req = { 0 };
	cleanup_free struct removal *rm = arg;

	if (r < 0) {
		on_removed(sup, NULL, r, NULL, -1, e);
		return;
	}
	req.alloc = rm->alloc;
	req.kind = (enum plugin_kind)rm->kind;
	if (!root_is_wanted(sup, rm))
		(void)IPC_TEXT_SET(req.plugin, rm->plugin);
	(void)file_call_plugin_dir_remove(sup, &req, on_removed, NULL);
}

void
plugin_dirs_remove(
    struct sup *sup, const struct id *alloc, enum csi_plugin_kind kind, const char *plugin)
{
	struct mnt_plugin_root_remove_req req = { 0 };
	cleanup_free struct removal *rm = calloc(1, sizeof *rm);

	if (!rm || strlen(plugin) >= sizeof rm->plugin)
		return;
	rm->alloc = *alloc;
	rm->kind = kind;
	(void)strcpy(rm->plugin, plugin);
	if (root_is_wanted(sup, rm)) {
		on_unmounted(sup, steal_ptr(&rm), 0, NULL, -1, NULL);
		return;
	}
	req.kind = (enum plugin_kind)kind;
	(void)IPC_TEXT_SET(req.plugin, rm->plugin);
	(void)mnt_call_plugin_root_remove(sup, &req, on_unmounted, steal_ptr(&rm));
}
