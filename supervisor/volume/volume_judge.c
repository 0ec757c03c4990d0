// SPDX-License-Identifier: Apache-2.0
/* volume_judge.c: compares what a plugin lists about a volume with its use on this node. Runs in:
 * supervisor. */
#include "supervisor/volume/volume_judge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"

static bool
is_unknown(const struct volume_evidence *ev, struct volume_verdict *ret)
{
	(void)snprintf(ret->text, sizeof ret->text,
	    "plugin %.64s does not list the volume with external id %.128s: it was deleted "
	    "there, or the plugin does not list all",
	    ev->plugin, ev->external_id);
	return !ev->entry;
}

static bool
is_abnormal(const struct volume_evidence *ev, struct volume_verdict *ret)
{
	if (!ev->entry || !ev->entry->is_abnormal || ev->condition_told)
		return false;
	(void)snprintf(ret->text, sizeof ret->text,
	    "plugin %.64s reports that the volume is abnormal: %.300s", ev->plugin,
	    str(ev->entry->status));
	return true;
}

/* Which other nodes have it is judged by those who know all claims. */
static bool
is_not_attached(const struct volume_evidence *ev, struct volume_verdict *ret)
{
	const struct csi_controller_info *c = ev->controller;

	if (!ev->entry || !ev->mounted || !*ev->node || !c->supports_attach_detach ||
	    !c->supports_list_volumes_attached_nodes ||
	    strings_has(&ev->entry->published_external_node_ids, ev->node))
		return false;
	(void)snprintf(ret->text, sizeof ret->text,
	    "it is mounted on this node, but plugin %.64s says that it is not published on node "
	    "%.128s",
	    ev->plugin, ev->node);
	return true;
}

static const struct {
	const char *kind, *advice;
	bool (*applies)(const struct volume_evidence *ev, struct volume_verdict *ret);
} verdicts[] = {
	{ "unknown-to-plugin",
	    "restore it at the storage provider, or stop its allocations and run `drover volume "
	    "deregister`",
	    is_unknown },
	{ "condition", "see the plugin's documentation for what it reports", is_abnormal },
	{ "not-attached-at-plugin",
	    "stop its allocations on this node: their next start attaches it again",
	    is_not_attached },
};

bool
volume_judge(const struct volume_evidence *ev, unsigned i, struct volume_verdict *ret)
{
	for (size_t at = 0; at < ELEMENTSOF(verdicts); at++) {
		if (!verdicts[at].applies(ev, ret) || i-- > 0)
			continue;
		ret->kind = verdicts[at].kind;
		ret->advice = verdicts[at].advice;
		return true;
	}
	return false;
}

static int
compare_entries(const void *a, const void *b)
{
	const struct rpc_csi_entry *x = a, *y = b;

	return strcmp(str(x->external_id), str(y->external_id));
}

void
volume_entries_sort(struct rpc_csi_rep *list)
{
	if (list->entries.n > 0)
		qsort(list->entries.v, list->entries.n, sizeof *list->entries.v, compare_entries);
}

const struct rpc_csi_entry *
volume_entry_find(const struct rpc_csi_rep *list, const char *external_id)
{
	const struct rpc_csi_entry key = { .external_id = (char *)(uintptr_t)external_id };

	return list->entries.n > 0 ? bsearch(&key, list->entries.v, list->entries.n,
					 sizeof *list->entries.v, compare_entries)
				   : NULL;
}
