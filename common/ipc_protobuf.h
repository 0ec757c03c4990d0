/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ipc_protobuf.h: the messages of proto/ipc_msgs.def that are protobuf. Runs in: supervisor and the
 * helpers without capabilities.
 */
#ifndef DROVER_COMMON_IPC_PROTOBUF_H
#define DROVER_COMMON_IPC_PROTOBUF_H

#include <protobuf-c/protobuf-c.h>

#include "common/ipc.h"

/*
 * Unpacks into the packet's arena, refuses unknown fields at any depth, packs again and compares
 * byte for byte (protobuf-c alone merges doubled fields and lets NULs through).
 */
extern const struct ipc_codec ipc_protobuf;

/* NULL for what is no protobuf message. */
const ProtobufCMessageDescriptor *ipc_protobuf_desc(unsigned type);

#endif
