/* SPDX-License-Identifier: Apache-2.0 */
/* csl_index.h: a sorted list of keys, each with an id. Runs in: drover-csi-local. */
#ifndef DROVER_CONTRIB_CSI_LOCAL_CSL_INDEX_H
#define DROVER_CONTRIB_CSI_LOCAL_CSL_INDEX_H

#include <stddef.h>

#include "common/id.h"

struct csl_index;

struct csl_index *csl_index_new(void);
/* Adds a key, or changes its id. */
void csl_index_add(struct csl_index *x, const char *key, const char *id);
void csl_index_drop(struct csl_index *x, const char *key);
/* Returns the id of key, which is valid until the next change, or NULL. */
const char *csl_index_get(const struct csl_index *x, const char *key);
/* Returns the position of the first key that is not below key, and the id at a position: NULL after
 * the last. */
size_t csl_index_from(const struct csl_index *x, const char *key);
const char *csl_index_at(const struct csl_index *x, size_t i);

#endif
