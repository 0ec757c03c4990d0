// SPDX-License-Identifier: Apache-2.0
/* net_make.c: makes and removes the networks of allocations. Runs in: a worker of
 * network-helper, as root. Asked by: supervisor. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/crash.h"
#include "common/fd.h"
#include "network-helper/net.h"

#define TRIES  3
#define DEL_MS 60000

#define LOCALNET "localnet" /* a file: a port is or was published at a loopback address */

/* Each port is mapped for tcp and for udp. */
static json_t *
make_ports(const struct net_job *job)
{
	static const char *const protocols[] = { "tcp", "udp" };
	json_t *ports = json_array();

	for (uint32_t i = 0; i < job->n_ports; i++)
		for (size_t k = 0; k < ELEMENTSOF(protocols); k++) {
			const struct net_port *p = &job->ports[i];
			json_t *port = json_pack("{s:i, s:i, s:s}", "hostPort", (int)p->host_port,
			    "containerPort", (int)p->inside_port, "protocol", protocols[k]);

			if (p->host_ip[0])
				(void)json_object_set_new(port, "hostIP", json_string(p->host_ip));
			(void)json_array_append_new(ports, port);
		}
	return ports;
}

/* Removes everything, unless a plugin fails: then its namespace and its ledger stay for another
 * try. */
static int
remove_all(const char *alloc, struct err *e)
{
	cleanup_json json_t *ledger = NULL;
	struct err why = { 0 };
	int r;

	if ((r = net_plugin_kill(alloc, NET_PLUGIN_MS, e)) < 0)
		return r;
	r = net_ledger_read(alloc, &ledger, &why);
	if (r < 0 && r != -ENOENT)
		return err_say(e, r, "%s", why.msg);
	/* A removal that a kill ends leaves less than a network. */
	if (ledger && json_object_set_new(ledger, "removing", json_true()) == 0)
		(void)net_ledger_write(alloc, ledger, &why);
	if (ledger && (r = net_chain_del(alloc, ledger, clock_ms() + DEL_MS, e)) < 0 &&
	    /* After an ADD that was killed, plugins fail because a rule that they want to remove
	     * was not made yet: the bridge releases the address before that. */
	    (r != -EREMOTEIO || json_object_get(ledger, "result")))
		return r;
	CRASH_POINT(NET_BEFORE_FORGET);
	/* In this order: a name without its namespace, which is what a kill may leave, makes
	 * plugins fail. */
	if ((r = net_ledger_remove(alloc, e)) < 0)
		return r;
	CRASH_POINT(NET_AFTER_FORGET);
	return net_namespace_remove(alloc, e);
}

/* A plugin that is missing is found before one has done anything. */
static int
find_plugins(const json_t *config, struct err *e)
{
	const json_t *plugins = json_object_get(config, "plugins"), *plugin;
	char dirs[CONFIG_PATH_SIZE];
	size_t i;

	json_array_foreach (plugins, i, plugin) {
		cleanup_close int fd = net_plugin_find(plugin, dirs, e);

		if (fd < 0)
			return fd;
	}
	return 0;
}

/* Plugins of several allocations run at the same time and may disturb each other, for example when
 * two of them make the bridge: so a failure is tried again. */
static int
add_network(const char *alloc, json_t *ledger, struct err *e)
{
	uint64_t until_ms = clock_ms() + NET_MAKE_MS;
	struct err why = { 0 };
	int r = -ETIMEDOUT;

	for (int i = 0; i < TRIES && r < 0 && clock_ms() < until_ms; i++) {
		r = net_chain_add(alloc, ledger, until_ms, e);
		if (r < 0 && net_chain_del(alloc, ledger, clock_ms() + DEL_MS, &why) < 0)
			return r;
		if (r == -ETIMEDOUT)
			break;
	}
	return r;
}

int
net_answer(const json_t *json, struct worker_result *ret, struct err *e)
{
	cleanup_free char *text = json_dumps(json, JSON_COMPACT);

	ret->fd = text ? fd_memfd_sealed("network", text, strlen(text)) : -ENOMEM;
	return ret->fd < 0 ? err_set(e, ret->fd, "make the answer about a network") : 0;
}

