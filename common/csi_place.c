// SPDX-License-Identifier: Apache-2.0
/* csi_place.c: paths of CSI plugins and volumes. Runs in: mount-helper, file-helper. */
#include "common/csi_place.h"

#include <errno.h>
#include <stdio.h>

const char *const csi_kind_dirs[CSI_KINDS] = {
	[PLUGIN_CONTROLLER] = "controller",
	[PLUGIN_NODE] = "node",
	[PLUGIN_MONOLITH] = "monolith",
};

int
csi_root_path(enum plugin_kind kind, const char *plugin, char ret[CSI_ROOT_SIZE], struct err *e)
{
	if (kind == PLUGIN_NONE)
		return err_say(e, -EINVAL, "the request names no kind of plugin");
	if (!name_is_component(plugin))
		return err_say(e, -EINVAL, "'%.140s' cannot be the name of a plugin", plugin);
	(void)snprintf(ret, CSI_ROOT_SIZE, "%s/%s", csi_kind_dirs[kind], plugin);
	return 0;
}

int
csi_place_read(const struct volume_place *v, struct csi_place *ret, struct err *e)
{
	char alloc[ID_UUID_SIZE];
	int r;

	if ((r = csi_root_path(v->kind, v->plugin, ret->root, e)) < 0)
		return r;
	if (!name_is_component(v->volume) || !name_is_component(v->usage))
		return err_say(e, -EINVAL, "'%.140s' and '%.140s' cannot be a volume and its usage",
		    v->volume, v->usage);
	ret->is_staging = id_is_zero(&v->alloc);
	if (ret->is_staging)
		(void)snprintf(ret->dir, sizeof ret->dir, "staging/%s", v->volume);
	else {
		id_to_uuid(&v->alloc, alloc);
		(void)snprintf(ret->dir, sizeof ret->dir, "per-alloc/%s/%s", alloc, v->volume);
	}
	ret->plugin = v->plugin;
	ret->volume = v->volume;
	ret->leaf = v->usage;
	return 0;
}
