/* SPDX-License-Identifier: Apache-2.0 */
/* host_data.h: facts about the machine, as in Agent.Host and /v1/agent/host. Runs in:
 * supervisor. */
#ifndef DROVER_MODEL_HOST_DATA_H
#define DROVER_MODEL_HOST_DATA_H

#include "model/engine/field.h"

struct host_address {
	char *type;   /* "IPv4" or "IPv6" */
	char *string; /* the address as text */
	char *address, *interface;
};

struct host_space {
	int64_t disk_mb, used_mb;
};

struct host_data {
	char *os;
	MODEL_LIST(struct host_address) network;
	char *resolv_conf, *hosts; /* contents of these files */
	struct string_map environment;
	MODEL_MAP(struct host_space) disk; /* by mount point */
};

struct rpc_host_rep {
	char *agent_id;
	struct host_data *host_data;
};

MODEL_DECLARE(host_address);
MODEL_DECLARE(host_space);
MODEL_DECLARE(host_data);
MODEL_DECLARE(rpc_host_rep);

#endif
