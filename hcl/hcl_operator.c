/* SPDX-License-Identifier: Apache-2.0 */
/* hcl_operator.c: the operators of expressions. Runs in: cli, job-parser. */
#include "hcl/hcl_eval.h"
#include "hcl/hcl_number.h"

static const char *const signs[] = {
	[HCL_OP_OR] = "||",
	[HCL_OP_AND] = "&&",
	[HCL_OP_EQUAL] = "==",
	[HCL_OP_NOT_EQUAL] = "!=",
	[HCL_OP_GREATER] = ">",
	[HCL_OP_GREATER_EQUAL] = ">=",
	[HCL_OP_LESS] = "<",
	[HCL_OP_LESS_EQUAL] = "<=",
	[HCL_OP_ADD] = "+",
	[HCL_OP_SUBTRACT] = "-",
	[HCL_OP_MULTIPLY] = "*",
	[HCL_OP_DIVIDE] = "/",
	[HCL_OP_MODULO] = "%",
	[HCL_OP_NOT] = "!",
	[HCL_OP_NEGATE] = "-",
};

static struct hcl_value *
operand(struct hcl *h, enum hcl_op op, struct hcl_range at, struct hcl_value *v,
    const struct hcl_type *type)
{
	const char *why = "";

	if (hcl_is_null(v))
		hcl_fail(h, at, "a null value cannot be an operand of \"%s\"", signs[op]);
	v = hcl_convert(h, v, type, &why);
	if (!v)
		hcl_fail(h, at, "wrong operand of \"%s\": %s", signs[op], why);
	return v;
}

static struct hcl_value *
equal(struct hcl *h, enum hcl_op op, struct hcl_value *a, struct hcl_value *b)
{
	bool same;

	if (!hcl_is_wholly_known(a) || !hcl_is_wholly_known(b))
		return hcl_unknown(h, &hcl_type_bool);
	same = hcl_equal(h, a, b);
	return hcl_bool(h, op == HCL_OP_EQUAL ? same : !same);
}

static struct hcl_value *
compare_numbers(struct hcl *h, enum hcl_op op, const struct hcl_value *a, const struct hcl_value *b)
{
	int r = hcl_number_compare(a->number, b->number);

	return hcl_bool(h, op == HCL_OP_GREATER         ? r > 0
			   : op == HCL_OP_GREATER_EQUAL ? r >= 0
			   : op == HCL_OP_LESS          ? r < 0
							: r <= 0);
}

struct hcl_value *
hcl_binary(
    struct hcl *h, enum hcl_op op, struct hcl_range at, struct hcl_value *a, struct hcl_value *b)
{
	bool logic = op == HCL_OP_OR || op == HCL_OP_AND, arithmetic = op >= HCL_OP_ADD;
	const struct hcl_type *type = logic ? &hcl_type_bool : &hcl_type_number;

	if (op == HCL_OP_EQUAL || op == HCL_OP_NOT_EQUAL)
		return equal(h, op, a, b);
	a = operand(h, op, at, a, type);
	b = operand(h, op, at, b, type);
	if (a->state == HCL_UNKNOWN || b->state == HCL_UNKNOWN)
		return hcl_unknown(h, arithmetic ? &hcl_type_number : &hcl_type_bool);
	if (logic)
		return hcl_bool(
		    h, op == HCL_OP_OR ? a->boolean || b->boolean : a->boolean && b->boolean);
	if (!arithmetic)
		return compare_numbers(h, op, a, b);
	if ((op == HCL_OP_DIVIDE || op == HCL_OP_MODULO) && mpfr_zero_p(b->number->v))
		hcl_fail(h, at, "this divides by zero");
	return hcl_number_op(h, op, a->number, b->number);
}

struct hcl_value *
hcl_unary(struct hcl *h, enum hcl_op op, struct hcl_range at, struct hcl_value *a)
{
	struct hcl_value *v;

	a = operand(h, op, at, a, op == HCL_OP_NOT ? &hcl_type_bool : &hcl_type_number);
	if (a->state == HCL_UNKNOWN)
		return a;
	if (op == HCL_OP_NOT)
		return hcl_bool(h, !a->boolean);
	v = hcl_new_number(h, (unsigned)mpfr_get_prec(a->number->v));
	(void)mpfr_neg(v->number->v, a->number->v, MPFR_RNDN);
	return v;
}
