/* SPDX-License-Identifier: Apache-2.0 */
/* csi_answer.h: decodes a plugin's answers, within limits. Runs in: csi-helper. */
#ifndef DROVER_CSI_HELPER_CSI_ANSWER_H
#define DROVER_CSI_HELPER_CSI_ANSWER_H

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/ipc.h"

/* Memory limit of a decoded answer: slightly less than the supervisor's limit for the whole packet,
 * so that a plugin cannot make csi-helper send a packet that the supervisor refuses. */
#define CSI_ANSWER_SPACE (IPC_ARENA_SIZE - 4096)

/* A decoded answer. msg lies in space and is valid as long as this struct. */
struct csi_answer {
	ProtobufCMessage *msg;
	size_t used;
	_Alignas(16) uint8_t space[CSI_ANSWER_SPACE];
};

/* Decodes a message of type desc. Strings must be UTF-8 without NUL, no single field may be
 * repeated, and the message must fit into *ret; unknown fields are dropped. Returns 0, or -EPROTO
 * with *e. */
int csi_answer_decode(const ProtobufCMessageDescriptor *desc, const uint8_t *data, size_t len,
    struct csi_answer *ret, struct err *e);

#endif
