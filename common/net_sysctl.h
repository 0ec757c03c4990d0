/* SPDX-License-Identifier: Apache-2.0 */
/* net_sysctl.h: the settings of its network namespace that a job may choose. Runs in: supervisor,
 * network-helper. */
#ifndef DROVER_COMMON_NET_SYSCTL_H
#define DROVER_COMMON_NET_SYSCTL_H

#include <stdbool.h>

/* Returns whether a job may set the setting with this name, as in "net.core.somaxconn". */
bool net_sysctl_is_allowed(const char *name);

#endif
