/* SPDX-License-Identifier: Apache-2.0 */
/* csi_grpc.h: the client side of gRPC core: channels, unary calls, their end. Runs in: csi-helper.
 */
#ifndef DROVER_CSI_GRPC_H
#define DROVER_CSI_GRPC_H

#include <grpc/status.h>
#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

/* gRPC's own default; a larger answer ends its call with RESOURCE_EXHAUSTED. */
#define CSI_ANSWER_BYTES_MAX (4 * 1024 * 1024)

struct csi_channel;

/* A call. The first part is the requester's to fill, `result` is filled when csi_grpc_next() gives
 * it back. */
struct csi_call {
	uint64_t channel;
	unsigned type; /* of the request that it answers */
	uint32_t serial;
	uint32_t method;
	uint32_t timeout_ms;
	uint64_t started_ms; /* CLOCK_MONOTONIC */
	struct csi_call *next;

	struct {
		int status; /* grpc_status_code */
		const void *message;
		size_t message_len;
		const uint8_t *data; /* NULL unless the status is OK and there was a message */
		size_t len;
	} result;
	struct csi_call_state *state; /* gRPC's */
};

/*
 * Starts gRPC and the one thread that waits for it. Returns an eventfd that becomes readable when
 * calls have ended, or -errno. Never stopped: the process ends with it.
 */
int csi_grpc_start(struct err *e);

/*
 * Gives the pages of code and constants back that starting took and calling does not need, about
 * half of this process's memory; what is needed comes back from the page cache by itself.
 */
void csi_grpc_trim(void);

/* A channel on the connected socket fd, which it takes over in any case. It never reconnects. NULL:
 * out of memory. */
struct csi_channel *csi_channel_new(int fd);
/* Calls on it go on; cancel them first. NULL is fine. */
void csi_channel_free(struct csi_channel *ch);

/*
 * Sends req to method ("/csi.v1.Node/NodeStageVolume"); the call ends with the answer, at
 * timeout_ms, or by csi_call_cancel(), always through csi_grpc_next(). 0, -ENOMEM.
 */
int csi_call_start(
    struct csi_call *call, struct csi_channel *ch, const char *method, const ProtobufCMessage *req);
void csi_call_cancel(struct csi_call *call);
/* Of an ended one, or of one that did not start. */
void csi_call_free(struct csi_call *call);

/* A call that has ended, or NULL. */
struct csi_call *csi_grpc_next(void);

/* "DEADLINE_EXCEEDED" … */
const char *csi_status_name(int status);

#endif
