/* SPDX-License-Identifier: Apache-2.0 */
/* nomad_json.h: what servers answer, as the API shows it. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_NOMAD_JSON_H
#define DROVER_SUPERVISOR_NOMAD_JSON_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "model/field.h"

/*
 * Appends the answer's member of that name (NULL: all of it) as JSON; *ret_index is its Index (0:
 * none). 1, or 0 when that member is nil or not there: null is appended; -EBADMSG; -ENOMEM. No
 * struct is described here: times are known by their form, and secrets by their name, which are
 * left out.
 */
int nomad_to_json(const void *body, size_t len, const char *member, struct text *t,
    uint64_t *ret_index, struct err *e);

#endif
