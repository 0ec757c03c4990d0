// SPDX-License-Identifier: Apache-2.0
/* fuzz_hcl.c: any text as a document of HCL; all its attributes are evaluated with the functions of
 * job files, but for those about files, within small limits. */
#include <string.h>

#include "hcl/hcl_functions.h"
#include "tests/fuzz/fuzz.h"

struct evaluation {
	const struct hcl_expr *expr;
	const struct hcl_scope *scope;
};

static void
evaluate(struct hcl *h, void *arg)
{
	struct evaluation *x = arg;
	struct hcl_value *v = hcl_eval(h, x->expr, x->scope);
	const char *json;
	size_t len;

	if (!hcl_is_wholly_known(v))
		return;
	json = hcl_to_json(h, v, &len);
	HOLDS(len > 0 && strlen(json) == len);
}

static void
evaluate_all(struct hcl *h, const struct hcl_body *body, const struct hcl_scope *scope)
{
	for (const struct hcl_attr *a = body->attrs; a; a = a->next) {
		struct evaluation x = { a->expr, scope };

		HOLDS(hcl_try(h, evaluate, &x) || hcl_error_count(h) > 0);
	}
	for (const struct hcl_block *b = body->blocks; b; b = b->next)
		evaluate_all(h, b->body, scope);
}

static struct hcl_value *
find_missing(struct hcl *h, void *arg, const struct hcl_expr *path)
{
	(void)arg;
	(void)path;
	return hcl_unknown(h, &hcl_type_any);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct hcl_limits limits = {
		.source_bytes = 64 * 1024, .memory_bytes = 1 << 20, .steps = 100000, .depth = 60
	};
	struct hcl *h = hcl_new(&limits);
	struct hcl_source source = { "x", (const char *)data, size };
	struct hcl_scope scope = { .functions = &hcl_job_functions, .missing = find_missing };
	const struct hcl_body *body = hcl_parse_body(h, &source);

	HOLDS(body || hcl_error_count(h) > 0);
	if (body)
		evaluate_all(h, body, &scope);
	for (const struct hcl_problem *p = hcl_problems(h); p; p = p->next)
		HOLDS(*hcl_problem_text(h, p));
	hcl_free(h);
	return 0;
}
