/* SPDX-License-Identifier: Apache-2.0 */
/*
 * local_source.h: the sources of versions of jobs: rows of state.db, as JSON of struct
 * job_submission. They are not in memory, except until their first commit. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_SERVER_JOB_LOCAL_SOURCE_H
#define DROVER_SUPERVISOR_SERVER_JOB_LOCAL_SOURCE_H

#include "model/job.h"
#include "model/job_submission.h"
#include "supervisor/core/sup.h"

/* Returns the text of a row, which the caller frees; NULL if the submission is empty. */
char *local_source_encode(const struct job_submission *submission);
/* Writes the row of this version of a job; NULL deletes it. Returns 0 or -errno. */
int local_source_write(struct sup *sup, const struct job *job, const char *json, struct err *e);
/* Reads that row. *ret_json is the caller's. Returns 0; -ENOENT if the version has no
 * source; another -errno with *e. */
int local_source_read(struct sup *sup, const struct job *job, char **ret_json, struct err *e);

#endif
