/* SPDX-License-Identifier: Apache-2.0 */
/* hcl_func.h: what the files of functions (hcl_func_*.c) share. Runs in: cli, job-parser. */
#ifndef DROVER_HCL_HCL_FUNC_H
#define DROVER_HCL_HCL_FUNC_H

#include "hcl/hcl_eval.h"

/* Argument i, a number, as an integer or as a double; refuses what does not fit. */
int64_t hcl_arg_int(struct hcl_call *c, size_t i);
double hcl_arg_double(struct hcl_call *c, size_t i);
/* Argument i as a list of this type, or of its elements' common type if it is hcl_type_any. */
struct hcl_value *hcl_arg_list(struct hcl_call *c, size_t i, const struct hcl_type *item);
/* Argument i as a type, for a function that accepts any. */
const struct hcl_type *hcl_arg_type(struct hcl_call *c, size_t i);

/* A number; the double is not NaN. */
struct hcl_value *hcl_double_result(struct hcl_call *c, double d);
/* For each byte, whether a grapheme cluster (what a reader calls a character) begins there. */
const char *hcl_clusters(struct hcl *h, const char *s, size_t len);
/* Calls fn(arg), then done(arg) also if fn leaves with an error. */
void hcl_finally(struct hcl *h, hcl_try_fn *fn, void *arg, void (*done)(void *arg));

/* Values that are collected; starts as { .h = h }. */
struct hcl_items {
	struct hcl *h;
	struct hcl_value **v;
	size_t n, room;
};
void hcl_items_add(struct hcl_items *items, struct hcl_value *v);

/* Decodes base64 into the arena. Returns false if it is none. */
bool hcl_base64_bytes(struct hcl *h, const char *s, size_t len, char **ret, size_t *ret_len);

#define HCL_FUNCTION(name, params, fn, ...) hcl_function_fn fn;
#include "hcl/hcl_functions.def"
#undef HCL_FUNCTION

#endif
