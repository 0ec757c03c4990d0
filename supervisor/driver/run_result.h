/* SPDX-License-Identifier: Apache-2.0 */
/* run_result.h: how a run ended, from the record that its executor has left. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_DRIVER_RUN_RESULT_H
#define DROVER_SUPERVISOR_DRIVER_RUN_RESULT_H

#include "proto/executor.h"
#include "supervisor/driver/run.h"

/* Reads the record of a run in the directory of records. Returns 0; -EBADMSG if it is not valid; or
 * another -errno. */
int run_result_read(int records_fd, const struct id *run, struct exe_record *ret);
/* Returns the end that a record in state EXE_ENDED describes. */
struct run_end run_result_end(const struct exe_record *rec);

#endif
