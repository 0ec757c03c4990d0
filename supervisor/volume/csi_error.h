/* SPDX-License-Identifier: Apache-2.0 */
/* csi_error.h: what the gRPC status of a CSI call means (csi_codes.def), and the error for it. Runs
 * in: supervisor. */
#ifndef DROVER_SUPERVISOR_VOLUME_CSI_ERROR_H
#define DROVER_SUPERVISOR_VOLUME_CSI_ERROR_H

#include <stdbool.h>

#include "common/err.h"
#include "proto/csi_helper.pb-c.h"

#define GRPC_OK                 0
#define GRPC_RESOURCE_EXHAUSTED 8
#define GRPC_INTERNAL           13

enum csi_verdict {
	CSI_DONE,    /* as good as OK */
	CSI_FINAL,   /* the error ends the call */
	CSI_RETRY,   /* repeated a few times */
	CSI_PENDING, /* an earlier call for the volume has not ended: repeated for longer */
};

/* What a status means as the answer to a call. */
struct csi_outcome {
	int code;         /* negative errno; 0 with CSI_DONE */
	const char *name; /* "FailedPrecondition" */
	enum csi_verdict verdict;
	bool unknown; /* the call may have taken effect, or may still do so */
	const char *meaning;
};

/* Returns a name such as "NodePublishVolume". */
const char *csi_call_name(CsiCallReq__CallCase call);
/* Returns true for the calls of a fingerprint, which are made again periodically. */
bool csi_call_is_once(CsiCallReq__CallCase call);
struct csi_outcome csi_outcome(CsiCallReq__CallCase call, uint32_t status);
/* The same for an answer, or for the end of a call without one. */
struct csi_outcome csi_outcome_of(CsiCallReq__CallCase call, const CsiCallRep *rep);
/* Returns 0 if the status is as good as OK; else the code of csi_outcome_of(), with *e. tries: how
 * often the call was sent. */
int csi_error(CsiCallReq__CallCase call, const char *plugin, const CsiCallRep *rep, unsigned tries,
    struct err *e);

#endif
