// SPDX-License-Identifier: Apache-2.0
/* node_state.c: the description of this node. Runs in: supervisor. */
#include "supervisor/node/node_state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/fd.h"
#include "common/mem.h"
#include "supervisor/node/host_usage.h"
#include "supervisor/node/mounts.h"
#include "supervisor/node/node_attr.h"
#include "supervisor/node/node_cpu.h"
#include "supervisor/node/node_disk.h"
#include "supervisor/node/node_network.h"
#include "supervisor/source/source.h"
#include "supervisor/core/store.h"
#include "supervisor/core/sup_turn.h"

/* The version that constraints of jobs see: the newest release of the servers whose requirements on
 * a node drover meets. */
#define NOMAD_VERSION "1.11.3"

/* The signals that change_signal and kill_signal may name. */
#define SIGNALS                                                                                    \
	"SIGABRT,SIGALRM,SIGBUS,SIGCHLD,SIGCONT,SIGFPE,SIGHUP,SIGILL,SIGINT,SIGIO,SIGIOT,SIGKILL," \
	"SIGPIPE,SIGPROF,SIGQUIT,SIGSEGV,SIGSTOP,SIGSYS,SIGTERM,SIGTRAP,SIGTSTP,SIGTTIN,SIGTTOU,"  \
	"SIGURG,SIGUSR1,SIGUSR2,SIGWINCH,SIGXCPU,SIGXFSZ"

struct node_state {
	struct node n;
	struct dirty id_row;
};

void
node_attr(struct node *n, const char *name, const char *value)
{
	string_map_set(&n->attributes, name, value);
}

void
node_attrf(struct node *n, const char *name, const char *fmt, ...)
{
	char value[512];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(value, sizeof value, fmt, ap);
	va_end(ap);
	node_attr(n, name, value);
}

static int
write_id(struct sup *sup, struct dirty *d, struct err *e)
{
	int r = store_meta_put(sup->store, "node_id", sup->node->n.id, e);

	return r < 0 ? r : store_meta_put(sup->store, "node_secret_id", sup->node->n.secret_id, e);
}

static int
take_id(struct sup *sup, struct err *e)
{
	struct node_state *ns = sup->node;
	struct id id = id_random_uuid(), secret = id_random_uuid();
	char text[ID_UUID_SIZE];
	int r = sup->new_identity ? -ENOENT : store_meta_get(sup->store, "node_id", &ns->n.id, e);

	if (r >= 0)
		return store_meta_get(sup->store, "node_secret_id", &ns->n.secret_id, e);
	if (r != -ENOENT)
		return r;
	id_to_uuid(&id, text);
	str_set(&ns->n.id, text);
	id_to_uuid(&secret, text);
	str_set(&ns->n.secret_id, text);
	ns->id_row.write = write_id;
	ns->id_row.point = CRASH_ROW_NODE;
	turn_write(sup, &ns->id_row);
	turn_durable(sup);
	return 0;
}

/* Features of jobs that this node refuses, and that servers do not filter by: a constraint
 * `${attr.drover.propagation_mode} != "false"` keeps a job away. */
static const char *const lacking[] = {
	"drover.propagation_mode",
};

static void
take_names(struct sup *sup, struct node *n)
{
	const struct agent_config *c = sup->config;
	struct utsname u;

	if (uname(&u) < 0)
		memset(&u, 0, sizeof u);
	str_set(&n->name, c->name[0] ? c->name : u.nodename);
	str_set(&n->datacenter, c->datacenter[0] ? c->datacenter : "dc1");
	str_set(&n->node_class, c->node_class);
	str_set(&n->node_pool, c->node_pool[0] ? c->node_pool : "default");
	node_attr(n, "unique.hostname", u.nodename);
	node_attr(n, "kernel.name", "linux");
	node_attr(n, "kernel.version", u.release);
	node_attr(n, "cpu.arch",
	    strcmp(u.machine, "x86_64") == 0    ? "amd64"
	    : strcmp(u.machine, "aarch64") == 0 ? "arm64"
						: u.machine);
	node_attr(n, "arch", u.machine);
	node_attr(n, "kernel.arch", u.machine);
	node_attr(n, "nomad.version", NOMAD_VERSION);
	node_attr(n, "nomad.service_discovery", "true");
	node_attr(n, "nomad.revision", sup->args.build);
	node_attr(n, "os.signals", SIGNALS);
	node_attr(n, "drover.version", DROVER_VERSION);
	node_attr(n, "drover.template", "true"); /* was "false" once: for mixed versions */
	for (size_t i = 0; i < ELEMENTSOF(lacking); i++)
		node_attr(n, lacking[i], "false");
	for (uint32_t i = 0; i < c->n_meta; i++)
		string_map_set(&n->meta, c->meta[i].key, c->meta[i].value);
}

