/* SPDX-License-Identifier: Apache-2.0 */
/* task_names.h: the names that a task's configuration may use. Runs in: job-parser. */
#ifndef DROVER_JOBSPEC_TASK_NAMES_H
#define DROVER_JOBSPEC_TASK_NAMES_H

#include <jansson.h>

#include "hcl/hcl_eval.h"

/*
 * Fills in the variables of the scope: for a name with dots, such as attr.cpu.arch, an object
 * "attr" with an object "cpu" in it. Of "attr.cpu" and "attr.cpu.arch" the second counts; of a
 * variable and a value of the node the latter. "env" has all variables under their whole names, and
 * "node" also what is in "attr" and "meta". values: as for task_config_evaluate().
 */
void task_names_add(struct hcl *h, const json_t *values, struct hcl_scope *ret);

#endif
