/* SPDX-License-Identifier: Apache-2.0 */
/* csi_answer.h: decoding what a plugin answers, within limits. Runs in: csi-helper. */
#ifndef DROVER_CSI_ANSWER_H
#define DROVER_CSI_ANSWER_H

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

/* msg lives in memory of the answer's own, and owns nothing else. */
struct csi_answer {
	ProtobufCMessage *msg;
	void *space;
	size_t size, used;
};

/*
 * Decodes a message of type desc: strings must be UTF-8 without NUL, no single field may come
 * twice, and it may not unfold into more than 8 MiB; fields that are not known are dropped. 0, or
 * -EPROTO, -ENOMEM with *e; *ret is to be given to csi_answer_done() in any case.
 */
int csi_answer_decode(const ProtobufCMessageDescriptor *desc, const uint8_t *data, size_t len,
    struct csi_answer *ret, struct err *e);
void csi_answer_done(struct csi_answer *a);

#endif
