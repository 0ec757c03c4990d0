// SPDX-License-Identifier: Apache-2.0
/* plugin_task.c: the hook of a task with a csi_plugin block. Runs in: supervisor. */
#include "supervisor/volume/plugin_task.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-event.h>

#include "common/cleanup.h"
#include "common/duration.h"
#include "common/log.h"
#include "common/mem.h"
#include "supervisor/driver/driver.h"
#include "supervisor/core/sup_calls.h"
#include "supervisor/core/sup_timer.h"
#include "supervisor/volume/plugin_dirs.h"
#include "supervisor/volume/plugin_calls.h"
#include "supervisor/volume/volumes.h"

#define CALL_TIMEOUT_MS  5000
#define RETRY_FIRST_USEC 50000 /* most plugins make their socket moments after the start */
#define RETRY_MAX_USEC   5000000
#define SUPERVISE_USEC   30000000

/* The calls of a fingerprint, in this order. After the last one the plugin is registered, and the
 * fingerprint is taken again every 30 s. */
enum fingerprint_step {
	STEP_PROBE,
	STEP_INFO,
	STEP_CAPABILITIES,
	STEP_NODE_INFO,
	STEP_NODE_CAPS,
	STEP_CTRL_CAPS,
	STEP_END
};

struct plugin_task {
	struct sup *sup;
	struct sup_alloc *sa;
	const struct task *task;
	const struct plugin_task_events *ev;
	void *arg;
	struct plugin *plugin;
	char *socket_dir, *root_dir; /* on the host */
	uint64_t make, remove;
	struct plugin_call *call;
	struct sup_timer timer;
	uint64_t retry_usec, deadline_usec;
	enum fingerprint_step step;
	bool healthy_once;      /* since this start of the task */
	struct csi_info basics; /* asked once after each start */
	struct csi_node_info node;
	struct csi_controller_info controller;
	bool has_controller;
};

static void ask_next(struct plugin_task *pt);

static const struct csi_plugin_block *
block(const struct plugin_task *pt)
{
	return pt->task->csi_plugin;
}

/* Servers store 0 for jobs without a health_timeout, which then is 30 s. */
static int64_t
health_timeout_ns(const struct plugin_task *pt)
{
	return block(pt)->health_timeout > 0 ? block(pt)->health_timeout : 30 * NS_PER_S;
}

struct plugin_task *
plugin_task_new(struct sup *sup, struct sup_alloc *sa, const struct task *task,
    const struct plugin_task_events *ev, void *arg)
{
	const char *data = sup->args.data_dir;
	struct plugin_task *pt = mem_new(struct plugin_task);

	pt->sup = sup;
	pt->sa = sa;
	pt->task = task;
	pt->ev = ev;
	pt->arg = arg;
	csi_info_init(&pt->basics);
	csi_node_info_init(&pt->node);
	pt->socket_dir = mem_printf("%s/csi/sock/%s", data, sa->a.id);
	pt->root_dir =
	    mem_printf("%s/csi/%s/%s", data, csi_plugin_kind_names[block(pt)->type], block(pt)->id);
	return pt;
}

void
plugin_task_update(struct plugin_task *pt, const struct task *task)
{
	pt->task = task;
}

static void
stop_asking(struct plugin_task *pt)
{
	sup_timer_cancel(&pt->timer);
	plugin_call_cancel(pt->call);
	pt->call = NULL;
}

void
plugin_task_free(struct plugin_task *pt)
{
	if (!pt)
		return;
	stop_asking(pt);
	child_call_cancel(pt->sup, pt->make);
	plugin_free(pt->plugin);
	csi_info_done(&pt->basics);
	csi_node_info_done(&pt->node);
	free(pt->socket_dir);
	free(pt->root_dir);
	free(pt);
}

static void
on_mounted(struct sup *sup, void *arg, int r, const void *msg, int fd, const struct err *e)
{
	struct plugin_task *pt = arg;

	pt->make = 0;
	pt->ev->prepared(pt->arg, r, e);
}

static void
on_dirs(struct sup *sup, void *arg, int r, const void *msg, int fd, const struct err *e)
{
	struct mnt_plugin_root_make_req req = { 0 };
	struct plugin_task *pt = arg;

	if (r < 0) {
		on_mounted(sup, pt, r, NULL, -1, e);
		return;
	}
	req.kind = (enum plugin_kind)block(pt)->type;
	(void)IPC_TEXT_SET(req.plugin, block(pt)->id);
	pt->make = mnt_call_plugin_root_make(sup, &req, on_mounted, pt);
}

void
plugin_task_prepare(struct plugin_task *pt)
{
	struct file_plugin_dir_make_req req = { 0 };

	req.alloc = pt->sa->id;
	req.kind = (enum plugin_kind)block(pt)->type;
	(void)IPC_TEXT_SET(req.plugin, block(pt)->id);
	pt->make = file_call_plugin_dir_make(pt->sup, &req, on_dirs, pt);
}

