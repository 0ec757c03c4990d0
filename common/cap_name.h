/* SPDX-License-Identifier: Apache-2.0 */
/* cap_name.h: names of capabilities. Runs in: supervisor, and the launcher's configuration
 * child. */
#ifndef DROVER_COMMON_CAP_NAME_H
#define DROVER_COMMON_CAP_NAME_H

#include <stddef.h>
#include <stdint.h>

/* Returns the number of a capability written as "SYS_ADMIN", "cap_sys_admin" or "CAP_SYS_ADMIN", or
 * -1 for an unknown name. */
int cap_number(const char *name);

/* Writes the capabilities of mask to buf as "chown, sys_admin", truncated to size. */
void cap_names(uint64_t mask, char *buf, size_t size);

#endif
