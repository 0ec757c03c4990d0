/* SPDX-License-Identifier: Apache-2.0 */
/* csl_grpc.h: a gRPC server on a unix socket, for unary calls. Runs in: drover-csi-local. */
#ifndef DROVER_CONTRIB_CSI_LOCAL_CSL_GRPC_H
#define DROVER_CONTRIB_CSI_LOCAL_CSL_GRPC_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

struct csl_server;
/* One call, from the handler until csl_call_answer(). */
struct csl_call;

/* Handles each call, one at a time, on the thread of csl_server_run(). method is
 * "/package.Service/Method"; data is the request's message. Both are valid until the handler
 * returns. Any thread must eventually answer the call. */
typedef void csl_handler(
    void *arg, struct csl_call *call, const char *method, const uint8_t *data, size_t len);

/* Listens on socket_path (absolute, at most 107 bytes) and replaces a stale socket there; only the
 * same user may connect. Starts gRPC's threads, so signals must be blocked or handled before.
 * -EADDRINUSE, -ENAMETOOLONG. */
int csl_server_new(const char *socket_path, csl_handler *handler, void *arg,
    struct csl_server **ret, struct err *e);

/* Serves calls; never returns. */
_Noreturn void csl_server_run(struct csl_server *s);

/* Answers a call. status is a grpc_status_code; message (may be NULL) is for a failure, data for
 * GRPC_STATUS_OK. With NULL data no message is sent, which is not a valid answer. */
void csl_call_answer(
    struct csl_call *call, int status, const char *message, const void *data, size_t len);

#endif
