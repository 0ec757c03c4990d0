/* SPDX-License-Identifier: Apache-2.0 */
/* csi_grpc.h: the client side of gRPC core: channels and unary calls. Runs in: csi-helper. */
#ifndef DROVER_CSI_HELPER_CSI_GRPC_H
#define DROVER_CSI_HELPER_CSI_GRPC_H

#include <grpc/status.h>
#include <pthread.h>
#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/list.h"
#include "csi-helper/csi_secrets.h"
#include "proto/csi_limits.h"

/* Limits of an answer's message and of its metadata, which has the text of a status with three
 * bytes for each special one. gRPC itself ends a call beyond them with RESOURCE_EXHAUSTED. */
#define CSI_ANSWER_BYTES_MAX   CSI_REP_BYTES_MAX
#define CSI_METADATA_BYTES_MAX (256 * 1024)

struct csi_channel;

/* A call. The requester fills the first part; `result` is valid once csi_grpc_next() has returned
 * the call. */
struct csi_call {
	uint64_t channel;
	unsigned type; /* type and serial number of the request that the call answers */
	uint32_t serial;
	uint32_t method;
	uint32_t timeout_ms;
	uint64_t started_ms; /* CLOCK_MONOTONIC */
	bool cancelled;      /* by csi_call_cancel() */
	/* Set in a probe: the call that ended with UNAVAILABLE, and waits for the probe's end. */
	struct csi_call *about;
	struct csi_secrets secrets;  /* of the request */
	STAILQ_ENTRY(csi_call) link; /* of ended calls */

	struct {
		int status; /* grpc_status_code */
		const void *message;
		size_t message_len;
		const uint8_t *data; /* NULL unless the status is OK and a message came */
		size_t len;
	} result;
	struct csi_call_state *state; /* gRPC's own state */
};

/* gRPC's queue, and the calls that have ended. */
struct csi_grpc {
	struct grpc_completion_queue *queue;
	int event_fd; /* becomes readable when calls have ended */
	pthread_mutex_t lock;
	STAILQ_HEAD(, csi_call) ended; /* protected by lock */
};

/* Starts gRPC and the thread that waits for it. Returns 0, or -errno with *e. gRPC is never
 * stopped; it ends with the process. */
int csi_grpc_start(struct csi_grpc *g, struct err *e);

/* Releases pages of code and constants that only the start needed, about half of this process's
 * memory. Pages that are needed again come back from the page cache. */
void csi_grpc_trim(void);

/* Makes a channel on the connected, non-blocking socket fd, which it takes over. The channel never
 * reconnects. */
struct csi_channel *csi_channel_new(int fd);
/* Closes the channel. Calls on it continue, so cancel them first. Accepts NULL. */
void csi_channel_free(struct csi_channel *ch);

/*
 * Sends req to method ("/csi.v1.Node/NodeStageVolume"); the call ends with the answer, at
 * timeout_ms, or by csi_call_cancel(), always through csi_grpc_next().
 */
void csi_call_start(struct csi_grpc *g, struct csi_call *call, struct csi_channel *ch,
    const char *method, const ProtobufCMessage *req);
void csi_call_cancel(struct csi_call *call);
/* Frees a call that has ended. */
void csi_call_free(struct csi_call *call);

/* Returns a call that has ended, or NULL. */
struct csi_call *csi_grpc_next(struct csi_grpc *g);

/* Returns the status's name: "DEADLINE_EXCEEDED" … */
const char *csi_status_name(int status);

#endif
