/* SPDX-License-Identifier: Apache-2.0 */
/* nomad_call.h: calls to the servers, their retries and their answers. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_CLUSTER_NODE_NOMAD_CALL_H
#define DROVER_SUPERVISOR_CLUSTER_NODE_NOMAD_CALL_H

#include "supervisor/cluster/node/nomad.h"

/* Returns a delay between base and twice base, doubled for each failure up to max. */
uint64_t nomad_retry_ms(unsigned *failures, uint64_t base_ms, uint64_t max_ms);
/* Calls fn(nomad) once, ms from now, also if the machine is suspended meanwhile. *timer belongs to
 * the caller; an existing timer is moved. */
void nomad_after(struct nomad *n, struct sup_timer *timer, uint64_t ms, void (*fn)(void *nomad));
const char *nomad_region(const struct nomad *n);
/* Returns the token of the node's own calls; "": none. */
const char *nomad_token(const struct nomad *n);
/* Fill in region and token. */
void nomad_query(struct nomad *n, struct rpc_query *q);
void nomad_write(struct nomad *n, struct rpc_write *w);
/* For a request that is not freed by its type's function. */
void nomad_write_done(struct rpc_write *w);
/* Encodes req and calls link_call(). */
uint64_t nomad_call(struct nomad *n, const char *method, const struct type *type, const void *req,
    unsigned deadline_ms, unsigned flags, link_cb *cb, void *arg);
/* Ends a server's streaming request with an error, which has an HTTP status. */
void nomad_stream_fail(struct sup *sup, uint64_t stream, int status, const char *message);
/* Decodes the answer of a call into *rep; r, body, len and e are the arguments of its link_cb.
 * Returns 0, or negative with *ret_e: r with *e if the call has failed, else what is wrong with the
 * answer. The caller frees *rep in each case. */
int nomad_decode(int r, const void *body, size_t len, const struct err *e, const struct type *type,
    void *rep, struct err *ret_e);

#endif
