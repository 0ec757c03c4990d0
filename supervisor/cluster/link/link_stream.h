/* SPDX-License-Identifier: Apache-2.0 */
/* link_stream.h: functions that only link.c and link_stream.c share. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_CLUSTER_LINK_LINK_STREAM_H
#define DROVER_SUPERVISOR_CLUSTER_LINK_LINK_STREAM_H

#include "common/ipc.h"
#include "supervisor/cluster/link/link.h"

struct link_streams;

/* NULL if out of memory. */
struct link_streams *link_streams_new(const struct link_method *methods, link_gate *gate);
void link_streams_free(struct link_streams *ls);
struct link_streams *link_streams(const struct sup *sup);

/* Handles HB_STREAM_…_EV of heartbeat. Returns 0, or -EPROTO if the event is not allowed. */
int link_streams_event(struct sup *sup, struct link_streams *ls, const struct ipc_packet *p);
/* Ends all streams, because heartbeat has ended. */
void link_streams_lose(struct sup *sup, struct link_streams *ls);

#endif
