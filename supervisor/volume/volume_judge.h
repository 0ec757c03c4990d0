/* SPDX-License-Identifier: Apache-2.0 */
/* volume_judge.h: compares what a plugin lists about a volume with its use on this node. Pure. Runs
 * in: supervisor. */
#ifndef DROVER_SUPERVISOR_VOLUME_VOLUME_JUDGE_H
#define DROVER_SUPERVISOR_VOLUME_VOLUME_JUDGE_H

#include "common/err.h"
#include "model/node_answers.h"

struct volume_evidence {
	const char *plugin, *external_id;
	const struct csi_controller_info *controller;
	const char *node;                  /* the plugin's own id of this node; "": not known */
	bool mounted;                      /* the volume is published on this node */
	bool condition_told;               /* volume_stats.c reports the condition */
	const struct rpc_csi_entry *entry; /* NULL: the plugin's complete list does not have it */
};

struct volume_verdict {
	const char *kind, *advice;
	char text[ERR_MSG_SIZE];
};

/* Fills in the i-th disagreement and returns true; false if there are no more. */
bool volume_judge(const struct volume_evidence *ev, unsigned i, struct volume_verdict *ret);
/* Sorts the list for volume_entry_find(), which returns the entry of a volume, or NULL. */
void volume_entries_sort(struct rpc_csi_rep *list);
const struct rpc_csi_entry *volume_entry_find(
    const struct rpc_csi_rep *list, const char *external_id);

#endif
