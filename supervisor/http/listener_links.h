/* SPDX-License-Identifier: Apache-2.0 */
/* listener_links.h: the requests of the listener, which serves health { address }. Each comes by a
 * link: a socket pair that is made for it, when the listener wants one. The listener faces the
 * network, so it is not trusted: only the node's health and metrics can be read by a link, whatever
 * the listener sends. Runs in: supervisor. Asked by: listener. */
#ifndef DROVER_SUPERVISOR_HTTP_LISTENER_LINKS_H
#define DROVER_SUPERVISOR_HTTP_LISTENER_LINKS_H

struct api_req;
struct sup;

/* Starts the listener if the configuration has an address, also again when it has ended. */
void listener_links_init(struct sup *sup);

/* For http.c. Answers the request of a link. */
void listener_links_serve(struct api_req *req);

#endif