/* Returns false if the path is too long. */
static bool
add_mount(struct exec_task_start_req *req, enum exec_mount_kind kind, const char *dest)
{
	struct exec_mount *m = &req->mounts[req->n_mounts++];

	m->kind = kind;
	if (strlen(dest) >= sizeof m->dest)
		return false;
	(void)strcpy(m->dest, dest);
	return true;
}

void
plugin_task_add_env(const struct plugin_task *pt, bool isolated, struct string_map *env)
{
	cleanup_free char *endpoint =
	    mem_printf("unix://%s/csi.sock", isolated ? block(pt)->mount_dir : pt->socket_dir);

	if (!string_map_get(env, "CSI_ENDPOINT"))
		string_map_set(env, "CSI_ENDPOINT", endpoint);
}

int
plugin_task_fill(const struct plugin_task *pt, bool isolated, struct exec_task_start_req *req)
{
	req->start.csi_plugin = (enum plugin_kind)block(pt)->type;
	(void)IPC_TEXT_SET(req->start.plugin, block(pt)->id);
	if (!isolated)
		return 0;
	return add_mount(req, EXEC_MOUNT_PLUGIN_SOCKET, block(pt)->mount_dir) &&
		       add_mount(req, EXEC_MOUNT_PLUGIN_ROOT, block(pt)->stage_publish_base_dir)
		   ? 0
		   : -ENAMETOOLONG;
}

static uint64_t
now_usec(const struct plugin_task *pt)
{
	uint64_t now;

	(void)sd_event_now(pt->sup->event, CLOCK_MONOTONIC, &now);
	return now;
}

static void
on_timer(void *arg)
{
	struct plugin_task *pt = arg;

	ask_next(pt);
}

static void
ask_later(struct plugin_task *pt, uint64_t usec)
{
	pt->step = STEP_PROBE;
	sup_timer_set(pt->sup, &pt->timer, CLOCK_MONOTONIC, usec, on_timer, pt);
}

/* Until the first success a failure means that the plugin is still starting, up to the deadline. */
static void
on_failure(struct plugin_task *pt, const struct err *e)
{
	char text[ERR_MSG_SIZE + 32], timeout[DURATION_SIZE];

	log_debug("plugin %s: %s", block(pt)->id, e->msg);
	(void)snprintf(text, sizeof text, "Error: %s", e->msg);
	if (pt->healthy_once) {
		if (plugin_set_health(pt->plugin, false, e->msg))
			pt->ev->tell(pt->arg, EVENT_PLUGIN_UNHEALTHY, text);
		ask_later(pt, RETRY_MAX_USEC);
		return;
	}
	if (now_usec(pt) < pt->deadline_usec) {
		ask_later(pt, pt->retry_usec);
		pt->retry_usec =
		    pt->retry_usec * 2 < RETRY_MAX_USEC ? pt->retry_usec * 2 : RETRY_MAX_USEC;
		return;
	}
	(void)snprintf(text, sizeof text, "Error: CSI plugin failed probe: %s", e->msg);
	log_warn("plugin %s: %s", block(pt)->id, e->msg);
	pt->ev->tell(pt->arg, EVENT_PLUGIN_UNHEALTHY, text);
	duration_format(health_timeout_ns(pt), timeout);
	(void)snprintf(text, sizeof text,
	    "CSI plugin did not become healthy before configured %s health timeout", timeout);
	pt->ev->failed(pt->arg, text);
}

static void
take_capabilities(struct plugin_task *pt, const Csi__V1__GetPluginCapabilitiesResponse *rep)
{
	pt->basics.requires_controller_plugin = pt->basics.requires_topologies = false;
	for (size_t i = 0; i < rep->n_capabilities; i++) {
		const Csi__V1__PluginCapability *c = rep->capabilities[i];

		if (c->type_case != CSI__V1__PLUGIN_CAPABILITY__TYPE_SERVICE)
			continue;
		pt->basics.requires_controller_plugin |=
		    c->service->type ==
		    CSI__V1__PLUGIN_CAPABILITY__SERVICE__TYPE__CONTROLLER_SERVICE;
		pt->basics.requires_topologies |=
		    c->service->type ==
		    CSI__V1__PLUGIN_CAPABILITY__SERVICE__TYPE__VOLUME_ACCESSIBILITY_CONSTRAINTS;
	}
}

