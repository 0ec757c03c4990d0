// SPDX-License-Identifier: Apache-2.0
/*
 * fuzz_ipc_decode.c: any packet, in every direction. The first three bytes are receiver, sender and
 * number of descriptors. An accepted packet is canonical: encoding it again gives the same bytes.
 */
#include <errno.h>
#include <string.h>

#include "common/ipc_protobuf.h"
#include "tests/fuzz/fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct ipc_packet packet;
	static uint8_t again[IPC_PACKET_MAX];
	struct err e = { 0 };
	enum ipc_peer me, from;
	ssize_t len;
	int r;

	if (size < 3)
		return 0;
	ipc_use_codec(&ipc_protobuf);
	me = (enum ipc_peer)(data[0] % IPC_HELPER);
	from = (enum ipc_peer)(data[1] % IPC_HELPER);
	r = ipc_decode(me, from, data + 3, size - 3, data[2], &packet, &e);
	HOLDS(r == 0 || (r == -EPROTO && e.msg[0]));
	HOLDS(packet.arena_used <= IPC_ARENA_SIZE);
	if (r < 0)
		return 0;
	len = ipc_encode(from, me, packet.type, packet.serial, packet.msg, again, &e);
	HOLDS(len >= 0 && (size_t)len == size - 3 && memcmp(again, data + 3, size - 3) == 0);
	return 0;
}
