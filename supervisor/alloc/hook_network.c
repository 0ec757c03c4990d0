// SPDX-License-Identifier: Apache-2.0
/*
 * hook_network.c: has network-helper make the network of an alloc before its tasks, and remove it
 * after them. Runs in: supervisor.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/mem.h"
#include "supervisor/alloc/alloc_hooks.h"
#include "supervisor/alloc/alloc_state.h"
#include "supervisor/alloc/network_result.h"
#include "supervisor/core/journal.h"
#include "supervisor/core/sup_queue.h"
#include "supervisor/service/ports.h"

#define RESULT_MAX (4 << 20)

struct network {
	struct queued *asked; /* NULL: no request is unanswered */
	bool removed;
};

static struct network *
state_of(const struct alloc_runner *ar)
{
	return alloc_hook_state(ar, &alloc_hook_network);
}

/* --- before the tasks --- */

static int
take_result(struct alloc_runner *ar, int fd, struct err *e)
{
	struct alloc_network_status *status;
	const void *map = NULL;
	size_t len = 0;
	int r = fd_memfd_map(fd, RESULT_MAX, &map, &len);

	if (r < 0)
		return err_set(e, r, "read the answer of network-helper");
	status = alloc_network_status_new();
	r = network_result_read(map, len, status, e);
	if (map)
		(void)munmap((void *)(uintptr_t)map, len);
	alloc_network_status_free(ar->sa->a.network_status);
	ar->sa->a.network_status = status;
	return r;
}

static void
on_made(struct sup *sup, void *arg, int r, const void *rep, int fd, const struct err *e)
{
	struct alloc_runner *ar = arg;
	cleanup_close int result = fd;
	struct err why = { 0 };

	state_of(ar)->asked = NULL;
	if (r < 0)
		(void)err_say(&why, r, "%s", e->msg);
	else
		r = take_result(ar, result, &why);
	if (r < 0)
		(void)err_prefix(&why, "failed to configure networking for alloc");
	alloc_changed(sup, ar->sa);
	ar->news = true;
	alloc_hook_done(ar, r, &why);
}

struct filling {
	struct net_network_make_req *req;
	size_t n;
};

/* The addresses of the host that mean all of them need no address in a rule. */
static void
add_port(void *arg, const char *task, const char *label, const struct port_at *at)
{
	struct filling *f = arg;
	struct net_port *p;

	if (task || f->n++ >= NET_PORTS_MAX)
		return;
	p = &f->req->ports[f->req->n_ports++];
	p->host_port = (uint32_t)at->value;
	p->inside_port = (uint32_t)(at->to > 0 ? at->to : at->value);
	if (!str_eq(at->ip, "0.0.0.0") && !str_eq(at->ip, "::"))
		(void)IPC_TEXT_SET(p->host_ip, at->ip);
}

static int
fill_request(const struct alloc_runner *ar, const struct network_resource *net,
    struct net_network_make_req *req, struct err *e)
{
	struct filling f = { .req = req };

	req->alloc = ar->sa->id;
	req->kind = str_eq(net->mode, "none")     ? NET_KIND_LOOPBACK
		    : str_eq(net->mode, "bridge") ? NET_KIND_BRIDGE
						  : NET_KIND_CNI;
	if (req->kind == NET_KIND_CNI && !IPC_TEXT_SET(req->name, network_cni_name(net)))
		return err_say(e, -EINVAL, "the name of network %.64s is too long", net->mode);
	port_each(&ar->sa->a, add_port, &f);
	return f.n > NET_PORTS_MAX ? err_say(e, -E2BIG, "the group has %zu ports, %d are allowed",
					 f.n, NET_PORTS_MAX)
				   : 0;
}

static void
make_network(struct alloc_runner *ar)
{
	const struct network_resource *net = group_own_network(ar->sa->group);
	cleanup_free struct net_network_make_req *req = NULL;
	struct err e = { 0 };
	int r;

	if (!net) {
		alloc_hook_done(ar, 0, NULL);
		return;
	}
	req = mem_new(struct net_network_make_req);
	r = fill_request(ar, net, req, &e);
	if (r < 0)
		alloc_hook_done(ar, r, &e);
	else
		state_of(ar)->asked = queue_ask(ar->sup, QUEUE_NETWORK, req, -1, on_made, ar);
}

/* What has begun ends within a minute, and must end before it is undone. */
static void
stop_making(struct alloc_runner *ar)
{
	struct network *n = state_of(ar);

	if (!n->asked || queue_has_begun(n->asked))
		return;
	queue_forget(steal_ptr(&n->asked));
	alloc_hook_done(ar, 0, NULL);
}

/* --- after the tasks --- */

static void
on_removed(struct sup *sup, void *arg, int r, const void *rep, int fd, const struct err *e)
{
	struct alloc_runner *ar = arg;

	state_of(ar)->asked = NULL;
	state_of(ar)->removed = r >= 0;
	if (r < 0)
		journal_warn(JOURNAL_ALLOC, ABOUT_ALLOC(ar->sa),
		    "allocation %.8s: its network is not removed yet: %s", ar->sa->a.id, e->msg);
	alloc_hook_done(ar, r, e);
}

/* Also when the alloc is removed, if its postrun failed. */
static void
remove_network(struct alloc_runner *ar)
{
	const struct net_network_drop_req req = { .alloc = ar->sa->id };

	if (!group_own_network(ar->sa->group) || state_of(ar)->removed)
		alloc_hook_done(ar, 0, NULL);
	else
		state_of(ar)->asked =
		    queue_ask(ar->sup, QUEUE_NETWORK_DROP, &req, -1, on_removed, ar);
}

static void
forget_request(struct alloc_runner *ar)
{
	queue_forget(steal_ptr(&state_of(ar)->asked));
}

ALLOC_HOOK(network, "network", sizeof(struct network), .shutdown = forget_request,
    .prerun = make_network, .stop = stop_making, .postrun = remove_network,
    .destroy = remove_network);