static int
take_node_info(struct plugin_task *pt, const Csi__V1__NodeGetInfoResponse *rep, struct err *e)
{
	const Csi__V1__Topology *t = rep->accessible_topology;

	if (rep->node_id[0] == '\0')
		return err_say(
		    e, -EINVAL, "NodeGetInfo of plugin %s: it has no node id", block(pt)->id);
	csi_node_info_done(&pt->node);
	str_set(&pt->node.id, rep->node_id);
	pt->node.max_volumes =
	    rep->max_volumes_per_node > 0 ? rep->max_volumes_per_node : INT64_MAX;
	if (t)
		pt->node.accessible_topology = csi_topology_new();
	for (size_t i = 0; t && i < t->n_segments; i++)
		string_map_set(&pt->node.accessible_topology->segments, t->segments[i]->key,
		    t->segments[i]->value);
	return 0;
}

static void
take_node_caps(struct plugin_task *pt, const Csi__V1__NodeGetCapabilitiesResponse *rep)
{
	for (size_t i = 0; i < rep->n_capabilities; i++) {
		if (rep->capabilities[i]->type_case != CSI__V1__NODE_SERVICE_CAPABILITY__TYPE_RPC)
			continue;
		switch (rep->capabilities[i]->rpc->type) {
		case CSI__V1__NODE_SERVICE_CAPABILITY__RPC__TYPE__STAGE_UNSTAGE_VOLUME:
			pt->node.requires_node_stage_volume = true;
			break;
		case CSI__V1__NODE_SERVICE_CAPABILITY__RPC__TYPE__GET_VOLUME_STATS:
			pt->node.supports_stats = true;
			break;
		case CSI__V1__NODE_SERVICE_CAPABILITY__RPC__TYPE__EXPAND_VOLUME:
			pt->node.supports_expand = true;
			break;
		case CSI__V1__NODE_SERVICE_CAPABILITY__RPC__TYPE__VOLUME_CONDITION:
			pt->node.supports_condition = true;
			break;
		default:
			break;
		}
	}
}

static void
take_controller_caps(struct plugin_task *pt, const Csi__V1__ControllerGetCapabilitiesResponse *rep)
{
	struct csi_controller_info *c = &pt->controller;
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
	for (size_t i = 0; i < rep->n_capabilities; i++) {
		unsigned type;

		if (rep->capabilities[i]->type_case !=
		    CSI__V1__CONTROLLER_SERVICE_CAPABILITY__TYPE_RPC)
			continue;
		type = (unsigned)rep->capabilities[i]->rpc->type;
		if (type < ELEMENTSOF(flags) && flags[type])
			*flags[type] = true;
	}
}

/* Makes the info of one half for the node's description. */
static struct csi_info *
make_info(const struct plugin_task *pt, bool controller)
{
	struct csi_info *info = csi_info_new();

	csi_info_copy(&pt->basics, info);
	str_set(&info->plugin_id, block(pt)->id);
	str_set(&info->alloc_id, pt->sa->a.id);
	if (controller) {
		info->controller_info = csi_controller_info_new();
		*info->controller_info = pt->controller;
	} else {
		info->node_info = csi_node_info_new();
		csi_node_info_copy(&pt->node, info->node_info);
	}
	return info;
}

static void
finish_fingerprint(struct plugin_task *pt)
{
	enum csi_plugin_kind kind = block(pt)->type;
	bool was_healthy = plugin_is_healthy(pt->plugin);
	char text[NAME_BYTES_MAX + 16];

	pt->healthy_once = true;
	pt->retry_usec = RETRY_FIRST_USEC;
	plugin_set_info(pt->plugin,
	    kind != CSI_PLUGIN_NODE && pt->has_controller ? make_info(pt, true) : NULL,
	    kind != CSI_PLUGIN_CONTROLLER ? make_info(pt, false) : NULL);
	if (!was_healthy) {
		(void)snprintf(text, sizeof text, "plugin: %s", block(pt)->id);
		pt->ev->tell(pt->arg, EVENT_PLUGIN_HEALTHY, text);
		volumes_plugin_answers(pt->sup, block(pt)->id);
	}
	ask_later(pt, SUPERVISE_USEC);
}

static int
take_answer(struct plugin_task *pt, const CsiCallRep *rep, struct err *e)
{
	switch (rep->answer_case) {
	case CSI_CALL_REP__ANSWER_PROBE:
		if (rep->probe->ready && !rep->probe->ready->value)
			return err_say(
			    e, -EAGAIN, "Probe of plugin %s: it is not ready", block(pt)->id);
		return 0;
	case CSI_CALL_REP__ANSWER_GET_PLUGIN_INFO:
		if (rep->get_plugin_info->name[0] == '\0')
			return err_say(e, -EINVAL, "GetPluginInfo of plugin %s: it has no name",
			    block(pt)->id);
		str_set(&pt->basics.provider, rep->get_plugin_info->name);
		str_set(&pt->basics.provider_version, rep->get_plugin_info->vendor_version);
		return 0;
	case CSI_CALL_REP__ANSWER_GET_PLUGIN_CAPABILITIES:
		take_capabilities(pt, rep->get_plugin_capabilities);
		pt->has_controller = block(pt)->type == CSI_PLUGIN_CONTROLLER ||
				     pt->basics.requires_controller_plugin;
		return 0;
	case CSI_CALL_REP__ANSWER_NODE_GET_INFO:
		return take_node_info(pt, rep->node_get_info, e);
	case CSI_CALL_REP__ANSWER_NODE_GET_CAPABILITIES:
		take_node_caps(pt, rep->node_get_capabilities);
		return 0;
	case CSI_CALL_REP__ANSWER_CONTROLLER_GET_CAPABILITIES:
		take_controller_caps(pt, rep->controller_get_capabilities);
		return 0;
	default:
		return err_say(
		    e, -EPROTO, "plugin %s sent an answer to another call", block(pt)->id);
	}
}

