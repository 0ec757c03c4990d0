/* SPDX-License-Identifier: Apache-2.0 */
/* nomad_acl.h: with acl { enabled }, checks the token of each request from servers and from the API
 * before the request is handled. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_CLUSTER_ACL_NOMAD_ACL_H
#define DROVER_SUPERVISOR_CLUSTER_ACL_NOMAD_ACL_H

#include "supervisor/cluster/node/nomad.h"

/* Calls the method of a server's request if its token permits it; otherwise refuses the request. */
void nomad_acl_gate(
    struct sup *sup, const struct link_method *m, uint64_t stream, const void *body, size_t len);
/* The same for a request of the API; calls `here`, or the route's handler if it is NULL. If
 * alloc_id (which may be NULL) is an alloc of this node, the alloc's namespace counts. */
void nomad_acl_serve(struct sup *sup, struct api_req *req, const char *alloc_id, api_handler *here);
/* Returns true if the request's token may read the jobs of this namespace. */
bool nomad_acl_shows(struct sup *sup, const struct api_req *req, const char *namespace);

#endif
