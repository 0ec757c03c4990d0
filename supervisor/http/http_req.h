/* SPDX-License-Identifier: Apache-2.0 */
/* http_req.h: the request as http.c stores it; handlers use only api.h. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_HTTP_HTTP_REQ_H
#define DROVER_SUPERVISOR_HTTP_HTTP_REQ_H

#include <microhttpd.h>
#include <systemd/sd-event.h>

#include "supervisor/http/api.h"
#include "supervisor/http/api_router.h"
#include "supervisor/http/http_clients.h"
#include "supervisor/core/sup_turn.h"

/* One request. Its connection is suspended from the call of its handler until its answer may be
 * sent: after the commit of the turn that made the answer (deferred `leave`). Freed by
 * on_completed(), which is never called while it is suspended. */
struct api_req {
	struct api_req *prev, *next;
	struct sup *sup;
	struct MHD_Connection *conn;
	struct http_client *client; /* its connection */
	char *uri;                  /* until the route is found */
	const char *method;
	struct api_target target;
	const struct api_route *route;
	char *body;
	size_t body_len;
	uint64_t body_seen;
	size_t answer_len; /* bytes counted as held */
	json_t *json;
	struct api_meta meta; /* of the answer */
	int status;
	struct MHD_Response *response; /* the answer, once it is made */
	struct deferred leave;
	struct api_stream *stream;
	struct api_held *held;
	struct api_socket *socket;
	struct MHD_UpgradeResponseHandle *upgraded; /* while its owner has the socket */
	sd_event_source *hangup; /* while the request is held, or its stream has nothing to send */
	bool no_room;            /* its body was dropped, because too much memory is held */
	bool begun, routed, suspended, queued, gone_away;
};

#endif
