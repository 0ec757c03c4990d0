/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugin_task.h: the hook of a task with a csi_plugin block: makes its directories before it
 * starts, waits for its socket, supervises its health, and registers it. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_VOLUME_PLUGIN_TASK_H
#define DROVER_SUPERVISOR_VOLUME_PLUGIN_TASK_H

#include "common/id.h"
#include "model/engine/field.h"
#include "model/task_event.h"
#include "proto/ipc_records.h"
#include "supervisor/table/alloc_table.h"

struct plugin_task;

/* Callbacks for the task runner, never called from within a call below. */
struct plugin_task_events {
	/* The directories exist (r is 0), or could not be made. */
	void (*prepared)(void *arg, int r, const struct err *e);
	/* Adds an event to the task. */
	void (*tell)(void *arg, enum task_event_type type, const char *text);
	/* It did not become healthy in time: its restart policy decides. */
	void (*failed)(void *arg, const char *why);
};

/* task has a csi_plugin block. All arguments outlive the result. */
struct plugin_task *plugin_task_new(struct sup *sup, struct sup_alloc *sa, const struct task *task,
    const struct plugin_task_events *ev, void *arg);
void plugin_task_free(struct plugin_task *pt); /* ignores NULL */
/* Sets the task of a new version of the job, after an in-place update. */
void plugin_task_update(struct plugin_task *pt, const struct task *task);
/* Makes the directories, then calls ev->prepared(). */
void plugin_task_prepare(struct plugin_task *pt);
#define PLUGIN_MOUNTS 2 /* the most that plugin_task_fill() adds */
/* Adds CSI_ENDPOINT, unless the job sets it. */
void plugin_task_add_env(const struct plugin_task *pt, bool isolated, struct string_map *env);
/* Adds the mounts and the plugin fields; called after a successful prepare. Returns 0 or
 * -ENAMETOOLONG. */
int plugin_task_fill(const struct plugin_task *pt, bool isolated, struct exec_task_start_req *req);
/* The run is running, perhaps since before a restart of the supervisor: probes until
 * health_timeout, registers the plugin, then supervises it. */
void plugin_task_started(struct plugin_task *pt, const struct id *run);
/* The run ends or has ended: cancels calls to it and marks it unhealthy. */
void plugin_task_run_ended(struct plugin_task *pt);
/* The task will not start again: deregisters the plugin and removes the directory of its socket. */
void plugin_task_stopped(struct plugin_task *pt);

#endif
