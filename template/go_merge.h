/* SPDX-License-Identifier: Apache-2.0 */
/* go_merge.h: merges maps as dario.cat/mergo does. Runs in: template-renderer. */
#ifndef DROVER_TEMPLATE_GO_MERGE_H
#define DROVER_TEMPLATE_GO_MERGE_H

#include "template/go_value.h"

/* Adds the members of `from` to *to, a map, whose own members stay unless they are empty or
 * `overwrite` is set and the other is not empty. Maps in both are merged. */
void go_merge(struct arena *a, struct go_value *to, struct go_value from, bool overwrite);
/* Whether mergo takes the value as empty. */
bool go_is_empty(struct go_value v);

#endif
