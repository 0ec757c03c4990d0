/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hb_resolve.h: addresses of servers that are configured by name. Looking them up loads foreign
 * code (NSS), opens files and may take long, so that is done by a child, which has heartbeat's user
 * and no other descriptor than its socket. Runs in: heartbeat, and its child.
 */
#ifndef DROVER_HB_RESOLVE_H
#define DROVER_HB_RESOLVE_H

#include <sys/socket.h>

#include "common/err.h"
#include "common/proc.h"
#include "heartbeat/hb_rpc.h"
#include "proto/agent_config.h"

struct hb_resolve_answer {
	char host[HB_RPC_ADDR_SIZE];
	int code; /* of getaddrinfo(3); 0: address is one of them */
	struct sockaddr_storage address;
};

extern const struct proc_child hb_resolve_child;

/* Before the drop: makes the child if a server has a name. Its socket in *ret_fd, -1: none. */
int hb_resolve_start(
    const struct agent_config *config, const struct proc_args *args, int *ret_fd, struct err *e);
/* Asks; the answer comes by the socket. 0 or -errno. */
int hb_resolve_ask(int fd, const char *host);
/* 1 an answer, 0 the child is gone, -EAGAIN. */
int hb_resolve_take(int fd, struct hb_resolve_answer *ret);

#endif
