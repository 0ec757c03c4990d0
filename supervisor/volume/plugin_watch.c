// SPDX-License-Identifier: Apache-2.0
/* plugin_watch.c: asks an instance of a CSI plugin what it is and can do, until it answers, and
 * then watches its health. Runs in: supervisor. */
#include "supervisor/volume/plugin_watch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-event.h>

#include "common/cleanup.h"
#include "common/duration.h"
#include "common/log.h"
#include "common/mem.h"
#include "supervisor/core/sup_timer.h"
#include "supervisor/volume/plugin_calls.h"
#include "supervisor/volume/volumes.h"

#define CALL_TIMEOUT_MS  5000
#define RETRY_FIRST_USEC 50000   /* most plugins make their socket moments after the start */
#define STARTING_USEC    1000000 /* longest time between two tries until it is healthy */
#define UNHEALTHY_USEC   5000000
#define SUPERVISE_USEC   30000000
#define PATIENCE_USEC    2000000 /* from the start until the cause of a failure is reported */

/* The calls of a fingerprint, in this order. After the last one the plugin is registered, and the
 * fingerprint is taken again every 30 s. */
enum fingerprint_step {
	STEP_PROBE,
	STEP_INFO,
	STEP_CAPABILITIES,
	STEP_NODE_INFO,
	STEP_NODE_CAPS,
	STEP_CTRL_CAPS,
	STEP_GROUP_CAPS,
	STEP_END
};

struct plugin_watch {
	struct sup *sup;
	struct plugin *plugin;
	const struct plugin_watch_events *ev;
	void *arg;
	struct plugin_call *call;
	struct sup_timer timer;
	uint64_t retry_usec, started_usec, deadline_usec;
	enum fingerprint_step step;
	bool healthy_once; /* since plugin_watch_start() */
	bool expired;      /* it was not healthy before the deadline */
	char *cause;       /* the last that ev->waits() was told */
	bool fresh;        /* it has not said yet what it is; a new process may be something else */
	uint64_t channel;  /* of its last answer: a new process has another one */
	struct csi_info basics;
	struct csi_node_info node;
	struct csi_controller_info controller;
	struct plugin_caps caps;
	bool has_controller;
};

static void ask_next(struct plugin_watch *w);

static uint64_t
now_usec(const struct plugin_watch *w)
{
	uint64_t now;

	(void)sd_event_now(w->sup->event, CLOCK_MONOTONIC, &now);
	return now;
}

static void
on_timer(void *arg)
{
	struct plugin_watch *w = arg;

	ask_next(w);
}

static void
ask_later(struct plugin_watch *w, uint64_t usec)
{
	w->step = STEP_PROBE;
	sup_timer_set(w->sup, &w->timer, CLOCK_MONOTONIC, usec, on_timer, w);
}

/* Most plugins need a moment until their socket is there, so a cause is reported after some
 * seconds, and again only if it has changed. */
static void
report_cause(struct plugin_watch *w, uint64_t now, const struct err *e)
{
	if (now - w->started_usec < PATIENCE_USEC || str_eq(w->cause, e->msg))
		return;
	str_set(&w->cause, e->msg);
	w->ev->waits(w->arg, e->msg, w->deadline_usec > now ? w->deadline_usec - now : 0);
}

/* Until the first success a failure means that the plugin is still starting, up to the deadline. */
static void
on_failure(struct plugin_watch *w, const struct err *e)
{
	uint64_t now = now_usec(w);

	log_debug("plugin %s: %s", plugin_id(w->plugin), e->msg);
	if (plugin_set_health(w->plugin, false, e->msg) && w->healthy_once)
		w->ev->unhealthy(w->arg, e->msg);
	if (w->healthy_once) {
		ask_later(w, UNHEALTHY_USEC);
		return;
	}
	ask_later(w, w->expired ? UNHEALTHY_USEC : w->retry_usec);
	w->retry_usec = w->retry_usec * 2 < STARTING_USEC ? w->retry_usec * 2 : STARTING_USEC;
	if (now < w->deadline_usec || w->expired) {
		report_cause(w, now, e);
		return;
	}
	w->expired = true;
	log_warn("plugin %s: %s", plugin_id(w->plugin), e->msg);
	w->ev->expired(w->arg, e->msg);
}

