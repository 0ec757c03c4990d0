// SPDX-License-Identifier: Apache-2.0
/*
 * hook_network.c: has network-helper make the networks of an alloc before its tasks, check them
 * after a restart of the agent, and remove them after the tasks: that of its group, and those of
 * containers which have one of their own. Runs in: supervisor.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/mem.h"
#include "supervisor/alloc/alloc_hooks.h"
#include "supervisor/alloc/alloc_state.h"
#include "supervisor/alloc/hook_network.h"
#include "supervisor/alloc/network_args.h"
#include "supervisor/alloc/network_result.h"
#include "supervisor/alloc/task_events.h"
#include "supervisor/core/journal.h"
#include "supervisor/core/sup_queue.h"
#include "supervisor/driver/container.h"
#include "supervisor/service/port_taken.h"
#include "supervisor/service/service_place.h"

#define RESULT_MAX   (4 << 20)
#define REMOVALS_MAX 3 /* failures after which the alloc no longer waits for its network */
/* A port may be that of a task which is being stopped, so a few seconds are waited for it. */
#define PORT_TRIES     10
#define PORT_WAIT_USEC 1000000

struct network {
	struct queued *asked; /* NULL: no request is unanswered */
	size_t at; /* the network that is made, checked or removed: 0 is the group's, then those of
		      tasks in their order */
	struct task_runner *of; /* the task whose network it is; NULL: it is the group's */
	bool checks_first;      /* its networks are checked before its tasks start */
	bool removal_waits;     /* for the answer of a check */
	bool removed;
	struct sup_timer again; /* it waits for a port that a program of the machine has */
	unsigned waits;         /* for such a port */
	unsigned failures;      /* rounds of removals in which one failed */
	int failed;             /* the error of the last that failed in this round; 0: none has */
	char *why;
};

static struct network_counts counts;

static struct network *
state_of(const struct alloc_runner *ar)
{
	return alloc_hook_state(ar, &alloc_hook_network);
}

/* Finds the first network from `at` on. Sets *ret_task; NULL: it is the group's. */
static bool
find_network(const struct alloc_runner *ar, size_t *at, const struct task **ret_task)
{
	const struct task_group *group = ar->sa->group;

	*ret_task = NULL;
	if (*at == 0 && group_own_network(group))
		return true;
	for (*at += *at == 0; *at <= group->tasks.n; ++*at) {
		*ret_task = &group->tasks.v[*at - 1];
		if (container_has_network(group, *ret_task))
			return true;
	}
	return false;
}

static struct id
network_id(const struct alloc_runner *ar, const struct task *task)
{
	return task ? container_network_id(&ar->sa->id, task->name) : ar->sa->id;
}

/* --- before the tasks --- */

static void make_next(struct alloc_runner *ar);
static void check_next(struct alloc_runner *ar);
static void remove_networks(struct alloc_runner *ar);

/* Keeps the addresses of a container's own network (NULL: it is removed) in the task's state. */
static void
set_addresses(struct task_runner *tr, const struct alloc_network_status *status)
{
	struct task_state *s = task_runner_state(tr);

	str_set(&s->address, status ? status->address : NULL);
	str_set(&s->address_ipv6, status ? status->address_ipv6 : NULL);
}

static int
take_result(struct alloc_runner *ar, int fd, struct err *e)
{
	struct alloc_network_status *status;
	struct network *n = state_of(ar);
	const void *map = NULL;
	size_t len = 0;
	int r = fd_memfd_map(fd, RESULT_MAX, &map, &len);

	if (r < 0)
		return err_set(e, r, "read the answer of network-helper");
	status = alloc_network_status_new();
	r = network_result_read(map, len, status, e);
	if (map)
		(void)munmap((void *)(uintptr_t)map, len);
	if (n->of) {
		set_addresses(n->of, status);
		alloc_network_status_free(status);
		return r;
	}
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
	if (r < 0) {
		counts.failed_makes++;
		(void)err_prefix(&why, "failed to configure networking for alloc");
	}
	alloc_changed(sup, ar->sa);
	ar->news = true;
	if (r < 0) {
		alloc_hook_done(ar, r, &why);
		return;
	}
	state_of(ar)->at++;
	make_next(ar);
}

