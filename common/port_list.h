/* SPDX-License-Identifier: Apache-2.0 */
/* port_list.h: parses lists of ports in the form of the configuration, "22,8500-8600". Runs in: the
 * launcher's configuration child, supervisor. */
#ifndef DROVER_COMMON_PORT_LIST_H
#define DROVER_COMMON_PORT_LIST_H

#include <stdbool.h>
#include <stdint.h>

/* Parses the range at *at and moves *at past it. Returns 1, 0 at the end, or -EINVAL. */
int port_list_next(const char **at, uint32_t *ret_low, uint32_t *ret_high);
/* Returns whether port is in list; false if the list is invalid. */
bool port_list_has(const char *list, int64_t port);

#endif
