/* SPDX-License-Identifier: Apache-2.0 */
/* alloc_resources.h: the resources that the source allocated. Runs in: supervisor, cli. */
#ifndef DROVER_MODEL_ALLOC_RESOURCES_H
#define DROVER_MODEL_ALLOC_RESOURCES_H

#include "model/network.h"
#include "model/task.h"

struct alloc_cpu {
	int64_t cpu_shares;
	struct ints reserved_cores;
};

struct alloc_memory {
	int64_t memory_mb, memory_max_mb;
};

struct alloc_device {
	char *vendor, *type, *name;
	struct strings device_ids;
};

struct alloc_task_resources {
	struct alloc_cpu cpu;
	struct alloc_memory memory;
	MODEL_LIST(struct network_resource) networks;
	MODEL_LIST(struct alloc_device) devices;
};

struct alloc_port {
	char *label;
	int64_t value, to;
	char *host_ip;
	bool ignore_collision;
};

struct alloc_shared_resources {
	MODEL_LIST(struct network_resource) networks;
	int64_t disk_mb;
	MODEL_LIST(struct alloc_port) ports;
};

struct alloc_resources {
	MODEL_MAP(struct alloc_task_resources) tasks;
	MODEL_MAP(struct lifecycle) task_lifecycles;
	struct alloc_shared_resources shared;
};

MODEL_DECLARE(alloc_task_resources);
MODEL_DECLARE(alloc_port);
MODEL_DECLARE(alloc_resources);

#endif
