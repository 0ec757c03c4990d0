// SPDX-License-Identifier: Apache-2.0
/* listener_links.c: the links of the listener, and what may be requested by them. Runs in:
 * supervisor. Asked by: listener. */
#include "supervisor/http/listener_links.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "supervisor/core/sup_child.h"
#include "supervisor/http/http_origin.h"
#include "supervisor/http/http_req.h"
#include "supervisor/http/tcp_gate.h"

#define WAITING_MAX 256 /* links for the API that the listener has not taken yet */
#define LINKS_MAX   16  /* the listener uses three; one whose client left ends with its answer */
#define API_LINKS_MAX                                                                              \
	200 /* of the 1,200 connections; the listener uses four fifths, because those              \
		   that it closes take a moment to end */

/* Requests without a token, and without a change of anything. */
static const char *const patterns[] = { "/v1/agent/health", "/v1/metrics" };

static void
start(struct sup *sup)
{
	const struct lis_serve_ev serve = { .links = LINKS_MAX,
		.api_links = API_LINKS_MAX * 4 / 5 };

	child_tell(sup, IPC_LISTENER, LIS_SERVE_EV, &serve);
}

/* --- clients of the API --- */

static bool
is_coming(const struct api *api, const struct http_tcp *tcp)
{
	const struct http_tcp *t;

	LIST_FOREACH (t, &api->coming, coming)
		if (t == tcp)
			return true;
	return false;
}

bool
listener_links_take(struct api *api, struct http_tcp *tcp)
{
	if (!is_coming(api, tcp))
		return false;
	LIST_REMOVE(tcp, coming);
	return true;
}

void
listener_links_drop(struct api *api, struct http_tcp *tcp)
{
	if (!tcp)
		return;
	api->n_tcp--;
	tcp_tokens_forget(tcp);
	free(tcp);
}

void
listener_links_free(struct api *api)
{
	struct http_tcp *tcp;

	while ((tcp = LIST_FIRST(&api->coming)) && listener_links_take(api, tcp))
		listener_links_drop(api, tcp);
}

/* --- links --- */

/* Adds our end of a link to the connections; tcp is its client's, or NULL. libmicrohttpd takes over
 * the end, also on failure. It reports the connection now or later, perhaps never. */
static void
add_link(struct sup *sup, int end, struct http_tcp *tcp)
{
	const struct http_origin origin = { .family = AF_UNSPEC, .tcp = tcp };
	struct api *api = sup->api;

	if (tcp) {
		LIST_INSERT_HEAD(&api->coming, tcp, coming);
		api->n_tcp++;
	}
	if (MHD_add_connection(api->mhd, end, (const struct sockaddr *)&origin, sizeof origin) !=
		MHD_YES &&
	    tcp && listener_links_take(api, tcp))
		listener_links_drop(api, tcp);
}

/* Returns whether the listener may have one more link: one that does not take them would fill our
 * table of descriptors. Some are left for health and metrics. */
static bool
may_send(const struct sup *sup, bool api)
{
	unsigned waiting = 0, sent = 0;

	(void)child_counts(sup, IPC_LISTENER, &waiting, &sent);
	return waiting < WAITING_MAX + (api ? 0 : LINKS_MAX);
}

static int
make_pair(int ends[2])
{
	return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends);
}

/* Makes a link, whose other end the listener gets. Without room for one more its end is closed. */
static int
on_want(struct sup *sup, const struct lis_want_ev *want)
{
	const struct lis_link_ev link = { .link = want->link };
	struct http_tcp *tcp = NULL;
	int ends[2];

	if (!may_send(sup, want->api))
		return 0; /* its clients are answered at their deadline */
	if (want->api && (sup->config->listen[LISTEN_API].len == 0 ||
			     !(tcp = http_tcp_new(want->link, want->address, want->certificate))))
		return -EPROTO;
	if (tcp)
		tcp->listener = child_generation(sup, IPC_LISTENER);
	if (make_pair(ends) < 0) {
		log_error("make a link for the listener: %m");
		free(tcp);
		return 0;
	}
	if (want->api ? sup->api->n_tcp < API_LINKS_MAX : sup->api->n_links < LINKS_MAX) {
		add_link(sup, ends[0], tcp);
	} else {
		(void)close(ends[0]);
		free(tcp);
	}
	(void)child_call(sup, IPC_LISTENER, LIS_LINK_EV, &link, ends[1], 0, CALL_TELL, NULL, NULL);
	http_run(sup);
	return 0;
}

static int
on_event(struct sup *sup, struct ipc_packet *p)
{
	if (!sup->api)
		return 0;
	if (p)
		return p->type == LIS_WANT_EV ? on_want(sup, p->msg) : -EPROTO;
	start(sup);
	return 0;
}

void
listener_links_init(struct sup *sup)
{
	if (sup->config->listen[LISTEN_HEALTH].len == 0 && sup->config->listen[LISTEN_API].len == 0)
		return;
	child_listen(sup, IPC_LISTENER, on_event);
	start(sup);
}

static bool
is_permitted(const struct api_req *req)
{
	if (strcmp(req->method, "GET") != 0 || req->body_seen > 0 || req->route->durable)
		return false;
	for (size_t i = 0; i < ELEMENTSOF(patterns); i++)
		if (strcmp(req->route->pattern, patterns[i]) == 0)
			return true;
	return false;
}

void
listener_links_serve(struct api_req *req)
{
	struct err e = { 0 };

	if (api_target_parse(req->uri, &req->target, &e) < 0) {
		api_reply_error(req, 400, "%s", e.msg);
		return;
	}
	if (api_route_find(req->sup->api->routes, req->method, &req->target, &req->route) < 0) {
		api_reply_error(req, 404, "resource not found");
		return;
	}
	if (!is_permitted(req)) {
		log_error("the listener requested %s %s, which is not permitted", req->method,
		    req->route->pattern);
		api_reply_error(req, 403, "Forbidden");
		return;
	}
	api_serve(req);
}
