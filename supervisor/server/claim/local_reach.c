// SPDX-License-Identifier: Apache-2.0
/* local_reach.c: whether this node can reach a volume, and has room for one more of its plugin.
 * Runs in: supervisor. */
#include "supervisor/server/claim/local_reach.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/cleanup.h"
#include "supervisor/server/claim/claims.h"
#include "supervisor/volume/plugin_hold.h"

static bool
node_has(const struct csi_node_info *node, const struct csi_topology *t)
{
	for (size_t i = 0; i < t->segments.n; i++) {
		const char *value =
		    node->accessible_topology
			? string_map_get(&node->accessible_topology->segments, t->segments.v[i].key)
			: NULL;

		if (!value || strcmp(value, str(t->segments.v[i].value)) != 0)
			return false;
	}
	return true;
}

/* Writes the segments as "zone=a, rack=1"; "no topology" if there are none. */
static const char *
say_segments(const struct csi_topology *t, char *buf, size_t size)
{
	size_t n = 0;

	(void)snprintf(buf, size, "no topology");
	for (size_t i = 0; t && i < t->segments.n && n < size; i++)
		n += (size_t)snprintf(buf + n, size - n, "%s%.64s=%.64s", i > 0 ? ", " : "",
		    t->segments.v[i].key, str(t->segments.v[i].value));
	return buf;
}

static int
check_topology(const struct csi_volume *vol, const struct csi_node_info *node, struct err *e)
{
	char has[200], wants[200];

	for (size_t i = 0; i < vol->topologies.n; i++)
		if (node_has(node, &vol->topologies.v[i]))
			return 0;
	if (vol->topologies.n == 0)
		return 0;
	return err_say(e, -ENOENT,
	    "CSI volume %s can be reached from %s%s, and for plugin %s this node has %s", vol->id,
	    say_segments(&vol->topologies.v[0], wants, sizeof wants),
	    vol->topologies.n > 1 ? " and other topologies" : "", str(vol->plugin_id),
	    say_segments(node->accessible_topology, has, sizeof has));
}

/* Returns how many volumes of the plugin are claimed, without this one. */
static int64_t
count_others(const struct local *l, const struct csi_volume *vol)
{
	size_t n;
	cleanup_free struct local_key **all = local_volumes_sorted(l, &n);
	int64_t used = 0;

	for (size_t i = 0; i < n; i++) {
		const struct csi_volume *v = &local_volume_of(all[i])->vol;

		used += v != vol && str_eq(v->plugin_id, vol->plugin_id) && volume_in_use(v);
	}
	return used;
}

int
local_reach_check(const struct local *l, const struct csi_volume *vol,
    const struct csi_node_info *node, struct err *e)
{
	int r = check_topology(vol, node, e);
	bool limited = node->max_volumes > 0 && node->max_volumes < INT64_MAX;
	char why[ERR_MSG_SIZE];

	if (r < 0 || volume_in_use(vol))
		return r;
	if (plugin_is_held(l->base.sup, str(vol->plugin_id), why, sizeof why))
		return err_say(e, -ENOSPC, "%s", why);
	if (!limited || count_others(l, vol) < node->max_volumes)
		return 0;
	return err_say(e, -ENOSPC,
	    "CSI plugin %s has the maximum number of volumes on this node (%lld)",
	    str(vol->plugin_id), (long long)node->max_volumes);
}
