/* SPDX-License-Identifier: Apache-2.0 */
/* cap_name.h: the names of capabilities. Runs in: supervisor, and the launcher's configuration
 * child. */
#ifndef DROVER_COMMON_CAP_NAME_H
#define DROVER_COMMON_CAP_NAME_H

#include <stddef.h>
#include <stdint.h>

/* "SYS_ADMIN", "cap_sys_admin" or "CAP_SYS_ADMIN" to its number; -1 if there is none. */
int cap_number(const char *name);

/* The capabilities of mask as "chown, sys_admin", cut to what buf holds. */
void cap_names(uint64_t mask, char *buf, size_t size);

#endif
