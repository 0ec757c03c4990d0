/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nomad_acl.h: who may ask this node for what, where acl { enabled } is set: requests of servers
 * and of the API bring the token of who asks, and nothing is done before it is known to permit it.
 * Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_CLUSTER_ACL_NOMAD_ACL_H
#define DROVER_SUPERVISOR_CLUSTER_ACL_NOMAD_ACL_H

#include "supervisor/cluster/node/nomad.h"

/* Calls the method of a server's request, or refuses it. */
void nomad_acl_gate(
    struct sup *sup, const struct link_method *m, uint64_t stream, const void *body, size_t len);
/* The same for a request of the API: here, or (NULL) its route's handler. */
void nomad_acl_serve(struct sup *sup, struct api_req *req, api_handler *here);
/* May who asks read the jobs of this namespace? */
bool nomad_acl_shows(struct sup *sup, const struct api_req *req, const char *namespace);

#endif
