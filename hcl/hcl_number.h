/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcl_number.h: numbers as HCL's implementation has them (github.com/zclconf/go-cty): binary
 * floating point with a precision of 512 bits for those in a text, 64 for integers and 53 for
 * doubles that a function makes; an operation has the larger of its operands' precisions. Runs in:
 * cli, job-parser.
 */
#ifndef DROVER_HCL_HCL_NUMBER_H
#define DROVER_HCL_HCL_NUMBER_H

#include <stdint.h>

#define MPFR_USE_INTMAX_T 1
#include <mpfr.h>

#include "hcl/hcl_value.h"

#define HCL_NUMBER_BITS 512

struct hcl_number {
	mpfr_t v; /* its digits are in the arena; never cleared */
};

/* A new number, 0, of this precision. */
struct hcl_value *hcl_new_number(struct hcl *h, unsigned bits);
struct hcl_value *hcl_double(struct hcl *h, double d);
/* Parses a decimal number, as strconv does. NULL if it is none. */
struct hcl_value *hcl_parse_number(struct hcl *h, const char *s, size_t len);
/* The shortest decimal text, without an exponent, that stands for this number. */
char *hcl_number_text(struct hcl *h, const struct hcl_number *n);

bool hcl_number_is_int(const struct hcl_number *n);
/* False if it is no integer or does not fit. */
bool hcl_number_int64(const struct hcl_number *n, int64_t *ret);
double hcl_number_double(const struct hcl_number *n);
int hcl_number_compare(const struct hcl_number *a, const struct hcl_number *b);

enum hcl_op;
/* Adds, subtracts, multiplies, divides; the remainder has the sign of a. b is not 0 for the last
 * two. */
struct hcl_value *hcl_number_op(
    struct hcl *h, int op, const struct hcl_number *a, const struct hcl_number *b);

#endif
