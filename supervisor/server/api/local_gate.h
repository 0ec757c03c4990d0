/* SPDX-License-Identifier: Apache-2.0 */
/* local_gate.h: checks the token of each request to an agent that works alone, before the request
 * is handled: with acl { enabled }, and of each request of a task. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_API_LOCAL_GATE_H
#define DROVER_SUPERVISOR_SERVER_API_LOCAL_GATE_H

#include "supervisor/acl/acl_rules.h"
#include "supervisor/http/api.h"
#include "supervisor/http/api_backend.h"

struct local_identity;

/* Returns true if the request may be handled. False: it was answered. */
bool local_gate_admit(struct sup *sup, struct api_req *req);
/* For struct api_backend and struct source_api. */
void local_gate_authenticate(struct sup *sup, const char *token, const struct api_task *task,
    api_authenticate_cb *cb, void *arg);
bool local_gate_permits(
    struct sup *sup, const struct api_req *req, int need, const char *namespace);
void local_gate_describe(struct sup *sup, const struct api_req *req, json_t *auth);
bool local_gate_shows(struct sup *sup, const struct api_req *req, const char *namespace);

/* Returns whether the request's token may mount a host volume. */
bool local_gate_permits_host_volume(const struct api_req *req, const char *name, bool writes);

/* Returns whether the request's token may do this with a variable; the identity of a task also has
 * the rights of its job. */
bool local_gate_permits_variable(
    const struct api_req *req, const char *namespace, const char *path, enum acl_variable what);

/* Returns who sends the request; NULL if that is not valid any more. */
const struct local_identity *local_gate_identity(struct sup *sup, const struct api_req *req);
/* Answers with 403, and with what to do about it. */
void local_gate_refuse(struct sup *sup, struct api_req *req);

#endif