static void
take_capabilities(struct plugin_watch *w, const Csi__V1__GetPluginCapabilitiesResponse *rep)
{
	w->basics.requires_controller_plugin = w->basics.requires_topologies = false;
	w->caps = (struct plugin_caps){ 0 };
	for (size_t i = 0; i < rep->n_capabilities; i++) {
		const Csi__V1__PluginCapability *c = rep->capabilities[i];

		if (c->type_case == CSI__V1__PLUGIN_CAPABILITY__TYPE_VOLUME_EXPANSION)
			plugin_caps_add(&w->caps, PLUGIN_EXPANSION, (int)c->volume_expansion->type);
		if (c->type_case != CSI__V1__PLUGIN_CAPABILITY__TYPE_SERVICE)
			continue;
		plugin_caps_add(&w->caps, PLUGIN_CAPS, (int)c->service->type);
		w->basics.requires_controller_plugin |=
		    c->service->type ==
		    CSI__V1__PLUGIN_CAPABILITY__SERVICE__TYPE__CONTROLLER_SERVICE;
		w->basics.requires_topologies |=
		    c->service->type ==
		    CSI__V1__PLUGIN_CAPABILITY__SERVICE__TYPE__VOLUME_ACCESSIBILITY_CONSTRAINTS;
	}
}

static int
take_node_info(struct plugin_watch *w, const Csi__V1__NodeGetInfoResponse *rep, struct err *e)
{
	const Csi__V1__Topology *t = rep->accessible_topology;

	if (rep->node_id[0] == '\0')
		return err_say(e, -EINVAL, "NodeGetInfo of plugin %s: it has no node id",
		    plugin_id(w->plugin));
	csi_node_info_done(&w->node);
	str_set(&w->node.id, rep->node_id);
	w->node.max_volumes = rep->max_volumes_per_node > 0 ? rep->max_volumes_per_node : INT64_MAX;
	if (t)
		w->node.accessible_topology = csi_topology_new();
	for (size_t i = 0; t && i < t->n_segments; i++)
		string_map_set(&w->node.accessible_topology->segments, t->segments[i]->key,
		    t->segments[i]->value);
	return 0;
}

static void
take_node_caps(struct plugin_watch *w, const Csi__V1__NodeGetCapabilitiesResponse *rep)
{
	w->caps.bits[PLUGIN_NODE_CAPS] = 0;
	for (size_t i = 0; i < rep->n_capabilities; i++) {
		if (rep->capabilities[i]->type_case != CSI__V1__NODE_SERVICE_CAPABILITY__TYPE_RPC)
			continue;
		plugin_caps_add(&w->caps, PLUGIN_NODE_CAPS, (int)rep->capabilities[i]->rpc->type);
		switch (rep->capabilities[i]->rpc->type) {
		case CSI__V1__NODE_SERVICE_CAPABILITY__RPC__TYPE__STAGE_UNSTAGE_VOLUME:
			w->node.requires_node_stage_volume = true;
			break;
		case CSI__V1__NODE_SERVICE_CAPABILITY__RPC__TYPE__GET_VOLUME_STATS:
			w->node.supports_stats = true;
			break;
		case CSI__V1__NODE_SERVICE_CAPABILITY__RPC__TYPE__EXPAND_VOLUME:
			w->node.supports_expand = true;
			break;
		case CSI__V1__NODE_SERVICE_CAPABILITY__RPC__TYPE__VOLUME_CONDITION:
			w->node.supports_condition = true;
			break;
		default:
			break;
		}
	}
}

