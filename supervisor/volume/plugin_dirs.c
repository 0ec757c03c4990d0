// SPDX-License-Identifier: Apache-2.0
/* plugin_dirs.c: removes the directories of a plugin. Runs in: supervisor. */
#include "supervisor/volume/plugin_dirs.h"

#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/mem.h"
#include "supervisor/table/alloc_table.h"
#include "supervisor/core/sup_calls.h"
#include "supervisor/volume/plugins.h"
#include "supervisor/volume/volumes.h"

struct removal {
	struct id alloc;
	enum csi_plugin_kind kind;
	char plugin[NAME_BYTES_MAX + 1];
};

/* The rows decide, because the alloc's runner may be made later. */
bool
plugin_root_is_wanted(
    struct sup *sup, enum csi_plugin_kind kind, const char *plugin, const struct id *except)
{
	if (plugin_exists(sup, plugin, kind) || volume_plugin_has_mounts(sup, plugin, kind))
		return true;
	alloc_foreach(sup, sa)
	{
		for (size_t i = 0; i < sa->group->tasks.n; i++) {
			const struct csi_plugin_block *other = sa->group->tasks.v[i].csi_plugin;

			if (other && !(except && id_equal(&sa->id, except)) &&
			    !alloc_client_terminal(&sa->a) && str_eq(other->id, plugin) &&
			    other->type == kind)
				return true;
		}
	}
	return false;
}

static bool
root_is_wanted(struct sup *sup, const struct removal *rm)
{
	return plugin_root_is_wanted(sup, rm->kind, rm->plugin, &rm->alloc);
}

static void
on_removed(struct sup *sup, void *arg, int r, const void *rep, int fd, const struct err *e)
{
	if (r < 0)
		log_warn("%s", e->msg);
}

void
plugin_socket_dir_remove(struct sup *sup, const struct id *alloc)
{
	const struct file_plugin_dir_remove_req req = { .alloc = *alloc };

	(void)file_call_plugin_dir_remove(sup, &req, on_removed, NULL);
}

/* Checks again whether the root is needed, because an alloc with this plugin may have come. Its
 * root exists then, and is mounted again after this. */
static void
on_unmounted(struct sup *sup, void *arg, int r, const void *rep, int fd, const struct err *e)
{
	struct file_plugin_dir_remove_req req = { 0 };
	cleanup_free struct removal *rm = arg;

	if (r < 0) {
		on_removed(sup, NULL, r, NULL, -1, e);
		plugin_socket_dir_remove(sup, &rm->alloc);
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
	cleanup_free struct removal *rm = mem_new(struct removal);

	if (strlen(plugin) >= sizeof rm->plugin)
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
