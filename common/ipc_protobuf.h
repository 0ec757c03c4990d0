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

/* Returns NULL for a message that is not protobuf. */
const ProtobufCMessageDescriptor *ipc_protobuf_desc(unsigned type);

#endif
