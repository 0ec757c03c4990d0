/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hb_ipc.h: packets to the supervisor, which may be slow or stopped: nothing here waits for it.
 * What can queue up is bounded by who sends: calls, streams and their windows. Runs in: heartbeat.
 */
#ifndef DROVER_HB_IPC_H
#define DROVER_HB_IPC_H

#include "heartbeat/hb.h"

void hb_ipc_init(struct hb_ipc *ipc);
/* Sends now or later, in order; fd (-1: none) is taken over. A supervisor that is gone is noticed
 * by the loop. */
void hb_ipc_tell(struct hb *hb, unsigned type, uint32_t serial, const void *msg, int fd);
/* The socket takes more. */
int hb_ipc_flush(struct hb_ipc *ipc, struct err *e);

#endif
