/* SPDX-License-Identifier: Apache-2.0 */
/* task_config.h: evaluates the configuration of a task's driver when the task starts. Runs in:
 * job-parser. */
#ifndef DROVER_JOBSPEC_TASK_CONFIG_H
#define DROVER_JOBSPEC_TASK_CONFIG_H

#include <jansson.h>

#include "hcl/hcl.h"

/* 1 MiB for each text, 32 MiB of memory, a million steps, a depth of 200. */
extern const struct hcl_limits task_config_limits;

/*
 * Evaluates every text of the configuration, and the keys of objects inside it, as a template of
 * HCL, as Nomad's client does. values: { "env": { NAME: text }, "node": { "attr.x": text } }.
 * Values that are no texts do not count. NAME and "attr.x" are names in the expressions, as are
 * env["NAME"] and node.attr.x. Returns the result as JSON in the arena: numbers and booleans are
 * texts in it, as the options of drivers need them. NULL: task_config_problem() says why.
 */
const char *task_config_evaluate(
    struct hcl *h, const json_t *config, const json_t *values, size_t *ret_len);
/* Returns the first problem, with its option and its line, in the arena:
 *	config.args[0]: "${nope + 1}": unknown variable "nope" */
const char *task_config_problem(struct hcl *h);

#endif
