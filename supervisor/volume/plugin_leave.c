// SPDX-License-Identifier: Apache-2.0
/* plugin_leave.c: what a plugin's task that is to stop still has to unmount. Runs in: supervisor.
 */
#include "supervisor/volume/plugin_leave.h"

#include "supervisor/table/alloc_table.h"
#include "supervisor/volume/mount.h"
#include "supervisor/volume/plugins.h"

/* Another instance that is to stop too is none. */
static bool
has_other_instance(struct sup *sup, const char *plugin, const struct id *alloc)
{
	struct plugin *p = NULL;

	while ((p = plugin_next(sup, p))) {
		const struct sup_alloc *sa = alloc_find(sup, plugin_alloc(p));

		if (str_eq(plugin_id(p), plugin) && plugin_kind(p) != CSI_PLUGIN_CONTROLLER &&
		    plugin_is_healthy(p) && !id_equal(plugin_alloc(p), alloc) &&
		    !(sa && alloc_terminal(&sa->a)))
			return true;
	}
	return false;
}

enum plugin_leave
plugin_leave(struct sup *sup, const char *plugin, const struct id *alloc)
{
	enum plugin_leave found = PLUGIN_LEAVE_FREE;
	const struct mount *m;

	if (has_other_instance(sup, plugin, alloc))
		return PLUGIN_LEAVE_FREE;
	LIST_FOREACH (m, &sup->volumes->mounts, link) {
		const struct sup_alloc *sa = alloc_find(sup, &m->rec.alloc_id);

		if (m->step == MOUNT_GONE || !str_eq(m->rec.plugin, plugin) ||
		    id_equal(&m->rec.alloc_id, alloc))
			continue;
		if (sa && alloc_terminal(&sa->a) && !client_status_is_terminal(sa->a.client_status))
			return PLUGIN_LEAVE_ENDING;
		if (m->unmounting || !sa || alloc_terminal(&sa->a))
			found = PLUGIN_LEAVE_ENDED;
	}
	return found;
}
