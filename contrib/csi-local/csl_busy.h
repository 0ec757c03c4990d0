/* SPDX-License-Identifier: Apache-2.0 */
/* csl_busy.h: the volumes that calls are working on. Runs in: drover-csi-local. */
#ifndef DROVER_CONTRIB_CSI_LOCAL_CSL_BUSY_H
#define DROVER_CONTRIB_CSI_LOCAL_CSL_BUSY_H

#include <stdbool.h>

struct csl_busy;

struct csl_busy *csl_busy_new(void);
/* Adds a key, which the caller keeps until it drops it. Returns false if it is there already. */
bool csl_busy_add(struct csl_busy *b, const char *key);
void csl_busy_drop(struct csl_busy *b, const char *key);

#endif
