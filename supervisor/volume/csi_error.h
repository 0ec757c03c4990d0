/* SPDX-License-Identifier: Apache-2.0 */
/* csi_error.h: the error for a gRPC status of a CSI call. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_VOLUME_CSI_ERROR_H
#define DROVER_SUPERVISOR_VOLUME_CSI_ERROR_H

#include "common/err.h"
#include "proto/csi_helper.pb-c.h"

#define GRPC_OK                0
#define GRPC_DEADLINE_EXCEEDED 4
#define GRPC_NOT_FOUND         5
#define GRPC_UNAVAILABLE       14

/* Returns a name such as "NodePublishVolume". */
const char *csi_call_name(CsiCallReq__CallCase call);
/*
 * Returns 0 for status OK, else a negative errno with *e: -ENOENT for NOT_FOUND (which unpublish
 * and unstage may ignore), -ETIMEDOUT, -ECONNRESET for UNAVAILABLE, -EBUSY for FAILED_PRECONDITION,
 * -EEXIST, -EINVAL, -ENOSPC, -EIO and others.
 */
int csi_error(CsiCallReq__CallCase call, const char *plugin, const CsiCallRep *rep, struct err *e);

#endif
