/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hb_server.h: the servers that are known, by name and address, in the order in which they are
 * tried. Runs in: heartbeat.
 */
#ifndef DROVER_HB_SERVER_H
#define DROVER_HB_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "common/err.h"
#include "heartbeat/hb_rpc.h"
#include "proto/agent_config.h"

#define HB_SERVER_PORT 4647

struct hb_server {
	char name[HB_RPC_ADDR_SIZE]; /* as the configuration or the cluster has it */
	char why[192];               /* what went wrong with it last; "": nothing */
};

struct hb_servers {
	struct hb_server list[HB_RPC_SERVERS];
	size_t n, next; /* next: the one to try next */
};

/* Those of the configuration, in any order. */
void hb_servers_from_config(struct hb_servers *s, const struct agent_config *config);
/* Those that the cluster names, in any order; false: they are the same, and so is the order. */
bool hb_servers_from_cluster(struct hb_servers *s, const struct hb_rpc_node *node);
struct hb_server *hb_servers_find(struct hb_servers *s, const char *name);
/* What is wrong with each, in one line. */
void hb_servers_why(const struct hb_servers *s, char *ret, size_t size);

/*
 * "host", "host:port", "[v6]:port" into host (HB_RPC_ADDR_SIZE) and port. -EINVAL for what is none
 * of these.
 */
int hb_server_split(const char *name, char *ret_host, unsigned *ret_port);
/* 1: host is an address; 0: it is a name, for hb_resolve.h. */
int hb_server_address(const char *host, unsigned port, struct sockaddr_storage *ret);

#endif
