/* SPDX-License-Identifier: Apache-2.0 */
/* task_net.h: the name, the address and the name servers of a task, and its /etc/resolv.conf. Runs
 * in: supervisor. */
#ifndef DROVER_SUPERVISOR_DRIVER_TASK_NET_H
#define DROVER_SUPERVISOR_DRIVER_TASK_NET_H

#include <netinet/in.h>

#include "model/network.h"
#include "proto/ipc_records.h"

struct task_env;

struct task_net {
	char *hostname;                /* of the group's network; "": none */
	const char *address;           /* in its network, if that is not the machine's; "": none */
	char gateway[INET_ADDRSTRLEN]; /* of the machine in that network; "": not known */
	bool has_dns;                  /* the group's network has a dns block */
	struct dns_config dns;
};

/* Returns whether it can be the name of a host. */
bool task_net_is_name(const char *name);

/*
 * Reads what a network says, and replaces the references in it. dns is that of the network, or what
 * CNI plugins said; NULL: none. address and gateway stay empty. Returns 0; or -EINVAL with *e, for
 * a name that is none, and what task_env_expand() returns. The caller calls task_net_done() in
 * either case.
 */
int task_net_read(const struct network_resource *n, const struct dns_config *dns,
    struct task_env *env, struct task_net *ret, struct err *e);
void task_net_done(struct task_net *net);

/*
 * Makes the contents of /etc/resolv.conf. What dns does not say (NULL: anything) is what the
 * machine's file says. If that names systemd-resolved, at an address of the machine alone, and the
 * task has a network of its own, it is what systemd-resolved asks itself. The caller frees the
 * result; NULL: there is nothing to say. *ret_same: it is the machine's file as it is.
 */
char *resolv_conf_make(const struct dns_config *dns, bool own_network, bool *ret_same);

#endif
