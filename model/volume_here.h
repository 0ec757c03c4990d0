/* SPDX-License-Identifier: Apache-2.0 */
/* volume_here.h: what a node knows about a CSI volume that is mounted on it: its fill level and
 * condition, as its plugin reports them, and its mounts. Runs in: supervisor, cli. */
#ifndef DROVER_MODEL_VOLUME_HERE_H
#define DROVER_MODEL_VOLUME_HERE_H

#include "model/engine/field.h"

enum volume_condition { CONDITION_UNKNOWN, CONDITION_NORMAL, CONDITION_ABNORMAL };

extern const char *const volume_condition_names[CONDITION_ABNORMAL + 1];

/* Bytes or inodes. used + available can be less than total: the rest is reserved. */
struct volume_amount {
	int64_t used, available, total;
	int64_t percent; /* of what can be used; computed */
};

struct volume_here_mount {
	char *alloc_id, *name, *path; /* name: the volume's in the group */
	char *state;                  /* "mounting", "published", "unmounting" */
	bool read_only;
	char *waits_for; /* what mounting or unmounting waits for, a sentence; empty: nothing */
	/* The last error of unmounting; tries 0: there was none. */
	char *error;
	int64_t tries, since, next_try; /* ns */
};

struct volume_here {
	char *node_id;
	struct volume_amount *bytes, *inodes; /* NULL: the plugin has not reported it */
	enum volume_condition condition;
	char *condition_message;
	int64_t reported; /* ns; 0: the plugin has never answered */
	char *error;      /* why the last request to the plugin failed */
	MODEL_LIST(struct volume_here_mount) mounts;
};

/* The answer of the plugin's controller to ControllerGetVolume. */
struct volume_at_controller {
	struct strings nodes; /* where it is published, by the plugin's ids */
	enum volume_condition condition;
	char *condition_message;
	char *error; /* why the request failed */
};

MODEL_DECLARE(volume_at_controller);
MODEL_DECLARE(volume_amount);
MODEL_DECLARE(volume_here_mount);
MODEL_DECLARE(volume_here);

/* Computes amount->percent, rounded up; 999 for all above that. */
void volume_amount_rate(struct volume_amount *amount);

#endif
