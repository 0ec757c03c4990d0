/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hb_server.h: the known servers, by name and address, in the order in which they are tried. Runs
 * in: heartbeat.
 */
#ifndef DROVER_HEARTBEAT_HB_SERVER_H
#define DROVER_HEARTBEAT_HB_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "common/err.h"
#include "heartbeat/hb_rpc.h"
#include "proto/agent_config.h"

#define HB_SERVER_PORT 4647

struct hb_server {
	char name[HB_RPC_ADDR_SIZE]; /* as in the configuration or from the cluster */
	char why[192];               /* its last error, or "" */
};

struct hb_servers {
	struct hb_server list[HB_RPC_SERVERS];
	size_t n, next; /* next: index of the server to try next */
};

/* Sets the configured servers, in random order. */
void hb_servers_from_config(struct hb_servers *s, const struct agent_config *config);
/* Sets the servers that the cluster lists, in random order. Returns false, with the order
 * unchanged, if they are the same. */
bool hb_servers_from_cluster(struct hb_servers *s, const struct hb_rpc_node *node);
struct hb_server *hb_servers_find(struct hb_servers *s, const char *name);
/* Writes the last error of each server in one line. */
void hb_servers_why(const struct hb_servers *s, char *ret, size_t size);

/*
 * Splits "host", "host:port" or "[v6]:port" into host (HB_RPC_ADDR_SIZE) and port. Returns 0, or
 * -EINVAL for any other form.
 */
int hb_server_split(const char *name, char *ret_host, unsigned *ret_port);
/* Returns 1 and the address if host is one; 0 if it is a name, for hb_resolve.h. */
int hb_server_address(const char *host, unsigned port, struct sockaddr_storage *ret);

#endif
