// SPDX-License-Identifier: Apache-2.0
/* node_cpu.c: fingerprint of the processors. Runs in: supervisor. */
#include "supervisor/node/node_cpu.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base64.h"
#include "common/cleanup.h"
#include "common/fd.h"
#include "common/log.h"
#include "proto/agent_config.h"
#include "supervisor/node/cores.h"
#include "supervisor/node/node_attr.h"

#define MHZ_FALLBACK 1000
#define NUMA_MAX     64

/* Returns the clock of the first core in MHz: its maximum if the kernel knows it (*ret_max), else
 * the one in /proc/cpuinfo. */
static long
core_mhz(const char *info, bool *ret_max)
{
	cleanup_free char *text = NULL;
	const char *at;
	double mhz;

	*ret_max = fd_read_file(AT_FDCWD, "/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq",
		       64, &text) > 0;
	if (*ret_max)
		return atol(text) / 1000;
	at = info ? strstr(info, "cpu MHz") : NULL;
	if (!at || sscanf(at, "cpu MHz : %lf", &mhz) != 1 || mhz < 1)
		return MHZ_FALLBACK;
	return (long)mhz;
}

static void
take_model(struct node *n, const char *info)
{
	const char *at = info ? strstr(info, "model name") : NULL;
	char model[128];

	if (at && sscanf(at, "model name : %127[^\n]", model) == 1)
		node_attr(n, "cpu.modelname", model);
}

static void
add_core(struct topology *t, long id, int numa, long mhz, bool is_max)
{
	struct topology_core *core = list_add(topology_core, &t->cores);

	core->id = id;
	core->node_id = numa;
	core->grade = true;
	*(is_max ? &core->max_speed : &core->guess_speed) = (uint64_t)mhz;
}

/* Adds the cores of a NUMA node, only those in usable if it is not NULL. Returns how many cores the
 * node has. */
static long
add_cores(struct topology *t, const char *list, const char *usable, int numa, long mhz, bool is_max)
{
	struct core_set own = { 0 }, allowed = { 0 };
	long n = 0;

	(void)core_set_parse(&own, list);
	if (!usable || !core_set_parse(&allowed, usable))
		allowed = own;
	for (long id = 0; id < CORES_MAX; id++) {
		n += own.has[id];
		if (own.has[id] && allowed.has[id])
			add_core(t, id, numa, mhz, is_max);
	}
	return n;
}

static void
take_numa(struct node *n, struct topology *t, const char *usable, long mhz, bool is_max)
{
	char nodes[NUMA_MAX], text[BASE64_SIZE(NUMA_MAX)], path[80], name[40];
	long cores = 0;
	size_t found = 0;

	for (int i = 0; i < NUMA_MAX; i++) {
		cleanup_free char *list = NULL;

		(void)snprintf(path, sizeof path, "/sys/devices/system/node/node%d/cpulist", i);
		if (fd_read_file(AT_FDCWD, path, 4096, &list) < 0)
			continue;
		list[strcspn(list, "\n")] = '\0';
		(void)snprintf(name, sizeof name, "numa.node%d.cores", i);
		node_attr(n, name, list);
		nodes[found++] = (char)i;
		cores += add_cores(t, list, usable, i, mhz, is_max);
	}
	if (cores == 0) {
		nodes[0] = 0;
		found = 1;
		for (long i = 0; i < sysconf(_SC_NPROCESSORS_ONLN); i++)
			add_core(t, i, 0, mhz, is_max);
	}
	(void)base64_encode(nodes, found, text);
	str_set(&t->nodes, text);
	node_attrf(n, "numa.node.count", "%zu", found);
}

/* Fills in the cores that jobs may reserve: without those that the configuration keeps for the
 * machine. */
static void
take_reservable(struct node *n, struct topology *t, const struct agent_config *config)
{
	struct core_set kept = { 0 }, offered = { 0 };

	if (config->reserved_cores[0] && !core_set_parse(&kept, config->reserved_cores))
		log_warn(
		    "client { reserved { cores = \"%s\" } } is not a list of cores such as 0-3,8",
		    config->reserved_cores);
	if (!core_set_parse(&offered, config->reservable_cores)) {
		memset(offered.has, 1, sizeof offered.has);
		if (config->reservable_cores[0])
			log_warn(
			    "client { reservable_cores = \"%s\" } is not a list of cores such as "
			    "0-3,8",
			    config->reservable_cores);
	}
	for (size_t i = 0; i < t->cores.n; i++) {
		struct topology_core *core = &t->cores.v[i];

		core->disable = core_set_has(&kept, core->id);
		if (core->disable)
			ints_add(&n->reserved_resources.cpu.reserved_cpu_cores, core->id);
		else if (core_set_has(&offered, core->id))
			ints_add(&n->node_resources.cpu.reservable_cpu_cores, core->id);
	}
}

void
node_cpu_take(struct node *n, const struct agent_config *config, const char *usable)
{
	const int64_t total_mhz = (int64_t)config->cpu_total_mhz;
	struct node_cpu *cpu = &n->node_resources.cpu;
	struct topology *t = topology_new();
	cleanup_free char *info = NULL;
	bool is_max;
	long mhz;

	if (fd_read_file(AT_FDCWD, "/proc/cpuinfo", 4 << 20, &info) < 0)
		info = NULL;
	mhz = core_mhz(info, &is_max);
	take_model(n, info);
	n->node_resources.processors.topology = t;
	take_numa(n, t, usable, mhz, is_max);
	cpu->total_cpu_cores = (int64_t)t->cores.n;
	cpu->cpu_shares = total_mhz ? total_mhz : (int64_t)t->cores.n * mhz;
	t->override_total_compute = (uint64_t)total_mhz;
	if (usable)
		take_reservable(n, t, config);
	node_attrf(n, "cpu.numcores", "%lld", (long long)cpu->total_cpu_cores);
	node_attrf(n, "cpu.reservablecores", "%zu", cpu->reservable_cpu_cores.n);
	node_attrf(n, "cpu.frequency", "%ld", mhz);
	node_attrf(n, "cpu.totalcompute", "%lld", (long long)cpu->cpu_shares);
}
