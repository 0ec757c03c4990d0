// SPDX-License-Identifier: Apache-2.0
/* api_origin.c: where a request came from. Runs in: supervisor. */
#include "supervisor/http/api_origin.h"

#include <stdio.h>
#include <sys/socket.h>

#include "supervisor/http/http_req.h"
#include "supervisor/http/tcp_gate.h"

static void
find_peer(const struct api_req *req, struct api_origin *o)
{
	const union MHD_ConnectionInfo *info =
	    req->conn ? MHD_get_connection_info(req->conn, MHD_CONNECTION_INFO_CONNECTION_FD)
		      : NULL;
	struct ucred peer;
	socklen_t len = sizeof peer;

	if (!info || getsockopt(info->connect_fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return;
	o->uid = peer.uid;
	o->pid = peer.pid;
}

struct api_origin
api_origin(const struct api_req *req)
{
	struct api_origin o = { .uid = (uid_t)-1, .address = "", .certificate = "" };

	if (req->client && req->client->is_link) {
		o.kind = API_ORIGIN_HEALTH;
		return o;
	}
	if (req->client && req->client->tcp) {
		o.kind = API_ORIGIN_TCP;
		o.address = req->client->tcp->address;
		o.certificate = req->client->tcp->certificate;
		return o;
	}
	o.task = api_task(req);
	o.kind = o.task ? API_ORIGIN_TASK : API_ORIGIN_SOCKET;
	find_peer(req, &o);
	return o;
}

void
api_origin_text(const struct api_req *req, char ret[API_ORIGIN_TEXT_SIZE])
{
	const struct api_origin o = api_origin(req);
	const size_t size = API_ORIGIN_TEXT_SIZE;

	switch (o.kind) {
	case API_ORIGIN_SOCKET:
		(void)snprintf(ret, size, "uid %u", o.uid);
		break;
	case API_ORIGIN_TASK:
		(void)snprintf(ret, size, "task %s, uid %u", o.task->name, o.uid);
		break;
	case API_ORIGIN_HEALTH:
		(void)snprintf(ret, size, "a client of health { address }");
		break;
	case API_ORIGIN_TCP:
		(void)snprintf(ret, size, "%s%s%s", o.address,
		    o.certificate[0] ? ", certificate " : "", o.certificate);
		break;
	}
}
