/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ipc_protobuf.h: the codec of the protobuf messages in proto/ipc_msgs.def. Runs in: supervisor and
 * the helpers without capabilities.
 */
#ifndef DROVER_COMMON_IPC_PROTOBUF_H
#define DROVER_COMMON_IPC_PROTOBUF_H

#include <protobuf-c/protobuf-c.h>

#include "common/ipc.h"

/*
 * Unpacks into the packet's arena and rejects unknown fields at any depth. Then it packs the
 * message again and compares byte for byte, because protobuf-c merges doubled fields and accepts
 * NULs in strings.
 */
extern const struct ipc_codec ipc_protobuf;

/*
 * Put a message that may be too large for a packet into a sealed memfd, and take it out. The other
 * process is trusted as little as in a packet: what is taken out has passed the same checks.
 *
 * ipc_protobuf_put() returns a descriptor, which the caller closes, or -EMSGSIZE above max bytes or
 * another -errno, with *e. ipc_protobuf_take() returns the message, which the caller frees with
 * protobuf_c_message_free_unpacked(msg, NULL), or NULL with *e; it does not close the descriptor.
 */
int ipc_protobuf_put(const ProtobufCMessage *msg, size_t max, struct err *e);
ProtobufCMessage *ipc_protobuf_take(
    const ProtobufCMessageDescriptor *desc, int fd, size_t max, struct err *e);

/* An allocator for protobuf-c that allocates at most so many bytes until its end. What it allocates
 * is freed by free(). */
struct ipc_protobuf_memory {
	ProtobufCAllocator base;
	size_t left;
};
void ipc_protobuf_limit(struct ipc_protobuf_memory *m, size_t bytes);
/* Memory that a decoded message of so many bytes may take: the smallest element of a list takes two
 * bytes in the message and up to 64 in memory, but real ones take three times their size. */
#define IPC_PROTOBUF_MEMORY(bytes) (8 * (size_t)(bytes) + 65536)

/* Returns NULL for a message that is not protobuf. */
const ProtobufCMessageDescriptor *ipc_protobuf_desc(unsigned type);

#endif