/* The number of Debian's point release, such as 12.11, is only in a file of its own. Ubuntu has
 * this file too, with the name of Debian's release. */
static void
take_debian_version(struct node *n)
{
	cleanup_free char *text = NULL;

	if (!str_eq(string_map_get(&n->attributes, "os.name"), "debian") ||
	    fd_read_file(AT_FDCWD, "/etc/debian_version", 128, &text) < 0)
		return;
	text[strcspn(text, "\n")] = '\0';
	if (text[0])
		node_attr(n, "os.version", text);
}

/* "ID=debian" and "VERSION_ID="12"" of os-release(5). */
static void
take_os(struct node *n)
{
	cleanup_free char *text = NULL;
	char value[128];

	if (fd_read_file(AT_FDCWD, "/etc/os-release", 65536, &text) < 0)
		return;
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		if (sscanf(line, "ID=%*[\"]%127[^\"]", value) == 1 ||
		    sscanf(line, "ID=%127[^\"]", value) == 1)
			node_attr(n, "os.name", value);
		else if (sscanf(line, "VERSION_ID=\"%127[^\"]", value) == 1 ||
			 sscanf(line, "VERSION_ID=%127[^\"]", value) == 1)
			node_attr(n, "os.version", value);
	}
	take_debian_version(n);
}

/* Sets the device of the allocs' disk as the host statistics name it, so that it can be found
 * there. */
static void
take_device(struct sup *sup, struct node *n)
{
	cleanup_free char *text = NULL;
	const char *device;
	struct stat st;

	if (fstat(sup->log_dir_fd, &st) < 0 ||
	    fd_read_file(AT_FDCWD, "/proc/self/mountinfo", 64u << 20, &text) < 0)
		return;
	device = host_device_find(text, major(st.st_dev), minor(st.st_dev));
	if (device)
		node_attr(n, "unique.storage.volume", device);
}

/* Returns the processors of the cgroup for runs with reserved cores; NULL if there is none. */
static char *
read_cpuset(struct sup *sup)
{
	static const char *const forms[] = { "/sys/fs/cgroup%s/cores/cpuset.cpus.effective",
		"/sys/fs/cgroup/cpuset%s/runs/cpuset.cpus" };
	char path[CONFIG_PATH_SIZE + 64], *text;

	(void)snprintf(path, sizeof path, forms[0], sup->args.cgroup);
	if (fd_read_file(AT_FDCWD, path, 65536, &text) > 0)
		return text;
	(void)snprintf(path, sizeof path, forms[1], sup->args.cgroup);
	return fd_read_file(AT_FDCWD, path, 65536, &text) > 0 ? text : NULL;
}

static void
take_resources(struct sup *sup, struct node *n)
{
	const struct agent_config *c = sup->config;
	cleanup_free char *cpuset = read_cpuset(sup);
	struct sysinfo si;

	node_cpu_take(n, c, cpuset);
	if (sysinfo(&si) == 0)
		n->node_resources.memory.memory_mb =
		    (int64_t)((uint64_t)si.totalram * si.mem_unit >> 20);
	if (c->memory_total_mb)
		n->node_resources.memory.memory_mb = (int64_t)c->memory_total_mb;
	take_device(sup, n);
	node_attrf(n, "memory.totalbytes", "%llu",
	    (unsigned long long)n->node_resources.memory.memory_mb << 20);
	n->reserved_resources.cpu.cpu_shares = (int64_t)c->reserved_cpu_mhz;
	n->reserved_resources.memory.memory_mb = (int64_t)c->reserved_memory_mb;
	n->reserved_resources.disk.disk_mb = (int64_t)c->reserved_disk_mb;
	n->reserved = (struct legacy_resources){ .cpu = n->reserved_resources.cpu.cpu_shares,
		.memory_mb = n->reserved_resources.memory.memory_mb,
		.disk_mb = n->reserved_resources.disk.disk_mb };
	node_attrf(n, "cpu.usablecompute", "%lld",
	    (long long)(n->node_resources.cpu.cpu_shares - n->reserved.cpu));
	n->resources = (struct legacy_resources){ .cpu = n->node_resources.cpu.cpu_shares,
		.memory_mb = n->node_resources.memory.memory_mb };
}

