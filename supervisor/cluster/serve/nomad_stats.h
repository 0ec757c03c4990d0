/* SPDX-License-Identifier: Apache-2.0 */
/* nomad_stats.h: requests of servers for resource usage of this node and its allocs. Runs in:
 * supervisor. */
#ifndef DROVER_SUPERVISOR_CLUSTER_SERVE_NOMAD_STATS_H
#define DROVER_SUPERVISOR_CLUSTER_SERVE_NOMAD_STATS_H

#include <stddef.h>
#include <stdint.h>

#include "supervisor/core/sup.h"

void nomad_stats_host(struct sup *sup, uint64_t stream, const void *body, size_t len);
void nomad_stats_alloc(struct sup *sup, uint64_t stream, const void *body, size_t len);

#endif
