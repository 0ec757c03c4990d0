/* SPDX-License-Identifier: Apache-2.0 */
/* csi.h: declarations that the files of the process share. Runs in: csi-helper. */
#ifndef DROVER_CSI_HELPER_CSI_H
#define DROVER_CSI_HELPER_CSI_H

#include "common/proc.h"
#include "csi-helper/csi_answer.h"
#include "csi-helper/csi_grpc.h"
#include "proto/csi_helper.pb-c.h"

/* Limits: there is one channel per plugin instance, and calls run concurrently. Beyond a limit the
 * supervisor gets an error. */
#define CSI_CHANNELS_MAX 64
#define CSI_CALLS_MAX    256
#define CSI_MESSAGE_SIZE 1024

struct csi_open_plugin {
	uint64_t number; /* number of the channel, chosen by the supervisor; 0: free slot */
	struct csi_channel *channel;
};

/* The only instance. */
struct csi {
	struct csi_grpc grpc;
	struct csi_open_plugin plugins[CSI_CHANNELS_MAX];
	struct csi_call *calls[CSI_CALLS_MAX]; /* calls in progress */
	/* Since when a call is late and no call has ended; 0: none is late. A single late check is
	 * not enough, because this process itself may have been stopped. */
	uint64_t late_since_ms;
};

extern const struct proc_spec csi_helper;

/* The handlers. 0: answered now, like an error; PROC_LATER: the plugin is asked, and
 * csi_calls_finish() answers. */
int csi_on_plugin_open(
    struct csi *csi, const struct ipc_packet *p, const CsiPluginOpenReq *req, struct err *e);
int csi_on_plugin_close(struct csi *csi, const CsiPluginCloseReq *req, struct err *e);
int csi_on_call(struct csi *csi, const struct ipc_packet *p, const CsiCallReq *req, struct err *e);
void csi_on_call_cancel(struct csi *csi, const CsiCallCancelEv *ev);

/* Answers the requests of all ended calls. Returns 0, or -errno with *e if the supervisor is gone.
 */
int csi_calls_finish(struct csi *csi, struct err *e);

/* Returns how long poll(2) may wait for gRPC to end the next call; -1 without calls; 0 with *e if a
 * call is more than two seconds late. */
int csi_calls_timeout_ms(struct csi *csi, struct err *e);

#endif
