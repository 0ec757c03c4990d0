/* SPDX-License-Identifier: Apache-2.0 */
/* hcl_evaluation.h: evaluates one expression inside hcl_try(). Runs in: unit tests. */
#ifndef DROVER_TESTS_UNIT_HCL_EVALUATION_H
#define DROVER_TESTS_UNIT_HCL_EVALUATION_H

#include "hcl/hcl_eval.h"

struct evaluation {
	const struct hcl_expr *expr;
	const struct hcl_scope *scope;
	const char *json;
};

/* For hcl_try(): sets json of the struct evaluation at arg. */
static inline void
evaluate(struct hcl *h, void *arg)
{
	struct evaluation *x = arg;
	size_t len;

	x->json = hcl_to_json(h, hcl_eval(h, x->expr, x->scope), &len);
}

#endif
