/* SPDX-License-Identifier: Apache-2.0 */
/* go_json.h: JSON as Go's encoding/json reads and writes it. Runs in: template-renderer. */
#ifndef DROVER_TEMPLATE_GO_JSON_H
#define DROVER_TEMPLATE_GO_JSON_H

#include "template/go_function.h"

/* The value of a text; leaves with the sentence. */
struct go_value go_read_json(struct go_call *c, struct go_value text);
/* The same, but NULL in *ret_why after success, and else the sentence. */
struct go_value go_try_json(struct arena *a, struct go_value text, const char **ret_why);

/* The same, but numbers without a fraction are integers. */
struct go_value go_try_json_integers(struct arena *a, struct go_value text, const char **ret_why);

enum go_json_flags { GO_JSON_ESCAPE_HTML = 1, GO_JSON_INDENT = 2 };

/* Appends the value. Returns NULL, or the sentence about a value that has no JSON. */
const char *go_write_json(struct text *out, struct go_value v, unsigned flags);

#endif
