/* SPDX-License-Identifier: Apache-2.0 */
/* local_outdated.h: how an alloc is updated when another version of its job is wanted. Runs in:
 * supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_JOB_LOCAL_OUTDATED_H
#define DROVER_SUPERVISOR_SERVER_JOB_LOCAL_OUTDATED_H

struct job;
struct sup_alloc;
struct task_group;

enum local_outdated {
	LOCAL_CURRENT, /* the alloc is of the wanted version */
	LOCAL_UPDATE_IN_PLACE,
	LOCAL_UPDATE_REPLACE,
};

enum local_outdated local_alloc_outdated(
    const struct sup_alloc *sa, const struct job *wanted, const struct task_group *wanted_group);

#endif
