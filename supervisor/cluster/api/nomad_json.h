/* SPDX-License-Identifier: Apache-2.0 */
/* nomad_json.h: converts answers of servers to the API's JSON. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_CLUSTER_API_NOMAD_JSON_H
#define DROVER_SUPERVISOR_CLUSTER_API_NOMAD_JSON_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "model/engine/field.h"
#include "supervisor/http/api.h"

/* Appends the answer's member of that name (NULL: the whole answer) as JSON; *ret is the answer's
 * metadata. Returns 1; 0 if the member is nil or missing, and appends null; -EBADMSG with *e. No
 * struct is needed: times are recognised by their form, and secrets, which are left out, by their
 * name. */
int nomad_to_json(const void *body, size_t len, const char *member, struct text *t,
    struct api_meta *ret, struct err *e);

/* Decodes an answer as an object, which the caller frees; NULL if the request was answered with an
 * error. */
json_t *nomad_take_object(struct api_req *req, const void *body, size_t len);

#endif
