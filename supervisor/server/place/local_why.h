/* SPDX-License-Identifier: Apache-2.0 */
/* local_why.h: says whether an alloc is replaced, and when. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_PLACE_LOCAL_WHY_H
#define DROVER_SUPERVISOR_SERVER_PLACE_LOCAL_WHY_H

#include "supervisor/source/source.h"

/* source_ops.why */
void local_why(struct source *s, struct sup_alloc *sa, struct causes *c);

#endif
