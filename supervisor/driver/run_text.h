/* SPDX-License-Identifier: Apache-2.0 */
/* run_text.h: the sentence for a step of an executor that failed, for the task's event. Runs in:
 * supervisor. */
#ifndef DROVER_SUPERVISOR_DRIVER_RUN_TEXT_H
#define DROVER_SUPERVISOR_DRIVER_RUN_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* step and detail are those of struct exe_hello; error is a positive errno. spec: the memfd of the
 * start, which has the names of files; -1: it is not there any more. dest: of the mount that
 * failed, or empty. */
void run_text_failure(
    char *buf, size_t size, uint32_t step, int error, uint32_t detail, int spec, const char *dest);
/* docker.c: returns the name that the key ulimit has for an RLIMIT, or NULL. */
const char *container_limit_name(int resource);

#endif
