/* SPDX-License-Identifier: Apache-2.0 */
/* tpl_sprig.h: what the files of sprig's functions (tpl_sprig_*.c) share. Runs in:
 * template-renderer. */
#ifndef DROVER_TEMPLATE_TPL_SPRIG_H
#define DROVER_TEMPLATE_TPL_SPRIG_H

#include "template/tpl_functions.h"

/* Numbers of texts, booleans and numbers; 0 for everything else. */
int64_t sprig_int(struct arena *a, struct go_value v);
double sprig_float(struct arena *a, struct go_value v);
bool sprig_is_empty(struct go_value v);
/* The texts of a list's elements without nils; of anything else its own. */
struct go_value sprig_strings(struct arena *a, struct go_value v);
/* "slice", "map" … */
const char *sprig_kind(struct go_value v);
/* Refuses what is no list: "Cannot find first on type string". */
void sprig_check_list(struct go_call *c, struct go_value v, const char *what);

#endif
