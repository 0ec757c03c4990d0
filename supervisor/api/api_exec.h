/* SPDX-License-Identifier: Apache-2.0 */
/* api_exec.h: the websockets of commands inside tasks. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_API_API_EXEC_H
#define DROVER_SUPERVISOR_API_API_EXEC_H

#include "supervisor/http/api.h"
#include "supervisor/api/exec_stream.h"

/* Serves a command on another node. If the request is a websocket handshake, begin() is called: it
 * sets es->far and far_arg, whose done() is called at the end. If it does not set them, the answer
 * is 503. */
void api_exec_far(struct sup *sup, struct api_req *req,
    void (*begin)(struct exec_stream *es, void *arg), void *arg);

#endif