struct filling {
	const struct alloc_runner *ar;
	struct net_network_make_req *req;
	const struct task *task;    /* whose network it is; NULL: the group's */
	struct port_wanted *wanted; /* the ports of req, with their labels; NET_PORTS_MAX */
	size_t n;
	const char *twice; /* the label of a port that another network publishes; or NULL */
};

/* Returns whether a network that is made before the task's publishes this port of the group. */
static bool
is_published(const struct filling *f, const char *label)
{
	const struct task_group *group = f->ar->sa->group;
	const struct task *other = group->tasks.v;

	for (; other != f->task; other++)
		if (container_has_network(group, other) && container_publishes(other, label))
			return true;
	return group_own_network(group) != NULL;
}

/* The addresses of the host that mean all of them need no address in a rule. A task's own ports
 * are published in any case, those of the group if the task names them. */
static void
add_port(void *arg, const char *task, const char *label, const struct port_at *at)
{
	struct filling *f = arg;
	struct net_port *p;

	if (f->task ? (task ? !str_eq(task, f->task->name) : !container_publishes(f->task, label))
		    : task != NULL)
		return;
	if (f->task && !task && is_published(f, label))
		f->twice = label;
	if (f->n++ >= NET_PORTS_MAX)
		return;
	p = &f->req->ports[f->req->n_ports++];
	p->host_port = (uint32_t)at->value;
	p->inside_port = (uint32_t)port_inside(f->task, label, at);
	if (!str_eq(at->ip, "0.0.0.0") && !str_eq(at->ip, "::"))
		(void)IPC_TEXT_SET(p->host_ip, at->ip);
	f->wanted[f->req->n_ports - 1] = (struct port_wanted){ label, p->host_ip, p->host_port };
}

struct search {
	const char *task, *label;
	bool found;
};

static void
compare_label(void *arg, const char *task, const char *label, const struct port_at *at)
{
	struct search *s = arg;

	s->found |= str_eq(s->label, label) && (!task || str_eq(task, s->task));
}

/* Checks that each port which the task names is the group's or its own. */
static int
check_ports(const struct alloc *a, const struct task *task, struct err *e)
{
	json_t *item;
	size_t i;

	json_array_foreach (driver_config_get(task, "ports"), i, item) {
		struct search s = { task->name, str(json_string_value(item)), false };

		port_each(a, compare_label, &s);
		if (!s.found)
			return err_say(e, -EINVAL,
			    "task %s: config.ports: the group's network has no port \"%.60s\"",
			    task->name, s.label);
	}
	return 0;
}

/* The settings of a network are those of all containers in it. */
static int
add_sysctls(const struct task_group *group, const struct task *of, struct net_network_make_req *req,
    struct err *e)
{
	int r = 0;

	for (size_t i = 0; i < group->tasks.n && r == 0; i++) {
		const struct task *task = &group->tasks.v[i];
		const struct driver_ops *driver = driver_find(str(task->driver));

		if (of ? of == task
		       : driver && driver->containers && !container_text(task, "network_mode"))
			r = container_network_sysctls(task, req->sysctls, sizeof req->sysctls, e);
	}
	return r;
}

/* Returns whether network-helper has made this network: its file exists, and its ports may be
 * published already. The supervisor may list that directory, but open nothing in it. */
static bool
has_file(struct sup *sup, const struct id *network)
{
	cleanup_free char *path = mem_printf("%s/netns", sup->args.runtime_dir);
	cleanup_dir DIR *d = opendir(path);
	char name[ID_UUID_SIZE];
	const struct dirent *entry;

	id_to_uuid(network, name);
	while (d && (entry = readdir(d)))
		if (strncmp(entry->d_name, name, strlen(name)) == 0 &&
		    str_eq(entry->d_name + strlen(name), ".json"))
			return true;
	return false;
}

/*
 * A published port is translated before the machine looks for a socket. So a program of the machine
 * that has it would get no connection any more, and nobody would say why. A network that exists
 * stays as it is: what its allocation has been given is not taken back. Only an allocation that ran
 * before the supervisor started can have one.
 */
