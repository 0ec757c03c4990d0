/* SPDX-License-Identifier: Apache-2.0 */
/* go_yaml.h: YAML as gopkg.in/yaml.v2 reads and writes it. Runs in: template-renderer. */
#ifndef DROVER_TEMPLATE_GO_YAML_H
#define DROVER_TEMPLATE_GO_YAML_H

#include "template/go_function.h"

/* The value of the first document. */
struct go_value go_read_yaml(struct go_call *c, struct go_value text);
void go_write_yaml(struct go_call *c, struct text *out, struct go_value v);

/* What a plain scalar means; *ret is the value if it is not a string. Returns whether it is one. */
bool go_yaml_is_string(struct arena *a, const char *s, size_t len, struct go_value *ret);

#endif