static void
take_controller_caps(struct plugin_watch *w, const Csi__V1__ControllerGetCapabilitiesResponse *rep)
{
	struct csi_controller_info *c = &w->controller;
	bool *const flags[] = {
		[CSI__V1__CONTROLLER_SERVICE_CAPABILITY__RPC__TYPE__CREATE_DELETE_VOLUME] =
		    &c->supports_create_delete,
		[CSI__V1__CONTROLLER_SERVICE_CAPABILITY__RPC__TYPE__PUBLISH_UNPUBLISH_VOLUME] =
		    &c->supports_attach_detach,
		[CSI__V1__CONTROLLER_SERVICE_CAPABILITY__RPC__TYPE__LIST_VOLUMES] =
		    &c->supports_list_volumes,
		[CSI__V1__CONTROLLER_SERVICE_CAPABILITY__RPC__TYPE__GET_CAPACITY] =
		    &c->supports_get_capacity,
		[CSI__V1__CONTROLLER_SERVICE_CAPABILITY__RPC__TYPE__CREATE_DELETE_SNAPSHOT] =
		    &c->supports_create_delete_snapshot,
		[CSI__V1__CONTROLLER_SERVICE_CAPABILITY__RPC__TYPE__LIST_SNAPSHOTS] =
		    &c->supports_list_snapshots,
		[CSI__V1__CONTROLLER_SERVICE_CAPABILITY__RPC__TYPE__CLONE_VOLUME] =
		    &c->supports_clone,
		[CSI__V1__CONTROLLER_SERVICE_CAPABILITY__RPC__TYPE__PUBLISH_READONLY] =
		    &c->supports_read_only_attach,
		[CSI__V1__CONTROLLER_SERVICE_CAPABILITY__RPC__TYPE__EXPAND_VOLUME] =
		    &c->supports_expand,
		[CSI__V1__CONTROLLER_SERVICE_CAPABILITY__RPC__TYPE__LIST_VOLUMES_PUBLISHED_NODES] =
		    &c->supports_list_volumes_attached_nodes,
		[CSI__V1__CONTROLLER_SERVICE_CAPABILITY__RPC__TYPE__VOLUME_CONDITION] =
		    &c->supports_condition,
		[CSI__V1__CONTROLLER_SERVICE_CAPABILITY__RPC__TYPE__GET_VOLUME] = &c->supports_get,
	};

	memset(c, 0, sizeof *c);
	w->caps.bits[PLUGIN_CONTROLLER_CAPS] = 0;
	for (size_t i = 0; i < rep->n_capabilities; i++) {
		unsigned type;

		if (rep->capabilities[i]->type_case !=
		    CSI__V1__CONTROLLER_SERVICE_CAPABILITY__TYPE_RPC)
			continue;
		type = (unsigned)rep->capabilities[i]->rpc->type;
		plugin_caps_add(&w->caps, PLUGIN_CONTROLLER_CAPS, (int)type);
		if (type < ELEMENTSOF(flags) && flags[type])
			*flags[type] = true;
	}
}

static void
take_group_caps(struct plugin_watch *w, const Csi__V1__GroupControllerGetCapabilitiesResponse *rep)
{
	w->caps.bits[PLUGIN_GROUP_CAPS] = 0;
	for (size_t i = 0; i < rep->n_capabilities; i++)
		if (rep->capabilities[i]->type_case ==
		    CSI__V1__GROUP_CONTROLLER_SERVICE_CAPABILITY__TYPE_RPC)
			plugin_caps_add(
			    &w->caps, PLUGIN_GROUP_CAPS, (int)rep->capabilities[i]->rpc->type);
}

/* Makes the info of one half for the node's description. */
static struct csi_info *
make_info(const struct plugin_watch *w, bool controller)
{
	struct csi_info *info = csi_info_new();
	char alloc[ID_UUID_SIZE];

	csi_info_copy(&w->basics, info);
	str_set(&info->plugin_id, plugin_id(w->plugin));
	if (!id_is_zero(plugin_alloc(w->plugin))) {
		id_to_uuid(plugin_alloc(w->plugin), alloc);
		str_set(&info->alloc_id, alloc);
	}
	if (controller) {
		info->controller_info = csi_controller_info_new();
		*info->controller_info = w->controller;
	} else {
		info->node_info = csi_node_info_new();
		csi_node_info_copy(&w->node, info->node_info);
	}
	return info;
}

