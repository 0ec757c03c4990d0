// SPDX-License-Identifier: Apache-2.0
/* metric_parts.c: processes, plugins and volumes as rows of metrics. Runs in: supervisor. */
#include "supervisor/metrics/metric_parts.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/mem.h"
#include "supervisor/alloc/alloc_runner.h"
#include "supervisor/core/sup_child.h"
#include "model/engine/containers.h"
#include "model/node.h"
#include "supervisor/driver/driver.h"
#include "supervisor/driver/run.h"
#include "supervisor/health/probe.h"
#include "supervisor/metrics/metric_rows.h"
#include "supervisor/node/node_state.h"
#include "supervisor/source/source_api.h"
#include "supervisor/volume/mount.h"
#include "supervisor/volume/plugin_counts.h"

#define STEPS       3
#define DRIVERS_MAX 4 /* one for each of drivers[] */

struct metric_parts {
	struct metric_process processes[IPC_PEERS + 1];
	struct metric_step steps[STEPS];
	const struct source_link *link; /* NULL: there are no servers */
	struct metric_plugin *plugins;
	struct metric_volume *volumes;
	struct metric_probe *probes;
	struct metric_driver drivers[DRIVERS_MAX];
	size_t n_processes, n_plugins, n_volumes, n_calls, n_probes, n_drivers;
};

/* --- processes --- */

