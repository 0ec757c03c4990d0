/* SPDX-License-Identifier: Apache-2.0 */
/* csi_instance.h: what a node knows about an instance of a CSI plugin on it, and the capacity that
 * the plugin reports. Runs in: supervisor, cli. */
#ifndef DROVER_MODEL_CSI_INSTANCE_H
#define DROVER_MODEL_CSI_INSTANCE_H

#include "model/csi.h"

struct csi_instance {
	char *alloc_id, *node_id; /* no alloc_id: the configuration names its socket */
	char *type, *provider, *version;
	bool healthy;
	char *health_description;
	int64_t health_since; /* ns */
	char *external_node_id;
	/* The specification's names. */
	struct strings plugin, expansion, controller, node, group;
	struct csi_topology *topology;
	int64_t volumes, max_volumes; /* published on this node; 0: any number */
};

/* Bytes; largest and smallest: of one volume, 0 if the plugin does not say. */
struct csi_capacity {
	int64_t available, largest, smallest;
};

MODEL_DECLARE(csi_instance);
MODEL_DECLARE(csi_capacity);

#endif
