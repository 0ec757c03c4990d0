/* SPDX-License-Identifier: Apache-2.0 */
/* csl_secret.h: secrets that every call must bring. Runs in: drover-csi-local. */
#ifndef DROVER_CONTRIB_CSI_LOCAL_CSL_SECRET_H
#define DROVER_CONTRIB_CSI_LOCAL_CSL_SECRET_H

#include "contrib/csi-local/csl.h"

/* Adds KEY=DIGEST, the SHA-1 of the value in hex, to *secrets. -EINVAL. */
int csl_secret_require(struct csl_secrets **secrets, const char *text, struct err *e);
/* Checks a request, if its method has secrets. Returns 0, or UNAUTHENTICATED. */
int csl_secret_check(struct csl_op *op, const ProtobufCMessage *req);

#endif
