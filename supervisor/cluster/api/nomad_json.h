/* SPDX-License-Identifier: Apache-2.0 */
/* nomad_json.h: what servers answer, as the API shows it. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_CLUSTER_API_NOMAD_JSON_H
#define DROVER_SUPERVISOR_CLUSTER_API_NOMAD_JSON_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "model/engine/field.h"
#include "supervisor/http/api.h"

/*
 * Appends the answer's member of that name (NULL: all of it) as JSON; *ret is what it says
 * about itself. 1, or 0 when that member is nil or not there: null is appended; -EBADMSG; -ENOMEM.
 * No struct is described here: times are known by their form, and secrets by their name, which are
 * left out.
 */
int nomad_to_json(const void *body, size_t len, const char *member, struct text *t,
    struct api_meta *ret, struct err *e);

#endif
