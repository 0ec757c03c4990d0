/* SPDX-License-Identifier: Apache-2.0 */
/* source_api.h: the part of the API that a source of work provides: paths, permissions, indexes.
 * Each function but handler may be NULL. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SOURCE_SOURCE_API_H
#define DROVER_SUPERVISOR_SOURCE_SOURCE_API_H

#include "supervisor/core/histogram.h"
#include "supervisor/http/api.h"
#include "supervisor/http/api_backend.h"
#include "supervisor/source/source.h"

/* For the metrics: the link to the servers. */
struct source_link {
	uint64_t calls, failed_calls; /* of this node to servers, with blocking queries */
	uint64_t bytes_out, bytes_in; /* of their bodies, before TLS */
	uint64_t connections;         /* how often a server came into use */
	uint64_t failed_beats;
	struct histogram beats; /* of heartbeats that a server has answered: their round trip */
};

struct source_api {
	/* Callbacks of the engine for each request. */
	struct api_backend backend;
	/* Returns the source's handler of a line of api_paths.def, which is used instead of the one
	 * in supervisor/api/; NULL: it has none. */
	api_handler *(*handler)(unsigned path);
	/* Its handlers change nothing in state.db, because servers answer: the column `durable` of
	 * api_paths.def does not apply to them. */
	bool remote;
	/* Returns true if the client of a request that was admitted may see objects of this
	 * namespace. NULL: always. */
	bool (*shows)(struct sup *sup, const struct api_req *req, const char *namespace);
	/* Return the server in use ("": none), and the i-th known server (NULL after the last).
	 * Both pointers are NULL if the source has no servers. */
	const char *(*server)(const struct sup *sup);
	const char *(*server_known)(const struct sup *sup, size_t i);
	/* Returns the time (CLOCK_REALTIME) since when no server is reachable, with the reason; 0
	 * if one is in use. NULL if the source has no servers. */
	int64_t (*server_lost_since)(const struct sup *sup, const char **ret_why);
	/* Returns how many seconds this machine's clock is ahead of the servers' (negative:
	 * behind); 0 if that is not known. NULL if the source has no servers. */
	int64_t (*clock_ahead_s)(const struct sup *sup);
	/* NULL if the source has no servers. */
	const struct source_link *(*link)(const struct sup *sup);
};

#endif