/* Sets the attributes of the cgroups, with the controllers that are missing. */
static void
take_cgroups(struct sup *sup, struct node *n)
{
	static const char *const names[] = { "memory", "cpu", "pids", "cpuset" };
	cleanup_free char *v1 = NULL, *v2 = NULL;
	char word[32], missing[64] = "";

	(void)fd_read_file(AT_FDCWD, "/proc/cgroups", 65536, &v1);
	if (fd_read_file(AT_FDCWD, "/sys/fs/cgroup/cgroup.controllers", 4096, &v2) < 0)
		v2 = NULL;
	for (size_t i = 0; i < ELEMENTSOF(names); i++) {
		const char *at;

		(void)snprintf(word, sizeof word, "\n%s\t", names[i]);
		at = v1 ? strstr(v1, word) : NULL;
		if ((v2 && strstr(v2, names[i])) || (!v2 && at && atoi(at + strlen(word)) > 0))
			continue;
		(void)snprintf(missing + strlen(missing), sizeof missing - strlen(missing), "%s%s",
		    missing[0] ? "," : "", names[i]);
	}
	node_attr(n, "os.cgroups.version", v2 ? "2" : "1");
	node_attr(n, "unique.cgroup.version", v2 ? "v2" : "v1"); /* its name up to 1.6 */
	node_attr(n, "unique.cgroup.mountpoint", "/sys/fs/cgroup");
	if (missing[0])
		node_attr(n, "os.cgroups.missing", missing);
	str_set(&n->cgroup_parent, sup->args.cgroup);
}

static void
take_host_volumes(struct sup *sup, struct node *n)
{
	for (uint32_t i = 0; i < sup->config->n_host_volumes; i++) {
		const struct config_host_volume *hv = &sup->config->host_volumes[i];
		struct host_volume *v = map_put(host_volume, &n->host_volumes, hv->name);

		str_set(&v->name, hv->name);
		str_set(&v->path, hv->path);
		v->read_only = hv->read_only;
	}
}

int
node_state_new(struct sup *sup, struct err *e)
{
	struct node_state *ns = mem_new(struct node_state);
	int r;

	node_init(&ns->n);
	sup->node = ns;
	mounts_new(sup);
	host_usage_new(sup);
	r = take_id(sup, e);
	if (r < 0)
		return r;
	ns->n.status = NODE_READY;
	ns->n.scheduling_eligibility = NODE_ELIGIBLE;
	ns->n.status_updated_at = clock_real_ns() / NS_PER_S;
	take_names(sup, &ns->n);
	take_os(&ns->n);
	take_resources(sup, &ns->n);
	take_cgroups(sup, &ns->n);
	node_network_take(&ns->n, sup->config);
	take_host_volumes(sup, &ns->n);
	return 0;
}

void
node_state_free(struct sup *sup)
{
	node_disk_free(sup);
	host_usage_free(sup);
	mounts_free(sup);
	if (!sup->node)
		return;
	turn_forget_write(sup, &sup->node->id_row);
	node_done(&sup->node->n);
	free_p(&sup->node);
}

void
node_count_disk(struct sup *sup)
{
	node_disk_take(sup, &sup->node->n);
}

const char *
node_ip(struct sup *sup)
{
	const struct node *n = node_get(sup);

	return n->node_resources.networks.n > 0 ? str(n->node_resources.networks.v[0].ip)
						: "127.0.0.1";
}

struct node *
node_of(struct sup *sup)
{
	return &sup->node->n;
}

const struct node *
node_get(struct sup *sup)
{
	return &sup->node->n;
}

void
node_put_driver(struct sup *sup, const char *driver, bool enabled)
{
	struct node *n = &sup->node->n;
	struct driver_info *d = map_put(driver_info, &n->drivers, driver);
	char name[64];

	d->detected = d->healthy = enabled;
	d->update_time = clock_real_ns();
	str_set(&d->health_description, enabled ? "Healthy" : "disabled");
	if (!enabled)
		return;
	(void)snprintf(name, sizeof name, "driver.%s", driver);
	node_attr(n, name, "1");
	string_map_set(&d->attributes, name, "true");
}

void
node_put_driver_attr(struct sup *sup, const char *driver, const char *key, const char *value)
{
	struct node *n = &sup->node->n;
	char name[64];

	(void)snprintf(name, sizeof name, "driver.%s.%s", driver, key);
	node_attr(n, name, strcmp(value, "true") == 0 ? "1" : value);
	string_map_set(&map_put(driver_info, &n->drivers, driver)->attributes, name, value);
}