/* Returns the ledger of a network that has been made completely; NULL: it has not. */
static json_t *
find_made(const char *alloc)
{
	json_t *ledger = NULL;

	if (net_namespace_exists(alloc) && net_ledger_read(alloc, &ledger, NULL) == 0 &&
	    json_object_get(ledger, "result") && !json_object_get(ledger, "removing"))
		return ledger;
	json_decref(ledger);
	return NULL;
}

static json_t *
make_ledger(const struct net_job *job, struct err *e)
{
	json_t *config;

	if (job->kind == NET_KIND_LOOPBACK)
		return json_pack("{s:{s:[]}, s:[], s:{}}", "config", "plugins", "ports", "result");
	config = net_config_load(job, e);
	if (config && find_plugins(config, e) < 0) {
		json_decref(config);
		return NULL;
	}
	return config ? json_pack("{s:o, s:o, s:s, s:s}", "config", config, "ports",
			    make_ports(job), "args", job->args, "cni_path", net_cni->path)
		      : NULL;
}

/* Where a port is published at a loopback address of the host, the plugin portmap has made its
 * interface accept packets for these, and needs that. */
static bool
needs_localnet(const struct net_job *job)
{
	for (uint32_t i = 0; i < job->n_ports; i++)
		if (!job->ports[i].host_ip[0] || strncmp(job->ports[i].host_ip, "127.", 4) == 0)
			return close(openat(NET_FD_DIR, LOCALNET, O_CREAT | O_RDONLY, 0600)) == 0;
	return false;
}

/* portmap does so with each port. Then everybody in an allocation could send to what listens only
 * at the host's loopback address (CVE-2020-8558). Interfaces of other networks belong to whoever
 * configured these. */
static void
set_localnet(const struct net_job *job, const json_t *result)
{
	bool needed = needs_localnet(job);
	const json_t *interface;
	size_t i;

	if (job->kind != NET_KIND_BRIDGE ||
	    (!needed && faccessat(NET_FD_DIR, LOCALNET, F_OK, 0) == 0))
		return;

	json_array_foreach (json_object_get(result, "interfaces"), i, interface) {
		const char *name = json_string_value(json_object_get(interface, "name"));
		const char *sandbox = json_string_value(json_object_get(interface, "sandbox"));
		char path[64];

		if (!name || strchr(name, '/') || (sandbox && *sandbox))
			continue;
		(void)snprintf(
		    path, sizeof path, "/proc/sys/net/ipv4/conf/%s/route_localnet", name);
		(void)fd_write_file(AT_FDCWD, path, needed ? "1" : "0");
	}
}

int
net_make(int fd, const void *arg, struct worker_result *ret, struct err *e)
{
	const struct net_job *job = arg;
	cleanup_json json_t *ledger = NULL, *made = find_made(job->alloc);
	struct err why = { 0 };
	int r;

	if (made) {
		set_localnet(job,
		    json_object_get(made, "result")); /* its maker may have been killed before */
		return net_answer(json_object_get(made, "result"), ret, e);
	}
	if ((r = remove_all(job->alloc, e)) < 0)
		return r;
	ledger = make_ledger(job, e);
	if (!ledger)
		return e->code ? e->code : err_set(e, -ENOMEM, "make a network");
	(void)needs_localnet(job); /* before another one looks, while this one is being made */
	if ((r = net_namespace_make(job, e)) == 0 &&
	    (r = net_ledger_write(job->alloc, ledger, e)) == 0 && job->kind != NET_KIND_LOOPBACK)
		r = add_network(job->alloc, ledger, e);
	if (r < 0) {
		(void)remove_all(job->alloc, &why); /* or by the supervisor's next request */
		return r;
	}
	set_localnet(job, json_object_get(ledger, "result"));
	CRASH_POINT(NET_AFTER_MAKE);
	return net_answer(json_object_get(ledger, "result"), ret, e);
}

int
net_check(int fd, const void *arg, struct worker_result *ret, struct err *e)
{
	const struct net_job *job = arg;
	cleanup_json json_t *made = find_made(job->alloc);
	int r = net_plugin_kill(job->alloc, NET_PLUGIN_MS, e);

	/* One that is not made is made by the supervisor's next request. */
	return r == 0 && made ? net_chain_check(job->alloc, made, clock_ms() + NET_CHECK_MS, e) : r;
}

int
net_drop(int fd, const void *arg, struct worker_result *ret, struct err *e)
{
	const struct net_job *job = arg;

	return remove_all(job->alloc, e);
}
