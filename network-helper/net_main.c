// SPDX-License-Identifier: Apache-2.0
/*
 * net_main.c: the network-helper, from its constant. It makes the networks of allocations, and runs
 * CNI plugins, each request in a worker. The supervisor starts it on demand. Runs in:
 * network-helper, as root with the capabilities that plugins need.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>

#include "common/cgroup.h"
#include "common/config_map.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/path.h"
#include "common/port_list.h"
#include "network-helper/net.h"
#include "network-helper/net_filter.h"

#define PORT_MAX 65535
#define WORK_MS  200000 /* longer than all calls of plugins can take */

const struct config_cni *net_cni;
const char *net_runtime_dir;

static const struct proc_spec network_helper;
static struct workers workers = { .spec = &network_helper };
static int fds[NET_FDS] = { -1, -1, -1 };

static int
open_places(void *unused, const struct proc_args *args, struct err *e)
{
	const struct agent_policy *policy = policy_map(FD_CONFIG, e);
	struct cgroup cgroup;
	char path[CONFIG_PATH_SIZE + 8];
	int r;

	if (!policy)
		return e->code;
	net_cni = &policy->cni;
	net_runtime_dir = args->runtime_dir;
	(void)snprintf(path, sizeof path, "%s/netns", args->runtime_dir);
	fds[0] = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	fds[1] = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (fds[0] < 0 || fds[1] < 0)
		return err_set(e, -errno, "open %s", fds[0] < 0 ? path : "/proc/self/ns/net");
	r = cgroup_open(&cgroup, args->cgroup, false, e);
	if (r == 0)
		fds[2] = fcntl(cgroup.exec[CGROUP_V2], F_DUPFD_CLOEXEC, 0);
	/* Without a mount of cgroup2 the hierarchy exists as long as a descriptor of it. */
	cgroup_close(&cgroup);
	return r == 0 && fds[2] < 0 ? err_set(e, -errno, "open the cgroup of plugins") : r;
}

static int
read_alloc(const struct id *id, struct net_job *job, struct err *e)
{
	*job = (struct net_job){ 0 };
	return id_alloc_read(id, job->alloc, e);
}

static bool
is_address(const char *text)
{
	uint8_t address[16];

	return !*text || inet_pton(AF_INET, text, address) == 1 ||
	       inet_pton(AF_INET6, text, address) == 1;
}

static int
make_network(const struct ipc_packet *p, struct err *e)
{
	const struct net_network_make_req *req = p->msg;
	struct net_job job;
	int r = read_alloc(&req->alloc, &job, e);

	if (r < 0)
		return r;
	job.kind = req->kind;
	job.n_ports = req->n_ports;
	if (req->kind == NET_KIND_UNKNOWN ||
	    (req->kind == NET_KIND_CNI ? !name_is_component(req->name) : *req->name != '\0'))
		return err_say(e, -EINVAL, "the request for a network is not valid");
	for (uint32_t i = 0; i < req->n_ports; i++) {
		const struct net_port *port = &req->ports[i];

		if (port->host_port < 1 || port->host_port > PORT_MAX || port->inside_port < 1 ||
		    port->inside_port > PORT_MAX || !is_address(port->host_ip))
			return err_say(e, -EINVAL, "a port of the network is not valid");
		if (port_list_has(net_cni->reserved_ports, port->host_port))
			return err_say(e, -EPERM,
			    "port %u of this host is in client { reserved { reserved_ports } }: no "
			    "allocation can have it",
			    port->host_port);
		job.ports[i] = *port;
	}
	(void)strcpy(job.args, req->args);
	(void)strcpy(job.sysctls, req->sysctls);
	(void)strcpy(job.name, req->kind == NET_KIND_BRIDGE ? "nomad" : req->name);
	return worker_start(
	    &workers, p, WORK_MS, fds, NET_FDS, net_make, &job, NULL, "make the network", e);
}

/* For requests that have only the allocation. */
static int
start_for(const struct ipc_packet *p, const struct id *alloc, worker_fn *fn, const char *what,
    struct err *e)
{
	struct net_job job;
	int r = read_alloc(alloc, &job, e);

	return r < 0 ? r
		     : worker_start(&workers, p, WORK_MS, fds, NET_FDS, fn, &job, NULL, what, e);
}

static int
handle_request(void *unused, const struct ipc_packet *p, void *rep, int *ret_fd, struct err *e)
{
	switch (p->type) {
	case NET_NETWORK_MAKE_REQ:
		return make_network(p, e);
	case NET_NETWORK_DROP_REQ:
		return start_for(p, &((const struct net_network_drop_req *)p->msg)->alloc, net_drop,
		    "remove the network", e);
	case NET_NETWORK_CHECK_REQ:
		return start_for(p, &((const struct net_network_check_req *)p->msg)->alloc,
		    net_check, "check the network", e);
	case NET_PLUGIN_LIST_REQ:
		return worker_start(&workers, p, WORK_MS, fds, NET_FDS, net_list, NULL, NULL,
		    "list the CNI plugins", e);
	}
	return -EPROTO;
}

static void
collect(void *unused)
{
	workers_collect(&workers);
}

static int
next_timeout(void *unused)
{
	return workers_timeout(&workers);
}

static const struct proc_spec network_helper = {
	.name = "network-helper",
	.peer = IPC_NETWORK_HELPER,
	.stays_root = true, /* PRIVSEP.md, "network-helper" */
	.caps = CAP_BIT(SYS_ADMIN) | CAP_BIT(NET_ADMIN) | CAP_BIT(NET_RAW),
	.caps_of_children = true,
	.no_new_privs = true,
	.lock_securebits = true,
	.filter = &net_prog,
	.handle = handle_request,
	.init = open_places,
	.between = collect,
	.timeout_ms = next_timeout,
};

int
main(int argc, char **argv)
{
	if (argc == 5 && strcmp(argv[1], NET_CLEANUP_WORD) == 0) /* drover cleanup */
		return net_cleanup(argv[2], argv[3], argv[4]);
	return proc_main(&network_helper, argc, argv);
}