static void
finish_fingerprint(struct plugin_watch *w)
{
	enum csi_plugin_kind kind = plugin_kind(w->plugin);
	bool was_healthy = plugin_is_healthy(w->plugin);

	w->healthy_once = true;
	w->fresh = false;
	w->retry_usec = RETRY_FIRST_USEC;
	plugin_set_info(w->plugin,
	    kind != CSI_PLUGIN_NODE && w->has_controller ? make_info(w, true) : NULL,
	    kind != CSI_PLUGIN_CONTROLLER ? make_info(w, false) : NULL, &w->caps);
	if (!was_healthy) {
		w->ev->healthy(w->arg);
		volumes_plugin_answers(w->sup, plugin_id(w->plugin));
	}
	ask_later(w, SUPERVISE_USEC);
}

static int
take_answer(struct plugin_watch *w, const CsiCallRep *rep, struct err *e)
{
	switch (rep->answer_case) {
	case CSI_CALL_REP__ANSWER_PROBE:
		if (rep->probe->ready && !rep->probe->ready->value)
			return err_say(e, -EAGAIN, "Probe of plugin %s: it is not ready",
			    plugin_id(w->plugin));
		w->fresh |= w->channel != plugin_channel(w->plugin);
		w->channel = plugin_channel(w->plugin);
		return 0;
	case CSI_CALL_REP__ANSWER_GET_PLUGIN_INFO:
		if (rep->get_plugin_info->name[0] == '\0')
			return err_say(e, -EINVAL, "GetPluginInfo of plugin %s: it has no name",
			    plugin_id(w->plugin));
		str_set(&w->basics.provider, rep->get_plugin_info->name);
		str_set(&w->basics.provider_version, rep->get_plugin_info->vendor_version);
		return 0;
	case CSI_CALL_REP__ANSWER_GET_PLUGIN_CAPABILITIES:
		take_capabilities(w, rep->get_plugin_capabilities);
		w->has_controller = plugin_kind(w->plugin) == CSI_PLUGIN_CONTROLLER ||
				    w->basics.requires_controller_plugin;
		return 0;
	case CSI_CALL_REP__ANSWER_NODE_GET_INFO:
		return take_node_info(w, rep->node_get_info, e);
	case CSI_CALL_REP__ANSWER_NODE_GET_CAPABILITIES:
		take_node_caps(w, rep->node_get_capabilities);
		return 0;
	case CSI_CALL_REP__ANSWER_CONTROLLER_GET_CAPABILITIES:
		take_controller_caps(w, rep->controller_get_capabilities);
		return 0;
	case CSI_CALL_REP__ANSWER_GROUP_CONTROLLER_GET_CAPABILITIES:
		take_group_caps(w, rep->group_controller_get_capabilities);
		return 0;
	default:
		return err_say(
		    e, -EPROTO, "plugin %s sent an answer to another call", plugin_id(w->plugin));
	}
}

static void
on_answer(struct sup *sup, void *arg, int r, const CsiCallRep *rep, const struct err *e)
{
	struct plugin_watch *w = arg;
	struct err why = { 0 };

	w->call = NULL;
	if (r >= 0) {
		r = take_answer(w, rep, &why);
		e = &why;
	}
	if (r < 0) {
		on_failure(w, e);
		return;
	}
	w->step++;
	ask_next(w);
}

/* Returns true if this step applies to the plugin now. What cannot change while a process runs is
 * asked once on each channel. */
static bool
is_asked(const struct plugin_watch *w, enum fingerprint_step step)
{
	enum csi_plugin_kind kind = plugin_kind(w->plugin);

	switch (step) {
	case STEP_INFO:
	case STEP_CAPABILITIES:
		return w->fresh;
	case STEP_NODE_INFO:
		return w->fresh && kind != CSI_PLUGIN_CONTROLLER;
	case STEP_NODE_CAPS:
		return kind != CSI_PLUGIN_CONTROLLER;
	case STEP_CTRL_CAPS:
		return kind != CSI_PLUGIN_NODE && w->has_controller;
	case STEP_GROUP_CAPS:
		return kind != CSI_PLUGIN_NODE &&
		       plugin_caps_has(&w->caps, PLUGIN_CAPS,
			   CSI__V1__PLUGIN_CAPABILITY__SERVICE__TYPE__GROUP_CONTROLLER_SERVICE);
	default:
		return true;
	}
}

