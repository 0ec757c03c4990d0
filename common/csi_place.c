// SPDX-License-Identifier: Apache-2.0
/* csi_place.c: where CSI plugins and volumes lie. Runs in: mount-helper, file-helper. */
#include "common/csi_place.h"

#include <errno.h>
#include <stdio.h>

const char *const csi_kind_dirs[CSI_KINDS] = {
	[PLUGIN_KIND__PLUGIN_CONTROLLER] = "controller",
	[PLUGIN_KIND__PLUGIN_NODE] = "node",
	[PLUGIN_KIND__PLUGIN_MONOLITH] = "monolith",
};

int
csi_root_path(PluginKind kind, const char *plugin, char ret[CSI_ROOT_SIZE], struct err *e)
{
	if (kind == PLUGIN_KIND__PLUGIN_NONE || (unsigned)kind >= CSI_KINDS)
		return err_say(e, -EINVAL, "there is no kind %d of plugin", (int)kind);
	if (!name_is_component(plugin))
		return err_say(e, -EINVAL, "'%.140s' cannot be the name of a plugin", plugin);
	(void)snprintf(ret, CSI_ROOT_SIZE, "%s/%s", csi_kind_dirs[kind], plugin);
	return 0;
}

int
csi_place_read(const VolumePlace *v, struct csi_place *ret, struct err *e)
{
	char alloc[ID_UUID_SIZE];
	int r;

	if (!v)
		return err_say(e, -EINVAL, "the request names no volume");
	if ((r = csi_root_path(v->kind, v->plugin, ret->root, e)) < 0)
		return r;
	if (!name_is_component(v->volume) || !name_is_component(v->usage))
		return err_say(e, -EINVAL, "'%.140s' and '%.140s' cannot be a volume and its usage",
		    v->volume, v->usage);
	ret->is_staging = v->alloc.len == 0;
	if (!ret->is_staging && (r = id_alloc_read(v->alloc.data, v->alloc.len, alloc, e)) < 0)
		return r;
	if (ret->is_staging)
		(void)snprintf(ret->dir, sizeof ret->dir, "staging/%s", v->volume);
	else
		(void)snprintf(ret->dir, sizeof ret->dir, "per-alloc/%s/%s", alloc, v->volume);
	ret->plugin = v->plugin;
	ret->volume = v->volume;
	ret->leaf = v->usage;
	return 0;
}
