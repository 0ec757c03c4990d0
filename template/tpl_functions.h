/* SPDX-License-Identifier: Apache-2.0 */
/* tpl_functions.h: the functions that templates may call. Runs in: template-renderer. */
#ifndef DROVER_TEMPLATE_TPL_FUNCTIONS_H
#define DROVER_TEMPLATE_TPL_FUNCTIONS_H

#include "template/go_function.h"

/* Returns NULL if there is none. */
const struct go_function *tpl_find_function(const char *name, size_t len);

/* Returns a function of this one's name that fails, as Nomad has it: with texts as arguments. */
const struct go_function *tpl_denied_function(struct arena *a, const struct go_function *f);

bool tpl_is_variadic(const struct go_function *f);
size_t tpl_param_count(const struct go_function *f);
const struct go_type *tpl_param_type(const struct go_function *f, size_t i);

/* All functions, sorted by name. */
extern const struct go_function tpl_functions[];
extern const size_t tpl_function_count;

#define TPL_FUNCTION(name, params, fn) go_fn fn;
#include "template/tpl_functions.def"
#undef TPL_FUNCTION

#endif
