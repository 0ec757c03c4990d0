/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hb_resolve.h: looks up addresses of servers that are configured by name. A look-up loads foreign
 * code (NSS), opens files and may take long, so a child does it, which has heartbeat's user and no
 * descriptor but its socket. Runs in: heartbeat, and its child.
 */
#ifndef DROVER_HEARTBEAT_HB_RESOLVE_H
#define DROVER_HEARTBEAT_HB_RESOLVE_H

#include <sys/socket.h>

#include "common/err.h"
#include "common/proc.h"
#include "heartbeat/hb_rpc.h"
#include "proto/agent_config.h"

struct hb_resolve_answer {
	char host[HB_RPC_ADDR_SIZE];
	int code; /* error of getaddrinfo(3); 0: address is one of the results */
	struct sockaddr_storage address;
};

extern const struct proc_child hb_resolve_child;

/* Forks the child if a server is configured by name; must be called before the drop. Returns 0 and
 * sets *ret_fd to its socket, or to -1 if there is no child; or -errno with *e. */
int hb_resolve_start(
    const struct agent_config *config, const struct proc_args *args, int *ret_fd, struct err *e);
/* Requests a look-up; the answer arrives on the socket. Returns 0 or -errno. */
int hb_resolve_ask(int fd, const char *host);
/* Receives an answer. Returns 1, 0 if the child has ended, or -EAGAIN. */
int hb_resolve_take(int fd, struct hb_resolve_answer *ret);

#endif