static int
check_free(const struct alloc_runner *ar, const struct net_network_make_req *req,
    const struct port_wanted *wanted, struct err *e)
{
	struct err why = { 0 };
	int r;

	/* Only the plugins of a CNI network know whether it publishes ports. */
	if (req->kind != NET_KIND_BRIDGE || req->n_ports == 0 ||
	    (ar->restored && has_file(ar->sup, &req->alloc)))
		return 0;
	r = port_check_free(wanted, req->n_ports, *ar->sup->config->cni.subnet6 != '\0', &why);
	if (r == -EADDRINUSE)
		return err_say(e, r, "failed to configure networking for alloc: %s", why.msg);
	if (r < 0)
		journal_warn(JOURNAL_ALLOC, ABOUT_ALLOC(ar->sa),
		    "allocation %.8s: its ports are published without knowing whether a program of "
		    "this machine has them: %s",
		    ar->sa->a.id, why.msg);
	return 0;
}

static int
fill_request(const struct alloc_runner *ar, const struct task *task,
    struct net_network_make_req *req, struct err *e)
{
	const struct network_resource *net = task ? NULL : group_own_network(ar->sa->group);
	cleanup_free struct port_wanted *wanted = mem_zeroed(NET_PORTS_MAX, sizeof *wanted);
	struct filling f = { .ar = ar, .req = req, .task = task, .wanted = wanted };

	req->alloc = network_id(ar, task);
	req->kind = !net || str_eq(net->mode, "bridge") ? NET_KIND_BRIDGE
		    : str_eq(net->mode, "none")         ? NET_KIND_LOOPBACK
							: NET_KIND_CNI;
	if (req->kind == NET_KIND_CNI && !IPC_TEXT_SET(req->name, network_cni_name(net)))
		return err_say(e, -EINVAL, "the name of network %.64s is too long", net->mode);
	if (req->kind != NET_KIND_LOOPBACK && network_args_make(ar->sup, ar->sa, req->args, e) < 0)
		return e->code;
	if ((task && check_ports(&ar->sa->a, task, e) < 0) ||
	    add_sysctls(ar->sa->group, task, req, e) < 0)
		return e->code;
	port_each(&ar->sa->a, add_port, &f);
	if (f.twice)
		return err_say(e, -EINVAL,
		    "task %s: port \"%.60s\" is published by another network of the group: only "
		    "one can have it",
		    task->name, f.twice);
	return f.n > NET_PORTS_MAX ? err_say(e, -E2BIG, "the group has %zu ports, %d are allowed",
					 f.n, NET_PORTS_MAX)
				   : check_free(ar, req, wanted, e);
}

/* Returns whether the container could start at all. If not, it needs no network, and its own start
 * says why. */
static bool
may_start(const struct alloc_runner *ar, const struct task *task)
{
	const struct agent_config *config = ar->sup->config;
	const struct driver_ops *driver = driver_find(str(task->driver));
	struct err unused = { 0 };

	return driver_usable(config, driver, &unused) == 0 &&
	       driver->check(config, task, false, &unused) == 0;
}

static void make_next(struct alloc_runner *ar);

static void
on_again(void *arg)
{
	make_next(arg);
}

/* Returns whether the network is tried again, because its port may become free. */
static bool
waits_for_port(struct alloc_runner *ar, int r, const struct err *e)
{
	struct network *n = state_of(ar);

	if (r != -EADDRINUSE || n->waits == PORT_TRIES)
		return false;
	if (n->waits++ == 0)
		alloc_tell_tasks(ar, EVENT_HOOK_MESSAGE, e->msg);
	sup_timer_set(ar->sup, &n->again, CLOCK_MONOTONIC, PORT_WAIT_USEC, on_again, ar);
	return true;
}

