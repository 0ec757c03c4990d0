/* SPDX-License-Identifier: Apache-2.0 */
/* csl_trash.h: removes the data of deleted volumes, in its own thread. Runs in: drover-csi-local.
 */
#ifndef DROVER_CONTRIB_CSI_LOCAL_CSL_TRASH_H
#define DROVER_CONTRIB_CSI_LOCAL_CSL_TRASH_H

#include "common/err.h"

struct csl_trash;

/* Starts the thread; it empties the directory trash_fd at once, and again after each
 * csl_trash_wake(). */
int csl_trash_start(int trash_fd, struct csl_trash **ret, struct err *e);
void csl_trash_wake(struct csl_trash *t);

#endif
