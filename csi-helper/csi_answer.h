/* SPDX-License-Identifier: Apache-2.0 */
/* csi_answer.h: decoding what a plugin answers, within limits. Runs in: csi-helper. */
#ifndef DROVER_CSI_ANSWER_H
#define DROVER_CSI_ANSWER_H

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/ipc.h"

/*
 * What an answer may unfold into: a little less than the supervisor has for the packet around it,
 * so that no plugin can make csi-helper send what is refused there.
 */
#define CSI_ANSWER_SPACE (IPC_ARENA_SIZE - 4096)

/* A decoded answer. msg lives in space, so it is valid as long as this is. */
struct csi_answer {
	ProtobufCMessage *msg;
	size_t used;
	_Alignas(16) uint8_t space[CSI_ANSWER_SPACE];
};

/*
 * Decodes a message of type desc: strings must be UTF-8 without NUL, no single field may come
 * twice, and it has to fit into *ret; fields that are not known are dropped. 0, or -EPROTO with *e.
 */
int csi_answer_decode(const ProtobufCMessageDescriptor *desc, const uint8_t *data, size_t len,
    struct csi_answer *ret, struct err *e);

#endif
