/* SPDX-License-Identifier: Apache-2.0 */
/* csi.h: what the parts of the process share. Runs in: csi-helper. */
#ifndef DROVER_CSI_H
#define DROVER_CSI_H

#include "common/proc.h"

/* One channel per plugin instance; calls run concurrently. Beyond these the supervisor gets an
 * error. */
#define CSI_CHANNELS_MAX   64
#define CSI_CALLS_MAX      256
#define CSI_TIMEOUT_MAX_MS (30 * 60 * 1000)
#define CSI_MESSAGE_SIZE   1024

extern const struct proc_spec csi_helper;

/* The handlers, proc_handler. Both requests that wait for a plugin are answered by
 * csi_calls_finish(). */
proc_handler csi_on_plugin_open, csi_on_plugin_close, csi_on_call;
void csi_on_call_cancel(const struct ipc_packet *p);

/* Answers everything that has ended. 0, or -errno with *e: the supervisor is gone. */
int csi_calls_finish(struct err *e);

/*
 * How long poll(2) may wait for gRPC to end the next call; -1: there is none. 0: one should have
 * ended more than two seconds ago, and *e says which.
 */
int csi_calls_timeout_ms(struct err *e);

#endif
