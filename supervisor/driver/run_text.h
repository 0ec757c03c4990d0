/* SPDX-License-Identifier: Apache-2.0 */
/* run_text.h: what an executor's failing step means, as a sentence for the event. Runs in:
 * supervisor. */
#ifndef DROVER_SUPERVISOR_DRIVER_RUN_TEXT_H
#define DROVER_SUPERVISOR_DRIVER_RUN_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* step and detail as in struct exe_hello; error is an errno, positive. */
void run_text_failure(char *buf, size_t size, uint32_t step, int error, uint32_t detail);

#endif
