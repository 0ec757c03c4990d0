// SPDX-License-Identifier: Apache-2.0
/* plugin_task.c: the hook of a task with a csi_plugin block. Runs in: supervisor. */
#include "supervisor/volume/plugin_task.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/duration.h"
#include "common/mem.h"
#include "supervisor/driver/driver.h"
#include "supervisor/core/sup_calls.h"
#include "supervisor/volume/plugin_dirs.h"
#include "supervisor/volume/plugin_watch.h"

struct plugin_task {
	struct sup *sup;
	struct sup_alloc *sa;
	const struct task *task;
	const struct plugin_task_events *ev;
	void *arg;
	struct plugin *plugin;
	char *socket_dir, *root_dir; /* on the host */
	struct plugin_watch *watch;
	uint64_t make;
};

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

void
plugin_task_free(struct plugin_task *pt)
{
	if (!pt)
		return;
	plugin_watch_free(pt->watch);
	child_call_cancel(pt->sup, pt->make);
	plugin_free(pt->plugin);
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

/* --- callbacks of its watch --- */

static void
on_waits(void *arg, const char *cause, uint64_t left_usec)
{
	char text[ERR_MSG_SIZE + 96], left[DURATION_SIZE], timeout[DURATION_SIZE];
	struct plugin_task *pt = arg;

	duration_format((int64_t)(left_usec / 1000000) * NS_PER_S, left);
	duration_format(health_timeout_ns(pt), timeout);
	(void)snprintf(text, sizeof text, "%s; waiting up to %s more (health_timeout is %s)", cause,
	    left, timeout);
	pt->ev->tell(pt->arg, EVENT_PLUGIN_WAITS, text);
}

static void
on_healthy(void *arg)
{
	char text[NAME_BYTES_MAX + 16];
	struct plugin_task *pt = arg;

	(void)snprintf(text, sizeof text, "plugin: %s", block(pt)->id);
	pt->ev->tell(pt->arg, EVENT_PLUGIN_HEALTHY, text);
}

static void
on_unhealthy(void *arg, const char *cause)
{
	char text[ERR_MSG_SIZE + 32];
	struct plugin_task *pt = arg;

	(void)snprintf(text, sizeof text, "Error: %s", cause);
	pt->ev->tell(pt->arg, EVENT_PLUGIN_UNHEALTHY, text);
}

static void
on_expired(void *arg, const char *cause)
{
	char text[ERR_MSG_SIZE + 64], timeout[DURATION_SIZE];
	struct plugin_task *pt = arg;

	plugin_watch_stop(pt->watch);
	(void)snprintf(text, sizeof text, "Error: CSI plugin failed probe: %s", cause);
	pt->ev->tell(pt->arg, EVENT_PLUGIN_UNHEALTHY, text);
	duration_format(health_timeout_ns(pt), timeout);
	(void)snprintf(text, sizeof text,
	    "CSI plugin did not become healthy before configured %s health timeout", timeout);
	pt->ev->failed(pt->arg, text);
}

static const struct plugin_watch_events watch_events = {
	.waits = on_waits,
	.healthy = on_healthy,
	.unhealthy = on_unhealthy,
	.expired = on_expired,
};

void
plugin_task_started(struct plugin_task *pt, const struct id *run)
{
	const struct driver_ops *driver = driver_find(str(pt->task->driver));
	const char *root =
	    driver && driver->isolates_files ? block(pt)->stage_publish_base_dir : pt->root_dir;

	if (!pt->plugin) {
		cleanup_free char *socket = mem_printf("%s/csi.sock", pt->socket_dir);

		pt->plugin =
		    plugin_new(pt->sup, block(pt)->id, block(pt)->type, &pt->sa->id, socket, root);
		pt->watch = plugin_watch_new(pt->sup, pt->plugin, &watch_events, pt);
	}
	plugin_set_run(pt->plugin, run);
	plugin_watch_start(pt->watch, (uint64_t)health_timeout_ns(pt) / 1000);
}

void
plugin_task_run_ended(struct plugin_task *pt)
{
	if (!pt->plugin)
		return;
	plugin_watch_stop(pt->watch);
	(void)plugin_set_health(pt->plugin, false, "the plugin's task has ended");
	plugin_set_run(pt->plugin, NULL);
}

void
plugin_task_stopped(struct plugin_task *pt)
{
	plugin_task_run_ended(pt);
	/* Otherwise its answer would mount the root after the removal below. */
	child_call_cancel(pt->sup, pt->make);
	pt->make = 0;
	plugin_watch_free(pt->watch);
	pt->watch = NULL;
	plugin_free(pt->plugin);
	pt->plugin = NULL;
	plugin_dirs_remove(pt->sup, &pt->sa->id, block(pt)->type, block(pt)->id);
}
