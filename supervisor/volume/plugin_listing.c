// SPDX-License-Identifier: Apache-2.0
/* plugin_listing.c: reads all pages of a plugin's ListVolumes. Runs in: supervisor. */
#include "supervisor/volume/plugin_listing.h"

#include <errno.h>
#include <stdlib.h>

#include "common/mem.h"
#include "supervisor/core/sup_timer.h"
#include "supervisor/volume/controller_calls.h"
#include "supervisor/volume/plugins.h"
#include "supervisor/volume/volume_judge.h"

/* A plugin that never ends its list would fill the memory. */
#define VOLUMES_MAX 100000

struct listing {
	struct sup *sup;
	char *plugin;
	plugin_listing_cb *cb; /* NULL: it was called, and the last page is only waited for */
	void *arg;
	struct rpc_csi_rep *all;
	struct sup_timer late;
};

static void
end_listing(struct listing *l, const struct err *e)
{
	struct rpc_csi_rep *all = l->all;
	plugin_listing_cb *cb = l->cb;

	l->cb = NULL;
	l->all = NULL;
	sup_timer_cancel(&l->late);
	if (e) {
		rpc_csi_rep_free(all);
		all = NULL;
	} else {
		volume_entries_sort(all);
	}
	cb(l->sup, l->arg, all, e);
}

static void
free_listing(struct listing *l)
{
	free(l->plugin);
	free(l);
}

static void on_page(
    struct sup *sup, void *arg, int r, const struct rpc_csi_rep *page, const struct err *e);

/* A call that nobody waits for any more ends soon, so that those to a plugin that never answers do
 * not add up. */
static void
ask_page(struct listing *l, const char *token)
{
	volume_list(l->sup, l->plugin, 0, token, LISTING_TIMEOUT_S * 1000ull, on_page, l);
}

static void
on_late(void *arg)
{
	struct listing *l = arg;
	struct err e = { 0 };

	(void)err_say(&e, -ETIMEDOUT, "plugin %s has not listed its volumes in %d s", l->plugin,
	    LISTING_TIMEOUT_S);
	end_listing(l, &e);
}

static void
on_page(struct sup *sup, void *arg, int r, const struct rpc_csi_rep *page, const struct err *e)
{
	struct listing *l = arg;
	struct err endless = { 0 };

	for (size_t i = 0; l->cb && r >= 0 && i < page->entries.n; i++)
		rpc_csi_entry_copy(&page->entries.v[i], list_add(rpc_csi_entry, &l->all->entries));
	if (l->cb && r >= 0 && *str(page->next_token)) {
		if (l->all->entries.n < VOLUMES_MAX) {
			ask_page(l, page->next_token);
			return;
		}
		(void)err_say(&endless, -E2BIG, "plugin %s lists more than %d volumes", l->plugin,
		    VOLUMES_MAX);
		e = &endless;
	}
	if (l->cb)
		end_listing(l, e);
	free_listing(l);
}

/* Returns 0 if the plugin can be asked now. */
static int
refuse(struct sup *sup, const char *plugin, struct err *e)
{
	struct plugin *p = plugin_find(sup, plugin, CSI_PLUGIN_CONTROLLER);
	const struct csi_info *info = p ? plugin_controller_info(p) : NULL;

	if (!info || !info->controller_info)
		return err_say(
		    e, -EHOSTDOWN, "the controller of plugin %s does not run on this node", plugin);
	if (!plugin_is_healthy(p))
		return err_say(e, -EHOSTDOWN, "the controller of plugin %s is not healthy", plugin);
	return info->controller_info->supports_list_volumes
		   ? 0
		   : err_say(e, -EOPNOTSUPP,
			 "plugin %s has no capability LIST_VOLUMES, so it cannot say which volumes "
			 "it has",
			 plugin);
}

void
plugin_listing_begin(struct sup *sup, const char *plugin, plugin_listing_cb *cb, void *arg)
{
	struct err e = { 0 };
	struct listing *l;

	if (refuse(sup, plugin, &e) < 0) {
		cb(sup, arg, NULL, &e);
		return;
	}
	l = mem_new(struct listing);
	*l = (struct listing){ .sup = sup, .cb = cb, .arg = arg };
	l->plugin = mem_strdup(plugin);
	l->all = rpc_csi_rep_new();
	sup_timer_set(sup, &l->late, CLOCK_MONOTONIC, LISTING_TIMEOUT_S * 1000000ull, on_late, l);
	ask_page(l, "");
}
