/* SPDX-License-Identifier: Apache-2.0 */
/* rpc_stream.h: what follows the request of a streaming call. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_CLUSTER_RPC_RPC_STREAM_H
#define DROVER_SUPERVISOR_CLUSTER_RPC_RPC_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "model/engine/field.h"

/* The first object of a stream, and the answer of the accepting side. */
struct rpc_stream_open {
	char *method;
};

struct rpc_stream_accept {
	char *error;
};

MODEL_DECLARE(rpc_stream_open);
MODEL_DECLARE(rpc_stream_accept);

/* An object that follows the request on the stream. Each field is optional; an object without
 * fields is a heartbeat. */
struct rpc_exec_input {
	bool has_stdin, has_size, close;
	const char *data; /* points into the object; NULL: none */
	size_t len;
	int64_t height, width;
};

/* One frame of a server's stream: bytes, or the error that ends it. */
struct rpc_frame {
	bool failed, event;
	int64_t code;        /* 0: none */
	const char *message; /* points into the object, as payload does; not NUL-terminated */
	const char *payload; /* NULL: none */
	size_t message_len, len;
};

/* Returns 0, or -EBADMSG with *e. Unknown keys are ignored. */
int rpc_frame_parse(const void *data, size_t len, struct rpc_frame *ret, struct err *e);
int rpc_exec_input_parse(const void *data, size_t len, struct rpc_exec_input *ret, struct err *e);

/* Append one frame of a stream: bytes (none: the heartbeat of a plain stream), or the error that
 * ends it, with an HTTP status. */
void rpc_frame_data(struct text *t, const void *data, size_t len);
void rpc_frame_error(struct text *t, int code, const char *message);
/* Append one object for a command on another node; an object without fields is a heartbeat. */
void rpc_exec_input_put(struct text *t, const struct rpc_exec_input *in);

#endif
