// SPDX-License-Identifier: Apache-2.0
/* plugin_hold.c: plugins that had no attachment or space left on this node. Runs in: supervisor. */
#include "supervisor/volume/plugin_hold.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "common/duration.h"
#include "common/mem.h"
#include "supervisor/core/journal.h"
#include "supervisor/node/node_state.h"
#include "supervisor/volume/csi_error.h"
#include "supervisor/volume/plugin_inst.h"

#define HOLD_USEC     30000000
#define HOLD_MAX_USEC 300000000

/* It stays when its time is over, so that the next one is longer, until such a call has succeeded.
 */
struct plugin_hold {
	LIST_ENTRY(plugin_hold) link;
	struct sup *sup;
	CsiCallReq__CallCase call; /* that has failed */
	char *id, *error;
	uint64_t usec;
	struct sup_timer timer; /* set while it holds */
};

static struct plugin_hold *
find_hold(struct sup *sup, const char *id)
{
	struct plugin_hold *h;

	LIST_FOREACH (h, &sup->plugins->holds, link)
		if (str_eq(h->id, id))
			return h;
	return NULL;
}

static void
free_hold(struct plugin_hold *h)
{
	LIST_REMOVE(h, link);
	sup_timer_cancel(&h->timer);
	free(h->id);
	free(h->error);
	free(h);
}

/* Lets the source place what has waited. */
static void
on_over(void *arg)
{
	struct plugin_hold *h = arg;

	node_changed(h->sup);
}

/* Calls that take up an attachment or space of the node. */
static bool
is_counted(CsiCallReq__CallCase call)
{
	return call == CSI_CALL_REQ__CALL_CONTROLLER_PUBLISH_VOLUME ||
	       call == CSI_CALL_REQ__CALL_NODE_STAGE_VOLUME ||
	       call == CSI_CALL_REQ__CALL_NODE_PUBLISH_VOLUME;
}

static void
end_hold(struct sup *sup, struct plugin_hold *h)
{
	bool held = sup_timer_is_set(&h->timer);

	free_hold(h);
	if (held)
		node_changed(sup);
}

static void
begin_hold(struct sup *sup, const char *id, struct plugin_hold *h, CsiCallReq__CallCase call,
    const struct err *e)
{
	if (!h) {
		h = mem_new(struct plugin_hold);
		*h = (struct plugin_hold){ .sup = sup, .id = mem_strdup(id), .usec = HOLD_USEC };
		LIST_INSERT_HEAD(&sup->plugins->holds, h, link);
	} else if (!sup_timer_is_set(&h->timer)) {
		h->usec = h->usec * 2 < HOLD_MAX_USEC ? h->usec * 2 : HOLD_MAX_USEC;
	} else {
		return; /* another volume, in the same state of the plugin */
	}
	h->call = call;
	str_set(&h->error, e->msg);
	journal_warn(JOURNAL_VOLUME, NULL,
	    "plugin %s has nothing left for another volume on this node; placements of its volumes "
	    "wait %llu s: %s",
	    id, (unsigned long long)h->usec / 1000000, e->msg);
	sup_timer_set(sup, &h->timer, CLOCK_MONOTONIC, h->usec, on_over, h);
}

void
plugin_hold_note(struct sup *sup, const char *id, CsiCallReq__CallCase call, const CsiCallRep *rep,
    const struct err *e)
{
	struct plugin_hold *h = is_counted(call) ? find_hold(sup, id) : NULL;

	if (!is_counted(call) || rep->origin != CSI_CALL_REP__ORIGIN__PLUGIN)
		return;
	if (rep->grpc_status == GRPC_RESOURCE_EXHAUSTED)
		begin_hold(sup, id, h, call, e);
	else if (rep->grpc_status == GRPC_OK && h && h->call == call)
		end_hold(sup, h);
}

bool
plugin_is_held(struct sup *sup, const char *id, char *why, size_t size)
{
	const struct plugin_hold *h = find_hold(sup, id);

	if (!h || !sup_timer_is_set(&h->timer))
		return false;
	(void)snprintf(why, size,
	    "CSI plugin %s has nothing left for another volume on this node; placements wait %llu "
	    "s "
	    "before it is tried again: %s",
	    id, (unsigned long long)h->usec / 1000000, h->error);
	return true;
}

void
plugin_holds_free(struct sup *sup)
{
	while (!LIST_EMPTY(&sup->plugins->holds))
		free_hold(LIST_FIRST(&sup->plugins->holds));
}