/* Removes "driver.NAME" and all that begin with "driver.NAME.". */
static void
remove_attrs(struct string_map *map, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = map->n; i-- > 0;) {
		const char *key = map->v[i].key;

		if (strncmp(key, name, len) == 0 && (!key[len] || key[len] == '.'))
			string_map_remove(map, key);
	}
}

void
node_hide_driver(struct sup *sup, const char *driver, bool detected)
{
	struct driver_info *d = map_get(driver_info, &sup->node->n.drivers, driver);
	char name[64];

	(void)snprintf(name, sizeof name, "driver.%s", driver);
	remove_attrs(&sup->node->n.attributes, name);
	remove_attrs(&d->attributes, name);
	d->detected = detected;
}

void
node_describe_driver(struct sup *sup, const char *driver, const char *text)
{
	str_set(&map_get(driver_info, &sup->node->n.drivers, driver)->health_description, text);
}

/* Servers keep evaluations that they could not place by classes of nodes with the same attributes,
 * and do not try a class again that had no healthy driver. So the attribute makes the node one of
 * another class while a driver is unhealthy. */
static void
mark_driver(struct node *n, const char *driver, bool is_unhealthy)
{
	char name[64];

	(void)snprintf(name, sizeof name, "driver.%s.unhealthy", driver);
	if (is_unhealthy)
		node_attr(n, name, "1");
	else
		string_map_remove(&n->attributes, name);
}

void
node_put_driver_health(struct sup *sup, const char *driver, const char *why)
{
	struct driver_info *d = map_get(driver_info, &sup->node->n.drivers, driver);

	if (!d)
		return;
	mark_driver(&sup->node->n, driver, why);
	if (why || !d->healthy)
		str_set(&d->health_description, why ? why : "Healthy");
	d->healthy = !why;
	d->update_time = clock_real_ns();
	node_changed(sup);
}

void
node_forget_plugins(struct sup *sup)
{
	struct node *n = &sup->node->n;

	while (n->csi_controller_plugins.n > 0)
		(void)map_remove(
		    csi_info, &n->csi_controller_plugins, n->csi_controller_plugins.v[0].key);
	while (n->csi_node_plugins.n > 0)
		(void)map_remove(csi_info, &n->csi_node_plugins, n->csi_node_plugins.v[0].key);
}

void
node_put_plugin(struct sup *sup, bool controller, const char *id, const struct csi_info *info)
{
	struct node *n = &sup->node->n;
	struct csi_info *at = controller ? map_put(csi_info, &n->csi_controller_plugins, id)
					 : map_put(csi_info, &n->csi_node_plugins, id);

	csi_info_done(at);
	csi_info_copy(info, at);
}

void
node_changed(struct sup *sup)
{
	if (sup->source)
		sup->source->ops->node_updated(sup->source);
}

void
node_set_drain(struct sup *sup, const struct drain_strategy *drain)
{
	struct node *n = &sup->node->n;
	struct drain_strategy *own = drain ? drain_strategy_new() : NULL;

	if (own)
		*own = *drain;
	drain_strategy_free(n->drain_strategy);
	n->drain_strategy = own;
	n->drain = own;
}

void
node_set_takes_allocs(struct sup *sup, bool takes)
{
	node_set_eligibility(sup, takes ? NODE_ELIGIBLE : NODE_INELIGIBLE);
	sup->source->ops->set_drain(sup->source, !takes);
}

void
node_set_eligibility(struct sup *sup, enum node_eligibility eligibility)
{
	sup->node->n.scheduling_eligibility = eligibility;
}

void
node_set_description(struct sup *sup, const char *text)
{
	str_set(&sup->node->n.status_description, text);
}

void
node_set_meta(struct sup *sup, const json_t *over)
{
	struct string_map *meta = &sup->node->n.meta;
	const char *key;
	json_t *value;

	for (size_t i = 0; i < meta->n; i++) {
		free(meta->v[i].key);
		free(meta->v[i].value);
	}
	free(meta->v);
	*meta = (struct string_map){ 0 };
	for (uint32_t i = 0; i < sup->config->n_meta; i++) {
		key = sup->config->meta[i].key;
		if (!json_object_get(over, key))
			string_map_set(meta, key, sup->config->meta[i].value);
	}
	json_object_foreach ((json_t *)(uintptr_t)over, key, value)
		if (json_is_string(value))
			string_map_set(meta, key, json_string_value(value));
}
