// SPDX-License-Identifier: Apache-2.0
/* plugin_configured.c: CSI plugins that are not tasks. Runs in: supervisor. */
#include "supervisor/volume/plugin_configured.h"

#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/mem.h"
#include "supervisor/core/sup_calls.h"
#include "supervisor/core/sup_timer.h"
#include "supervisor/volume/plugin_watch.h"

#define RETRY_USEC 5000000 /* after its root could not be made */

struct configured {
	struct sup *sup;
	const struct config_csi_plugin *conf;
	struct plugin *plugin;
	struct plugin_watch *watch;
	struct sup_timer timer;
	uint64_t make;
};

struct plugins_configured {
	size_t n;
	struct configured v[];
};

static void make_dirs(void *arg);

static void
on_waits(void *arg, const char *cause, uint64_t left_usec)
{
	/* on_expired() reports it. */
}

static void
on_healthy(void *arg)
{
	const struct configured *cp = arg;

	log_info("CSI plugin %s at %s is healthy", cp->conf->id, cp->conf->socket);
}

static void
on_unhealthy(void *arg, const char *cause)
{
	const struct configured *cp = arg;

	log_warn("CSI plugin %s is not healthy: %s", cp->conf->id, cause);
}

/* Nothing here can restart it, so it is probed until it answers. */
static void
on_expired(void *arg, const char *cause)
{
	const struct configured *cp = arg;

	log_warn("CSI plugin %s of the configuration does not answer: start it, or correct socket: "
		 "%s",
	    cp->conf->id, cause);
}

static const struct plugin_watch_events watch_events = {
	.waits = on_waits,
	.healthy = on_healthy,
	.unhealthy = on_unhealthy,
	.expired = on_expired,
};

static void
on_mounted(struct sup *sup, void *arg, int r, const void *msg, int fd, const struct err *e)
{
	const struct id no_run = { 0 };
	struct configured *cp = arg;

	cp->make = 0;
	if (r < 0) {
		log_warn("CSI plugin %s: %s; retried in 5 s", cp->conf->id, e->msg);
		sup_timer_set(sup, &cp->timer, CLOCK_MONOTONIC, RETRY_USEC, make_dirs, cp);
		return;
	}
	plugin_set_run(cp->plugin, &no_run);
	plugin_watch_start(cp->watch, cp->conf->health_timeout_ms * 1000);
}

static void
on_dirs(struct sup *sup, void *arg, int r, const void *msg, int fd, const struct err *e)
{
	struct mnt_plugin_root_make_req req = { 0 };
	struct configured *cp = arg;

	if (r < 0) {
		on_mounted(sup, cp, r, NULL, -1, e);
		return;
	}
	req.kind = (enum plugin_kind)cp->conf->kind;
	(void)IPC_TEXT_SET(req.plugin, cp->conf->id);
	cp->make = mnt_call_plugin_root_make(sup, &req, on_mounted, cp);
}

static void
make_dirs(void *arg)
{
	struct file_plugin_dir_make_req req = { 0 };
	struct configured *cp = arg;

	req.kind = (enum plugin_kind)cp->conf->kind;
	(void)IPC_TEXT_SET(req.plugin, cp->conf->id);
	cp->make = file_call_plugin_dir_make(cp->sup, &req, on_dirs, cp);
}

static void
init(struct configured *cp, struct sup *sup, const struct config_csi_plugin *conf)
{
	enum csi_plugin_kind kind = (enum csi_plugin_kind)conf->kind;
	const struct id no_alloc = { 0 };
	cleanup_free char *root =
	    mem_printf("%s/csi/%s/%s", sup->args.data_dir, csi_plugin_kind_names[kind], conf->id);

	*cp = (struct configured){ .sup = sup, .conf = conf };
	cp->plugin = plugin_new(sup, conf->id, kind, &no_alloc, conf->socket, root);
	cp->watch = plugin_watch_new(sup, cp->plugin, &watch_events, cp);
	make_dirs(cp);
}

void
plugins_configured_new(struct sup *sup)
{
	size_t n = sup->config->n_csi_plugins;
	struct plugins_configured *all = mem_zeroed(1, sizeof *all + n * sizeof all->v[0]);

	sup->plugins_configured = all;
	for (all->n = 0; all->n < n; all->n++)
		init(&all->v[all->n], sup, &sup->config->csi_plugins[all->n]);
}

void
plugins_configured_free(struct sup *sup)
{
	for (size_t i = 0; sup->plugins_configured && i < sup->plugins_configured->n; i++) {
		struct configured *cp = &sup->plugins_configured->v[i];

		child_call_cancel(sup, cp->make);
		sup_timer_cancel(&cp->timer);
		plugin_watch_free(cp->watch);
		plugin_free(cp->plugin);
	}
	free_p(&sup->plugins_configured);
}
