// SPDX-License-Identifier: Apache-2.0
/* check_plugins.c: a Probe call to each CSI plugin of this node. Runs in: supervisor. */
#include <errno.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "supervisor/health/check_memory.h"
#include "supervisor/volume/plugin_calls.h"
#include "supervisor/volume/plugins.h"

#define CALL_MS  5000
#define CHECK_MS 10000 /* csi-helper may have to open the channel first */

struct plugin_check {
	struct check c;
	struct plugin_call *call;
};

static void
on_late(struct check *c)
{
	struct plugin_check *pc = container_of(c, struct plugin_check, c);

	plugin_call_cancel(pc->call);
	free(pc);
}

static void
on_probed(struct sup *sup, void *arg, int r, const CsiCallRep *rep, const struct err *e)
{
	struct plugin_check *pc = arg;
	bool late = rep && rep->origin == CSI_CALL_REP__ORIGIN__DEADLINE;
	bool ready = r >= 0 && rep->probe && (!rep->probe->ready || rep->probe->ready->value);

	if (r < 0)
		check_end(&pc->c, late ? HEALTH_HUNG : HEALTH_FAILED, "%s", e->msg);
	else if (!ready)
		check_end(&pc->c, HEALTH_DEGRADED, "it says that it is not ready yet");
	else
		check_end(&pc->c, HEALTH_OK, NULL);
	free(pc);
}

static void
check_plugin(struct sup *sup, struct plugin *p, const char *name)
{
	Csi__V1__ProbeRequest probe = CSI__V1__PROBE_REQUEST__INIT;
	CsiCallReq req = CSI_CALL_REQ__INIT;
	const char *obstacle = check_is_well(sup, "state") ? "helper/csi-helper" : "state";
	struct plugin_check *pc;

	if (!check_is_well(sup, obstacle)) {
		check_report(sup, name, HEALTH_UNKNOWN, "not checked: that needs %s", obstacle);
		return;
	}
	pc = mem_new(struct plugin_check);
	*pc = (struct plugin_check){ 0 };
	req.call_case = CSI_CALL_REQ__CALL_PROBE;
	req.probe = &probe;
	check_begin(&pc->c, sup, name, on_late);
	check_step(&pc->c, "wait for the plugin's answer", CHECK_MS);
	pc->call = plugin_call_instance(p, &req, CALL_MS, on_probed, pc);
	if (pc->call)
		return;
	check_end(&pc->c, HEALTH_FAILED, "its task does not run");
	free(pc);
}

/* A plugin that is being replaced has several instances of a kind: only the newest is checked. */
static bool
is_newest(struct sup *sup, const struct plugin *p)
{
	struct plugin *other = NULL;

	while ((other = plugin_next(sup, other)) != p)
		if (str_eq(plugin_id(other), plugin_id(p)) && plugin_kind(other) == plugin_kind(p))
			return false;
	return true;
}

void
check_plugins(struct sup *sup)
{
	for (struct plugin *p = NULL; (p = plugin_next(sup, p));) {
		cleanup_free char *name =
		    mem_printf("plugin/%s/%s", plugin_id(p), csi_plugin_kind_names[plugin_kind(p)]);

		if (is_newest(sup, p))
			check_plugin(sup, p, name);
	}
}
