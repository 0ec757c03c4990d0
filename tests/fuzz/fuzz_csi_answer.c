// SPDX-License-Identifier: Apache-2.0
/* fuzz_csi_answer.c: the decoder of plugins' answers, with any bytes. Runs in: a fuzzer. */
#include <stdlib.h>
#include <string.h>

#include "common/ipc_protobuf.h"
#include "csi-helper/csi_answer.h"
#include "proto/csi_helper.pb-c.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The cases of CsiCallRep's oneof begin at 10. */
#define ANSWERS (CSI_CALL_REP__ANSWER_GET_VOLUME_GROUP_SNAPSHOT - 10 + 1)

/* The first byte chooses the method. An answer that is accepted and fits into a packet must be
 * accepted by the supervisor too. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_csi_answer struct csi_answer answer = { 0 };
	static struct ipc_packet packet;
	static uint8_t buf[IPC_PACKET_MAX];
	CsiCallRep rep = CSI_CALL_REP__INIT;
	const ProtobufCFieldDescriptor *f;
	struct err e = { 0 };
	ssize_t len;
	int r;

	if (size < 1)
		return 0;
	f = protobuf_c_message_descriptor_get_field(rep.base.descriptor, 10 + data[0] % ANSWERS);
	ipc_use_codec(&ipc_protobuf);
	r = csi_answer_decode(f->descriptor, data + 1, size - 1, &answer, &e);
	if (r < 0) {
		if (e.code != r || e.msg[0] == '\0')
			abort();
		return 0;
	}
	rep.answer_case = (CsiCallRep__AnswerCase)f->id;
	memcpy((uint8_t *)&rep + f->offset, &answer.msg, sizeof answer.msg);
	if (answer.used > CSI_ANSWER_INLINE)
		return 0;
	len = ipc_encode(IPC_CSI_HELPER, IPC_SUPERVISOR, CSI_CALL_REP, 1, &rep.base, buf, &e);
	if (len < 0)
		return 0;
	if (ipc_decode(IPC_SUPERVISOR, IPC_CSI_HELPER, buf, (size_t)len, 0, &packet, &e) < 0)
		abort();
	return 0;
}
