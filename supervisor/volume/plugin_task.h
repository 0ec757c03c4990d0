/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugin_task.h: the hook of a task with a csi_plugin block: its directories before it starts, the
 * wait for its socket, its health, its registration (semantics.md 6.3). Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_VOLUME_PLUGIN_TASK_H
#define DROVER_SUPERVISOR_VOLUME_PLUGIN_TASK_H

#include "common/id.h"
#include "model/engine/field.h"
#include "proto/exec.pb-c.h"
#include "proto/task_spec.h"

struct plugin_task;
struct task_runner;

struct plugin_task *plugin_task_new(struct task_runner *tr);
void plugin_task_free(struct plugin_task *pt); /* NULL is nothing */
/* Makes the directories, then task_runner_prepared(). */
void plugin_task_prepare(struct plugin_task *pt);
/* Adds the mounts (with their destinations to spec), the plugin fields and CSI_ENDPOINT. After a
 * prepare that worked. */
int plugin_task_fill(struct plugin_task *pt, bool isolated, ExecTaskStartReq *req,
    struct spec_writer *spec, struct string_map *env);
/* The run runs (perhaps since before the last supervisor ended): probes until health_timeout,
 * registers, then supervises. */
void plugin_task_started(struct plugin_task *pt, const struct id *run);
/* The run ends or has ended: calls to it stop, its fingerprint says unhealthy. */
void plugin_task_run_ended(struct plugin_task *pt);
/* The task is dead for good: deregisters, removes the socket's directory. */
void plugin_task_stopped(struct plugin_task *pt);

#endif
