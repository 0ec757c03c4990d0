/* SPDX-License-Identifier: Apache-2.0 */
/* driver.h: what differs between raw_exec and exec: a task's config and its start request. Runs in:
 * supervisor. */
#ifndef DROVER_SUPERVISOR_DRIVER_DRIVER_H
#define DROVER_SUPERVISOR_DRIVER_DRIVER_H

#include "common/spec.h"
#include "model/job.h"
#include "proto/agent_config.h"
#include "proto/ipc_records.h"
#include "supervisor/table/alloc_table.h"

struct task_env;

struct driver_ops {
	const char *name;
	enum driver id;
	bool isolates_files; /* the task has a root of its own */
	bool mounts;         /* volume mounts work */
	/* What is wrong with a task's config block, as a sentence: asked when a job is registered,
	 * where what has a reference in it may be anything, and before a start, when there is
	 * none any more. config: what this node allows. */
	int (*check)(const struct agent_config *config, const struct task *task, bool evaluated,
	    struct err *e);
	/* Command and arguments into the spec, the rest into the request. */
	int (*fill)(const struct task *task, struct exec_start *req, struct spec_writer *spec,
	    struct err *e);
};

/* NULL: there is no such driver. */
const struct driver_ops *driver_find(const char *name);
extern const struct driver_ops driver_raw_exec, driver_exec;
/* Does this node run it? -EPERM with *e: why not. */
int driver_usable(
    const struct agent_config *config, const struct driver_ops *driver, struct err *e);
/* Names of all, NULL at the end. */
extern const struct driver_ops *const drivers[];
/* Puts all of them into the node's description. */
void drivers_fingerprint(struct sup *sup);

/* Evaluates every string of a config block: *ret is the caller's. 0, or as task_env_expand(). */
int driver_config_evaluate(const json_t *config, struct task_env *env, json_t **ret, struct err *e);

/* For drivers: config.command and config.args; -EINVAL with a sentence that names the key. */
int driver_check_command(const struct task *task, const char *const *known_keys, struct err *e);
void driver_fill_command(const struct task *task, struct spec_writer *spec);

#endif