static void
make_next(struct alloc_runner *ar)
{
	cleanup_free struct net_network_make_req *req = NULL;
	struct network *n = state_of(ar);
	const struct task *task;
	struct err e = { 0 };
	bool found;
	int r;

	n->of = NULL;
	while ((found = !ar->stopping && find_network(ar, &n->at, &task)) && task &&
	       (!(n->of = alloc_find_task(ar->sa, task->name)) || !may_start(ar, task)))
		n->at++;
	if (!found) {
		alloc_hook_done(ar, 0, NULL);
		n->at = 0;
		if (ar->restored && !n->checks_first)
			check_next(ar);
		return;
	}
	req = mem_new(struct net_network_make_req);
	r = fill_request(ar, task, req, &e);
	if (r == 0) {
		n->asked = queue_ask(ar->sup, QUEUE_NETWORK, req, -1, on_made, ar);
	} else if (!waits_for_port(ar, r, &e)) {
		counts.failed_makes++;
		alloc_hook_done(ar, r, &e);
	}
}

/* --- checks after a restart of the agent --- */

/*
 * Others may have broken networks, which outlive the agent. Before a task starts, a network that
 * fails its check is made again. If a task runs already, it keeps the network as it is, because a
 * new one would cut it off: then checks delay nothing, and a failure is only reported.
 */
static void
tell_broken(struct alloc_runner *ar, const char *why)
{
	char text[ERR_MSG_SIZE + 256];

	(void)snprintf(text, sizeof text,
	    "network: it failed its check after a restart of the agent: %s; %s", why,
	    state_of(ar)->checks_first ? "it is made again"
				       : "running tasks keep it as it is; a new allocation has a "
					 "new one (`drover alloc stop`)");
	journal_warn(JOURNAL_ALLOC, ABOUT_ALLOC(ar->sa), "allocation %.8s: %s", ar->sa->a.id, text);
	alloc_tell_tasks(ar, EVENT_HOOK_MESSAGE, text);
}

/* A removal that failed is repeated, and reported, by the request to make the network. */
static void
on_dropped(struct sup *sup, void *arg, int r, const void *rep, int fd, const struct err *e)
{
	struct alloc_runner *ar = arg;

	state_of(ar)->asked = NULL;
	state_of(ar)->at++;
	check_next(ar);
}

static void
on_checked(struct sup *sup, void *arg, int r, const void *rep, int fd, const struct err *e)
{
	struct alloc_runner *ar = arg;
	struct network *n = state_of(ar);
	const struct task *task;

	n->asked = NULL;
	if (n->removal_waits) {
		remove_networks(ar);
		return;
	}
	if (r < 0)
		tell_broken(ar, e->msg);
	if (r < 0 && n->checks_first && find_network(ar, &n->at, &task)) {
		struct net_network_drop_req req = { .alloc = network_id(ar, task) };

		n->asked = queue_ask(sup, QUEUE_NETWORK_DROP, &req, -1, on_dropped, ar);
		return;
	}
	n->at++;
	check_next(ar);
}

static void
check_next(struct alloc_runner *ar)
{
	struct network *n = state_of(ar);
	const struct task *task;

	if (!ar->stopping && find_network(ar, &n->at, &task)) {
		struct net_network_check_req req = { .alloc = network_id(ar, task) };

		n->asked = queue_ask(ar->sup, QUEUE_NET_CHECK, &req, -1, on_checked, ar);
	} else if (n->checks_first) {
		n->at = 0;
		make_next(ar);
	}
}

static void
make_networks(struct alloc_runner *ar)
{
	struct network *n = state_of(ar);

	n->at = 0;
	n->checks_first = ar->restored && !alloc_has_run(ar);
	if (n->checks_first)
		check_next(ar);
	else
		make_next(ar);
}

/* A request that was sent is answered in some minutes, and its network is removed only after that.
 */
static void
stop_making(struct alloc_runner *ar)
{
	struct network *n = state_of(ar);

	if (!sup_timer_is_set(&n->again) && (!n->asked || queue_has_begun(n->asked)))
		return;
	sup_timer_cancel(&n->again);
	queue_forget(steal_ptr(&n->asked));
	alloc_hook_done(ar, 0, NULL);
}

/* --- after the tasks --- */

static void remove_next(struct alloc_runner *ar);

/* The alloc is removed without its network: `drover leaks` lists it, and the agent's next start
 * tries again. */
