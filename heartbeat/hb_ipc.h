/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hb_ipc.h: sends packets to the supervisor, which may be slow or stopped: they are queued without
 * blocking. The senders bound the queue: calls by their number, streams by their windows. Runs in:
 * heartbeat.
 */
#ifndef DROVER_HEARTBEAT_HB_IPC_H
#define DROVER_HEARTBEAT_HB_IPC_H

#include "heartbeat/hb.h"

void hb_ipc_init(struct hb_ipc *ipc);
/* Sends a packet now or later, in order, and takes over fd (-1: none). Errors are not returned: the
 * loop notices that the supervisor is gone. */
void hb_ipc_tell(struct hb *hb, unsigned type, uint32_t serial, const void *msg, int fd);
/* Sends queued packets when the socket accepts more. Returns 0, or -errno with *e. */
int hb_ipc_flush(struct hb_ipc *ipc, struct err *e);

#endif
