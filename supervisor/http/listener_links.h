/* SPDX-License-Identifier: Apache-2.0 */
/* listener_links.h: the requests of the listener, which serves health { address } and ports { http
 * }. They come by links: socket pairs, each made when the listener wants one. The listener faces
 * the network, so it is not trusted. By a link for health { address } only the node's health and
 * metrics can be read, whatever the listener sends. A link for the API stands for one client, whose
 * requests tcp_gate.h checks. Runs in: supervisor. Asked by: listener. */
#ifndef DROVER_SUPERVISOR_HTTP_LISTENER_LINKS_H
#define DROVER_SUPERVISOR_HTTP_LISTENER_LINKS_H

#include <stdbool.h>

struct api;
struct api_req;
struct http_tcp;
struct sup;

/* Starts the listener if the configuration has a TCP address, also again when it has ended. */
void listener_links_init(struct sup *sup);

/* For http.c. Answers the request of a link. */
void listener_links_serve(struct api_req *req);
/* libmicrohttpd reports the connection of a client. Returns false if it is none that was added.
 * Otherwise the caller drops it when the connection has ended. */
bool listener_links_take(struct api *api, struct http_tcp *tcp);
void listener_links_drop(struct api *api, struct http_tcp *tcp); /* accepts NULL */
/* When libmicrohttpd has ended: drops what it never reported. */
void listener_links_free(struct api *api);

#endif