static void
leave_network(struct alloc_runner *ar, const struct err *e)
{
	journal_warn(JOURNAL_LEFTOVER, ABOUT_ALLOC(ar->sa),
	    "allocation %.8s is removed, but a network of it stays, after %u tries: %s; `drover "
	    "leaks` "
	    "lists it, and a restart of the agent tries again",
	    ar->sa->a.id, REMOVALS_MAX, e->msg);
	alloc_hook_done(ar, 0, NULL);
}

static void
end_round(struct alloc_runner *ar)
{
	struct network *n = state_of(ar);
	struct err e = { 0 };

	n->removed = n->failed == 0;
	if (n->removed) {
		alloc_hook_done(ar, 0, NULL);
		return;
	}
	(void)err_say(&e, n->failed, "%s", n->why);
	if (ar->phase == ALLOC_DESTROYING && ++n->failures >= REMOVALS_MAX)
		leave_network(ar, &e);
	else
		alloc_hook_done(ar, n->failed, &e);
}

/* A network that cannot be removed keeps no other one, with its ports, from being removed. */
static void
on_removed(struct sup *sup, void *arg, int r, const void *rep, int fd, const struct err *e)
{
	struct alloc_runner *ar = arg;
	struct network *n = state_of(ar);

	n->asked = NULL;
	if (r < 0) {
		counts.failed_removals++;
		n->failed = r;
		str_set(&n->why, e->msg);
		journal_warn(JOURNAL_ALLOC, ABOUT_ALLOC(ar->sa),
		    "allocation %.8s: a network of it is not removed yet: %s", ar->sa->a.id,
		    e->msg);
	} else if (n->of) {
		set_addresses(n->of, NULL);
		alloc_changed(sup, ar->sa);
	}
	n->at++;
	remove_next(ar);
}

static void
remove_next(struct alloc_runner *ar)
{
	struct network *n = state_of(ar);
	const struct task *task;
	struct net_network_drop_req req;

	if (!find_network(ar, &n->at, &task)) {
		end_round(ar);
		return;
	}
	n->of = task ? alloc_find_task(ar->sa, task->name) : NULL;
	req = (struct net_network_drop_req){ .alloc = network_id(ar, task) };
	n->asked = queue_ask(ar->sup, QUEUE_NETWORK_DROP, &req, -1, on_removed, ar);
}

/* Also when the alloc is removed, if its postrun failed. */
static void
remove_networks(struct alloc_runner *ar)
{
	struct network *n = state_of(ar);

	if (n->removed) {
		alloc_hook_done(ar, 0, NULL);
		return;
	}
	n->at = 0;
	n->failed = 0;
	if (n->asked && !queue_has_begun(n->asked))
		queue_forget(steal_ptr(&n->asked));
	n->removal_waits = n->asked != NULL;
	if (!n->removal_waits)
		remove_next(ar);
}

static void
forget_request(struct alloc_runner *ar)
{
	sup_timer_cancel(&state_of(ar)->again);
	queue_forget(steal_ptr(&state_of(ar)->asked));
	free_p(&state_of(ar)->why);
}

const char *
task_network_address(const struct task_runner *tr)
{
	const struct alloc_network_status *status = tr->ar->sa->a.network_status;
	const struct task_state *own =
	    map_get(task_state, &tr->ar->sa->a.task_states, tr->task->name);

	if (container_has_network(tr->ar->sa->group, tr->task))
		return own ? str(own->address) : "";
	return status ? str(status->address) : "";
}

unsigned
alloc_count_networks(const struct sup_alloc *sa)
{
	unsigned n = group_own_network(sa->group) && sa->a.network_status;

	for (size_t i = 0; i < sa->group->tasks.n; i++) {
		const struct task *task = &sa->group->tasks.v[i];
		const struct task_state *s = map_get(task_state, &sa->a.task_states, task->name);

		n += s && *str(s->address) && container_has_network(sa->group, task);
	}
	return n;
}

const struct network_counts *
network_counts(void)
{
	return &counts;
}

ALLOC_HOOK(network, "network", sizeof(struct network), .shutdown = forget_request,
    .prerun = make_networks, .stop = stop_making, .postrun = remove_networks,
    .destroy = remove_networks);