/* The second number of /proc/PID/statm is in pages. */
static double
read_rss(uint32_t pid)
{
	cleanup_free char *text = NULL;
	unsigned long long pages;
	char path[32];

	(void)snprintf(path, sizeof path, "/proc/%u/statm", pid);
	if (pid == 0 || fd_read_file(AT_FDCWD, path, 4096, &text) <= 0 ||
	    sscanf(text, "%*u %llu", &pages) != 1)
		return NAN;
	return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static void
take_processes(struct scrape *s, struct metric_parts *p)
{
	struct metric_process *to = p->processes;
	int64_t last_ns;

	*to++ = (struct metric_process){
		.name = "supervisor", .pid = (uint32_t)getpid(), .rss = read_rss((uint32_t)getpid())
	};
	for (unsigned peer = 0; peer < IPC_PEERS; peer++) {
		struct metric_process one = { .name = ipc_peer_name(peer) };

		one.counts = child_counts(s->sup, peer, &one.waiting, &one.sent);
		if (!one.counts)
			continue;
		one.pid = child_pid(s->sup, peer);
		one.rss = read_rss(one.pid);
		one.starts = child_generation(s->sup, peer);
		one.losses = child_losses(s->sup, peer, &last_ns);
		*to++ = one;
	}
	p->n_processes = (size_t)(to - p->processes);
}

/* --- plugins and volumes --- */

static void
take_plugins(struct scrape *s, struct metric_parts *p)
{
	for (struct plugin *i = plugin_next(s->sup, NULL); i; i = plugin_next(s->sup, i)) {
		struct metric_plugin *to;
		char alloc[ID_UUID_SIZE] = "";

		if (!id_is_zero(plugin_alloc(i)))
			id_to_uuid(plugin_alloc(i), alloc);
		p->plugins = mem_resize(p->plugins, p->n_plugins + 1, sizeof *p->plugins);
		to = &p->plugins[p->n_plugins++];
		*to = (struct metric_plugin){ .id = mem_strdup(plugin_id(i)),
			.alloc = mem_strdup(alloc),
			.type = csi_plugin_kind_names[plugin_kind(i)],
			.healthy = plugin_is_healthy(i),
			.since_ns = plugin_health_since(i),
			.volumes = volumes_of_plugin(s->sup, plugin_id(i)) };
	}
}

static void
count_mounts(const struct mount *first, struct metric_volume *to)
{
	struct mount *m = NULL;

	while ((m = mount_next_of_volume(first, m))) {
		to->mounts++;
		to->failing += m->unmounting && m->trouble.tries > 0;
	}
}

static void
take_volume(struct scrape *s, const struct mount *m, struct metric_volume *to)
{
	const struct volume_here *here =
	    volume_stats_of(s->sup, m->rec.namespace, m->rec.volume_id);

	*to = (struct metric_volume){ .namespace = mem_strdup(str(m->rec.namespace)),
		.id = mem_strdup(str(m->rec.volume_id)),
		.plugin = mem_strdup(str(m->rec.plugin)) };
	count_mounts(m, to);
	if (!here)
		return;
	to->condition = here->condition;
	if (here->bytes)
		to->bytes = *here->bytes;
	if (here->inodes)
		to->inodes = *here->inodes;
}

/* A volume has one row, whichever of its mounts comes first. */
static void
take_volumes(struct scrape *s, struct metric_parts *p)
{
	const struct mount *m;

	LIST_FOREACH (m, &s->sup->volumes->mounts, link) {
		s->n_mounts++;
		if (mount_next_of_volume(m, NULL) != m)
			continue;
		p->volumes = mem_resize(p->volumes, p->n_volumes + 1, sizeof *p->volumes);
		take_volume(s, m, &p->volumes[p->n_volumes++]);
	}
}

static void
take_probes(struct scrape *s, struct metric_parts *p)
{
	const struct components *all = health_components(s->sup);
	const struct component *c;

	TAILQ_FOREACH (c, all, link) {
		p->probes = mem_resize(p->probes, p->n_probes + 1, sizeof *p->probes);
		p->probes[p->n_probes++] = (struct metric_probe){ .component = mem_strdup(c->name),
			.state = c->state,
			.since_ns = c->since_ns,
			.checked_ns = c->checked_ns,
			.took_ms = c->took_ms };
	}
}

static void
take_drivers(struct scrape *s, struct metric_parts *p)
{
	for (size_t i = 0; i < DRIVERS_MAX && drivers[i]; i++) {
		const struct driver_info *d =
		    map_get(driver_info, &node_get(s->sup)->drivers, drivers[i]->name);

		if (d && d->detected)
			p->drivers[p->n_drivers++] =
			    (struct metric_driver){ drivers[i]->name, d->healthy };
	}
}

/* --- exported --- */

void
metric_parts_take(struct scrape *s)
{
	const struct source_api *source = s->sup->source->api;
	struct metric_parts *p = s->parts = mem_new(struct metric_parts);

	take_processes(s, p);
	p->steps[0] = (struct metric_step){ "hooks", alloc_setup_times() };
	p->steps[1] = (struct metric_step){ "request", &runs_counts(s->sup)->request };
	p->steps[2] = (struct metric_step){ "setup", &runs_counts(s->sup)->setup };
	p->link = source->link ? source->link(s->sup) : NULL;
	take_plugins(s, p);
	take_volumes(s, p);
	take_probes(s, p);
	take_drivers(s, p);
	s->images = images_measure(s->sup);
	while (plugin_count_at(s->sup, p->n_calls))
		p->n_calls++;
}

void
metric_parts_free(struct scrape *s)
{
	struct metric_parts *p = s->parts;

	for (size_t i = 0; i < p->n_plugins; i++) {
		free(p->plugins[i].id);
		free(p->plugins[i].alloc);
	}
	for (size_t i = 0; i < p->n_volumes; i++) {
		free(p->volumes[i].namespace);
		free(p->volumes[i].id);
		free(p->volumes[i].plugin);
	}
	for (size_t i = 0; i < p->n_probes; i++)
		free(p->probes[i].component);
	free(p->probes);
	free(p->plugins);
	free(p->volumes);
	free_p(&s->parts);
}

size_t
metric_parts_count(const struct scrape *s, enum metric_rows rows)
{
	const struct metric_parts *p = s->parts;

	switch (rows) {
	case ROWS_PROCESS:
		return p->n_processes;
	case ROWS_STEP:
		return STEPS;
	case ROWS_LINK:
		return p->link != NULL;
	case ROWS_PLUGIN:
		return p->n_plugins;
	case ROWS_CALL:
		return p->n_calls;
	case ROWS_VOLUME:
		return p->n_volumes;
	case ROWS_PROBE:
		return p->n_probes;
	case ROWS_DRIVER:
		return p->n_drivers;
	default:
		return 0;
	}
}

static const void *
label_plugin(const struct metric_plugin *p, struct metric_labels *l)
{
	metric_label_add(l, "plugin", p->id);
	metric_label_add(l, "type", p->type);
	metric_label_add(l, "alloc_id", p->alloc);
	return p;
}

static const void *
label_call(const struct plugin_count *c, struct metric_labels *l)
{
	metric_label_add(l, "plugin", c->plugin);
	metric_label_add(l, "method", c->method);
	metric_label_add(l, "code", c->code);
	return c;
}

static const void *
label_volume(const struct metric_volume *v, struct metric_labels *l)
{
	metric_label_add(l, "volume", v->id);
	metric_label_add(l, "namespace", v->namespace);
	metric_label_add(l, "plugin", v->plugin);
	return v;
}

const void *
metric_part(
    const struct scrape *s, enum metric_rows rows, size_t i, struct metric_labels *ret_labels)
{
	const struct metric_parts *p = s->parts;

	switch (rows) {
	case ROWS_PROCESS:
		metric_label_add(ret_labels, "process", p->processes[i].name);
		return &p->processes[i];
	case ROWS_STEP:
		metric_label_add(ret_labels, "step", p->steps[i].name);
		return &p->steps[i];
	case ROWS_LINK:
		return p->link;
	case ROWS_PLUGIN:
		return label_plugin(&p->plugins[i], ret_labels);
	case ROWS_CALL:
		return label_call(plugin_count_at(s->sup, i), ret_labels);
	case ROWS_PROBE:
		metric_label_add(ret_labels, "component", p->probes[i].component);
		return &p->probes[i];
	case ROWS_DRIVER:
		metric_label_add(ret_labels, "driver", p->drivers[i].name);
		return &p->drivers[i];
	case ROWS_VOLUME:
		return label_volume(&p->volumes[i], ret_labels);
	default:
		return NULL;
	}
}
