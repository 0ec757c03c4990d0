/* SPDX-License-Identifier: Apache-2.0 */
/* driver.h: what differs between drivers: a task's config block and its start request. Runs in:
 * supervisor. */
#ifndef DROVER_SUPERVISOR_DRIVER_DRIVER_H
#define DROVER_SUPERVISOR_DRIVER_DRIVER_H

#include "common/spec.h"
#include "model/job.h"
#include "proto/agent_config.h"
#include "proto/ipc_records.h"
#include "supervisor/driver/task_net.h"
#include "supervisor/table/alloc_table.h"

struct task_env;

struct driver_ops {
	const char *name;
	enum driver id;
	bool isolates_files; /* the task has a root of its own */
	bool mounts;         /* volume mounts work */
	bool containers;     /* the task runs in an image */
	/* Checks a task's config block: 0 or -EINVAL with *e. Called with evaluated false when a
	 * job is registered, where a value with a reference in it may become anything; and with
	 * true before a start. config: what this node allows. */
	int (*check)(const struct agent_config *config, const struct task *task, bool evaluated,
	    struct err *e);
	/* Writes command and arguments to the spec, and the rest to the request. image: of a
	 * container, the configuration of its image; else NULL. */
	int (*fill)(const struct agent_config *config, const struct task *task, const json_t *image,
	    const struct task_net *net, struct exec_start *req, struct spec_writer *spec,
	    struct err *e);
	/* Adds the entries that every process of a container needs, the first one and those of
	 * sessions. NULL for drivers whose tasks are no containers. */
	void (*fill_process)(const struct agent_config *config, const struct task *task,
	    const json_t *image, const struct task_net *net, const struct exec_start *req,
	    struct spec_writer *spec);
};

/* All drivers; ends with NULL. */
extern const struct driver_ops *const drivers[];
extern const struct driver_ops driver_raw_exec, driver_exec, driver_docker, driver_podman;
/* Returns NULL if there is no driver of this name. */
const struct driver_ops *driver_find(const char *name);
/* Returns 0 if the driver is enabled on this node, or -EPERM with *e. */
int driver_usable(
    const struct agent_config *config, const struct driver_ops *driver, struct err *e);
/* Add all drivers, or one, to the node's description. */
void drivers_fingerprint(struct sup *sup);
void driver_fingerprint(struct sup *sup, const struct driver_ops *driver);

/* driver_needs.c: checks whether this machine has all that the driver needs besides the agent, by a
 * few cheap system calls. Returns 0, or a negative errno with *e, which says what is missing and
 * what to do. */
int driver_check_needs(const struct driver_ops *driver, struct err *e);
/* Returns whether only a start shows if the driver works here: the file system of the data
 * directory is not one that surely maps ids. */
bool driver_needs_start(const struct sup *sup, const struct driver_ops *driver);
/* For tests: returns whether the kernel of this release ("5.10.0-30-amd64") is older than
 * MAJOR.MINOR. */
bool driver_kernel_is_older(const char *release, unsigned major, unsigned minor);

/* Returns whether driver_config_evaluate() can evaluate the config block; if not, job-parser can.
 */
bool driver_config_is_plain(const json_t *config);
/* Replaces the references in every string of a config block; a whole number or a boolean becomes a
 * string. The caller owns *ret. Returns 0, or an error of task_env_expand(). */
int driver_config_evaluate(const json_t *config, struct task_env *env, json_t **ret, struct err *e);

/* Returns the option's value, or NULL if it is not set or null. */
json_t *driver_config_get(const struct task *task, const char *key);
/* Returns whether the value is a text that is still to be evaluated: it may become anything. */
bool driver_value_is_open(const json_t *value, bool evaluated);
/* Returns 0 if the option is not set, or is a list of texts; -EINVAL with *e. */
int driver_check_strings(const struct task *task, const char *key, bool evaluated, struct err *e);
/* For drivers: check config.command, config.args and config.work_dir (-EINVAL with *e, which names
 * the key), and write them to the spec. */
int driver_check_command(
    const struct task *task, const char *const *known_keys, bool evaluated, struct err *e);
void driver_fill_command(const struct task *task, struct spec_writer *spec);

#endif
