/* SPDX-License-Identifier: Apache-2.0 */
/* csi_answer.h: decodes a plugin's answers, within limits. Runs in: csi-helper. */
#ifndef DROVER_CSI_HELPER_CSI_ANSWER_H
#define DROVER_CSI_HELPER_CSI_ANSWER_H

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/ipc_protobuf.h"
#include "proto/csi_limits.h"

/* Limit of the memory of a decoded answer, below the supervisor's, so that a plugin cannot make
 * csi-helper send a message that the supervisor refuses. */
#define CSI_ANSWER_MEMORY (IPC_PROTOBUF_MEMORY(CSI_REP_BYTES_MAX) - 32768)
/* Up to here a packet can be decoded in the supervisor's arena for packets. */
#define CSI_ANSWER_INLINE (IPC_ARENA_SIZE / 2)

/* A decoded answer; used is its memory. */
struct csi_answer {
	ProtobufCMessage *msg;
	size_t used;
};

/* Decodes a message of type desc. Strings must be UTF-8 without NUL, no single field may be
 * repeated, and the message may take CSI_ANSWER_MEMORY; unknown fields are dropped. Returns 0, or
 * -EPROTO with *e. csi_answer_done() frees it. */
int csi_answer_decode(const ProtobufCMessageDescriptor *desc, const uint8_t *data, size_t len,
    struct csi_answer *ret, struct err *e);
void csi_answer_done(struct csi_answer *a);
#define cleanup_csi_answer __attribute__((__cleanup__(csi_answer_done)))

#endif