static void
ask_next(struct plugin_watch *w)
{
	Csi__V1__ProbeRequest probe = CSI__V1__PROBE_REQUEST__INIT;
	Csi__V1__GetPluginInfoRequest info = CSI__V1__GET_PLUGIN_INFO_REQUEST__INIT;
	Csi__V1__GetPluginCapabilitiesRequest caps = CSI__V1__GET_PLUGIN_CAPABILITIES_REQUEST__INIT;
	Csi__V1__NodeGetInfoRequest node = CSI__V1__NODE_GET_INFO_REQUEST__INIT;
	Csi__V1__NodeGetCapabilitiesRequest node_caps =
	    CSI__V1__NODE_GET_CAPABILITIES_REQUEST__INIT;
	Csi__V1__ControllerGetCapabilitiesRequest ctrl_caps =
	    CSI__V1__CONTROLLER_GET_CAPABILITIES_REQUEST__INIT;
	Csi__V1__GroupControllerGetCapabilitiesRequest group_caps =
	    CSI__V1__GROUP_CONTROLLER_GET_CAPABILITIES_REQUEST__INIT;
	CsiCallReq req = CSI_CALL_REQ__INIT;

	while (!is_asked(w, w->step))
		w->step++;
	switch (w->step) {
	case STEP_PROBE:
		req.call_case = CSI_CALL_REQ__CALL_PROBE;
		req.probe = &probe;
		break;
	case STEP_INFO:
		req.call_case = CSI_CALL_REQ__CALL_GET_PLUGIN_INFO;
		req.get_plugin_info = &info;
		break;
	case STEP_CAPABILITIES:
		req.call_case = CSI_CALL_REQ__CALL_GET_PLUGIN_CAPABILITIES;
		req.get_plugin_capabilities = &caps;
		break;
	case STEP_NODE_INFO:
		req.call_case = CSI_CALL_REQ__CALL_NODE_GET_INFO;
		req.node_get_info = &node;
		break;
	case STEP_NODE_CAPS:
		req.call_case = CSI_CALL_REQ__CALL_NODE_GET_CAPABILITIES;
		req.node_get_capabilities = &node_caps;
		break;
	case STEP_CTRL_CAPS:
		req.call_case = CSI_CALL_REQ__CALL_CONTROLLER_GET_CAPABILITIES;
		req.controller_get_capabilities = &ctrl_caps;
		break;
	case STEP_GROUP_CAPS:
		req.call_case = CSI_CALL_REQ__CALL_GROUP_CONTROLLER_GET_CAPABILITIES;
		req.group_controller_get_capabilities = &group_caps;
		break;
	case STEP_END:
		finish_fingerprint(w);
		return;
	}
	w->call = plugin_call_instance(w->plugin, &req, CALL_TIMEOUT_MS, on_answer, w);
}

void
plugin_watch_stop(struct plugin_watch *w)
{
	sup_timer_cancel(&w->timer);
	plugin_call_cancel(w->call);
	w->call = NULL;
}

void
plugin_watch_start(struct plugin_watch *w, uint64_t health_timeout_usec)
{
	plugin_watch_stop(w);
	w->healthy_once = w->expired = false;
	w->fresh = true;
	str_set(&w->cause, NULL);
	w->retry_usec = RETRY_FIRST_USEC;
	w->started_usec = now_usec(w);
	w->deadline_usec = w->started_usec + health_timeout_usec;
	ask_later(w, RETRY_FIRST_USEC);
}

struct plugin_watch *
plugin_watch_new(struct sup *sup, struct plugin *p, const struct plugin_watch_events *ev, void *arg)
{
	struct plugin_watch *w = mem_new(struct plugin_watch);

	*w = (struct plugin_watch){ .sup = sup, .plugin = p, .ev = ev, .arg = arg };
	csi_info_init(&w->basics);
	csi_node_info_init(&w->node);
	return w;
}

void
plugin_watch_free(struct plugin_watch *w)
{
	if (!w)
		return;
	plugin_watch_stop(w);
	csi_info_done(&w->basics);
	csi_node_info_done(&w->node);
	free(w->cause);
	free(w);
}
