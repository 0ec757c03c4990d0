/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugin_task.h: the hook of a task with a csi_plugin block: its directories before it starts, the
 * wait for its socket, its health, its registration. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_VOLUME_PLUGIN_TASK_H
#define DROVER_SUPERVISOR_VOLUME_PLUGIN_TASK_H

#include "common/id.h"
#include "model/engine/field.h"
#include "model/task_event.h"
#include "proto/ipc_records.h"
#include "supervisor/table/alloc_table.h"

struct plugin_task;

/* What the task's runner is told, never from within a call of it. */
struct plugin_task_events {
	/* The directories are there (or not): the task may start. */
	void (*prepared)(void *arg, int r, const struct err *e);
	/* For the task's events. */
	void (*tell)(void *arg, enum task_event_type type, const char *text);
	/* It did not become healthy in time: the task is to be restarted by its policy. */
	void (*failed)(void *arg, const char *why);
};

/* All but arg outlive it; task has a csi_plugin block. NULL: no memory. */
struct plugin_task *plugin_task_new(struct sup *sup, struct sup_alloc *sa, const struct task *task,
    const struct plugin_task_events *ev, void *arg);
void plugin_task_free(struct plugin_task *pt); /* NULL is nothing */
/* A new version of the job, in place. */
void plugin_task_update(struct plugin_task *pt, const struct task *task);
/* Makes the directories, then ev->prepared(). */
void plugin_task_prepare(struct plugin_task *pt);
#define PLUGIN_MOUNTS 2 /* the most that plugin_task_fill() adds */
/* Adds the mounts, the plugin fields and CSI_ENDPOINT. To be called after a successful prepare. 0
 * or -errno. */
int plugin_task_fill(
    struct plugin_task *pt, bool isolated, struct exec_task_start_req *req, struct string_map *env);
/* The run runs (perhaps since before the last supervisor ended): probes until health_timeout,
 * registers, then supervises. */
void plugin_task_started(struct plugin_task *pt, const struct id *run);
/* The run ends or has ended: calls to it stop, its fingerprint says unhealthy. */
void plugin_task_run_ended(struct plugin_task *pt);
/* The task is dead for good: deregisters, removes the socket's directory. */
void plugin_task_stopped(struct plugin_task *pt);

#endif
