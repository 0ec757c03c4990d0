/* SPDX-License-Identifier: Apache-2.0 */
/* check_spec.h: what a check requests, and where: from its block and the alloc's ports. Runs in:
 * supervisor. */
#ifndef DROVER_SUPERVISOR_SERVICE_CHECK_SPEC_H
#define DROVER_SUPERVISOR_SERVICE_CHECK_SPEC_H

#include "model/service.h"
#include "supervisor/table/alloc_table.h"
#include "supervisor/service/check_probe.h"

/* task: whose service s is; NULL: the group's. ${…} is already replaced in s and c. Returns 0, or
 * -errno with *e, which becomes the check's result. The caller ends *ret with check_spec_done() in
 * both cases. */
int check_spec_make(struct sup *sup, const struct alloc *a, const struct task *task,
    const struct service *s, const struct service_check *c, struct check_spec *ret, struct err *e);
void check_spec_done(struct check_spec *s);

/* Writes the id of a check: 32 hex digits of a digest of its definition, so that it stays the same
 * after a restart of the agent. */
#define CHECK_ID_SIZE 33
void check_id(const struct alloc *a, const char *workload, const struct service *s,
    const struct service_check *c, char ret[CHECK_ID_SIZE]);

#endif
