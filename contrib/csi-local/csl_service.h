/* SPDX-License-Identifier: Apache-2.0 */
/* csl_service.h: from a method's name to its handler. Runs in: drover-csi-local. */
#ifndef DROVER_CONTRIB_CSI_LOCAL_CSL_SERVICE_H
#define DROVER_CONTRIB_CSI_LOCAL_CSL_SERVICE_H

#include "contrib/csi-local/csl_grpc.h"

/* A csl_handler; arg is a struct csl. */
void csl_service_handle(
    void *arg, struct csl_call *call, const char *method, const uint8_t *data, size_t len);

#endif
