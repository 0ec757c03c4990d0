/* SPDX-License-Identifier: Apache-2.0 */
/* port_list.h: lists of ports as the configuration has them, "22,8500-8600". Runs in: the
 * launcher's configuration child, supervisor. */
#ifndef DROVER_COMMON_PORT_LIST_H
#define DROVER_COMMON_PORT_LIST_H

#include <stdbool.h>
#include <stdint.h>

/* The range at *at, and *at behind it. 1; 0 at the end; -EINVAL: there is none. */
int port_list_next(const char **at, uint32_t *ret_low, uint32_t *ret_high);
/* Of a list that is none: false. */
bool port_list_has(const char *list, int64_t port);

#endif
