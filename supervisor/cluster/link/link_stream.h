/* SPDX-License-Identifier: Apache-2.0 */
/* link_stream.h: the link's state, and functions of link_stream.c for link.c. Only for these two
 * files. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_CLUSTER_LINK_LINK_STREAM_H
#define DROVER_SUPERVISOR_CLUSTER_LINK_LINK_STREAM_H

#include "common/ipc.h"
#include "common/list.h"
#include "proto/agent_config.h"
#include "supervisor/cluster/link/link.h"

#define LINK_KNOWN_MAX 32

struct link_stream;

struct link {
	const struct link_events *events;
	char server[CONFIG_PATH_SIZE];                /* the current server; "": none */
	char known[LINK_KNOWN_MAX][CONFIG_PATH_SIZE]; /* addresses of all known servers */
	size_t n_known;
	bool joined;     /* a server was in use since this process started */
	int64_t lost_ns; /* CLOCK_REALTIME since when no server is reachable, and the last reason */
	char why[ERR_MSG_SIZE];
	struct source_link counts;
	uint64_t beat_ns; /* CLOCK_BOOTTIME of the last beat that was sent; 0: it has ended */

	/* link_stream.c */
	const struct link_method *methods;
	link_gate *gate;
	LIST_HEAD(, link_stream) streams;
	size_t n_opened, n_asked; /* streams that servers opened, and that this node opened */
	uint64_t last_asked;      /* number of the last stream that this node opened */
};

static inline struct link *
link_of(const struct sup *sup)
{
	return container_of(sup->source, struct link_source, base)->link;
}

/* Handles HB_STREAM_…_EV of heartbeat. Returns 0, or -EPROTO if the event is not allowed. */
int link_streams_event(struct sup *sup, const struct ipc_packet *p);
/* Ends all streams and reports that to their owners, because heartbeat has ended. */
void link_streams_lose(struct sup *sup);
/* Frees all streams without reporting it. */
void link_streams_free(struct link *l);

#endif
