/* SPDX-License-Identifier: Apache-2.0 */
/* go_toml.h: TOML as github.com/BurntSushi/toml writes it. Runs in: template-renderer. */
#ifndef DROVER_TEMPLATE_GO_TOML_H
#define DROVER_TEMPLATE_GO_TOML_H

#include "template/go_value.h"

/* Appends the value, a map. Returns NULL, or the sentence about a value that has no TOML. */
const char *go_write_toml(struct text *out, struct go_value v);

#endif