static void
on_answer(struct sup *sup, void *arg, int r, const CsiCallRep *rep, const struct err *e)
{
	struct plugin_task *pt = arg;
	struct err why = { 0 };

	pt->call = NULL;
	if (r >= 0) {
		r = take_answer(pt, rep, &why);
		e = &why;
	}
	if (r < 0) {
		on_failure(pt, e);
		return;
	}
	pt->step++;
	ask_next(pt);
}

/* Returns true if this step applies to the plugin now. */
static bool
is_asked(const struct plugin_task *pt, enum fingerprint_step step)
{
	enum csi_plugin_kind kind = block(pt)->type;

	switch (step) {
	case STEP_INFO:
	case STEP_CAPABILITIES:
		return !pt->healthy_once;
	case STEP_NODE_INFO:
		return !pt->healthy_once && kind != CSI_PLUGIN_CONTROLLER;
	case STEP_NODE_CAPS:
		return kind != CSI_PLUGIN_CONTROLLER;
	case STEP_CTRL_CAPS:
		return kind != CSI_PLUGIN_NODE && pt->has_controller;
	default:
		return true;
	}
}

static void
ask_next(struct plugin_task *pt)
{
	Csi__V1__ProbeRequest probe = CSI__V1__PROBE_REQUEST__INIT;
	Csi__V1__GetPluginInfoRequest info = CSI__V1__GET_PLUGIN_INFO_REQUEST__INIT;
	Csi__V1__GetPluginCapabilitiesRequest caps = CSI__V1__GET_PLUGIN_CAPABILITIES_REQUEST__INIT;
	Csi__V1__NodeGetInfoRequest node = CSI__V1__NODE_GET_INFO_REQUEST__INIT;
	Csi__V1__NodeGetCapabilitiesRequest node_caps =
	    CSI__V1__NODE_GET_CAPABILITIES_REQUEST__INIT;
	Csi__V1__ControllerGetCapabilitiesRequest ctrl_caps =
	    CSI__V1__CONTROLLER_GET_CAPABILITIES_REQUEST__INIT;
	CsiCallReq req = CSI_CALL_REQ__INIT;

	while (!is_asked(pt, pt->step))
		pt->step++;
	switch (pt->step) {
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
	case STEP_END:
		finish_fingerprint(pt);
		return;
	}
	pt->call = plugin_call_instance(pt->plugin, &req, CALL_TIMEOUT_MS, on_answer, pt);
}

void
plugin_task_started(struct plugin_task *pt, const struct id *run)
{
	const struct driver_ops *driver = driver_find(str(pt->task->driver));
	const char *root =
	    driver && driver->isolates_files ? block(pt)->stage_publish_base_dir : pt->root_dir;

	if (!pt->plugin)
		pt->plugin = plugin_new(pt->sup, block(pt)->id, block(pt)->type, &pt->sa->id, root);
	plugin_set_run(pt->plugin, run);
	pt->healthy_once = false;
	pt->retry_usec = RETRY_FIRST_USEC;
	pt->deadline_usec = now_usec(pt) + (uint64_t)health_timeout_ns(pt) / 1000;
	stop_asking(pt);
	ask_later(pt, RETRY_FIRST_USEC);
}

void
plugin_task_run_ended(struct plugin_task *pt)
{
	stop_asking(pt);
	if (!pt->plugin)
		return;
	(void)plugin_set_health(pt->plugin, false, "the plugin's task does not run");
	plugin_set_run(pt->plugin, NULL);
}

void
plugin_task_stopped(struct plugin_task *pt)
{
	plugin_task_run_ended(pt);
	/* Otherwise its answer would mount the root after the removal below. */
	child_call_cancel(pt->sup, pt->make);
	pt->make = 0;
	if (pt->plugin)
		plugin_deregister(pt->plugin);
	plugin_free(pt->plugin);
	pt->plugin = NULL;
	plugin_dirs_remove(pt->sup, &pt->sa->id, block(pt)->type, block(pt)->id);
}
