/* SPDX-License-Identifier: Apache-2.0 */
/* csl_log.h: the log of calls. Runs in: drover-csi-local. */
#ifndef DROVER_CONTRIB_CSI_LOCAL_CSL_LOG_H
#define DROVER_CONTRIB_CSI_LOCAL_CSL_LOG_H

#include "contrib/csi-local/csl.h"

/*
 * Appends a line to the log of calls: a JSON object with the method's name, "status" (a number of
 * gRPC), "ms" (how long it took), and "request" with the fields that are set, by their names in the
 * specification; enums by name; of contexts and secrets only the keys, sorted.
 */
void csl_log_call(const struct csl *c, const char *method, const ProtobufCMessage *req, int status,
    uint64_t took_ns);

#endif
