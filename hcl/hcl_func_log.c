/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcl_func_log.c: logarithms and powers in the way of Go's math package, to the last bit: users
 * round their results, and ceil(log(9, 3)) is 3 there. Runs in: cli, job-parser.
 */
#include <math.h>

#include "hcl/hcl_func.h"

/* With x = 2^k (1+f) and s = f / (2+f), log(1+f) is f - (f²/2 - s (f²/2 + R)), where R is a
 * polynomial in s². The coefficients are those of fdlibm (Sun Microsystems, 1993). */
static double
logarithm(double x)
{
	static const double odd[] = { 0x1.5555555555593p-1, 0x1.2492494229359p-2,
		0x1.7466496cb03dep-3, 0x1.2f112df3e5244p-3 };
	static const double even[] = { 0x1.999999997fa04p-2, 0x1.c71c51d8e78afp-3,
		0x1.39a09d078c69fp-3 };
	static const double ln2_high = 0x1.62e42feep-1, ln2_low = 0x1.a39ef35793c76p-33;
	double f, s, z, w, r, half;
	int k;

	if (!(x > 0) || isinf(x))
		return log(x);
	f = frexp(x, &k);
	if (f < M_SQRT1_2) {
		f *= 2;
		k--;
	}
	f -= 1;
	s = f / (2 + f);
	z = s * s;
	w = z * z;
	r = z * (odd[0] + w * (odd[1] + w * (odd[2] + w * odd[3])));
	r += w * (even[0] + w * (even[1] + w * even[2]));
	half = 0.5 * f * f;
	return k * ln2_high - ((half - (s * (half + r) + k * ln2_low)) - f);
}

/* Multiplies the squares of x whose exponents add up to n; mantissas and exponents apart, so that
 * nothing overflows on the way. */
static double
power(double x, double y)
{
	double fraction, whole, product = 1, square;
	int exponent = 0, square_exponent;

	fraction = modf(fabs(y), &whole);
	if (fraction > 0.5) {
		fraction -= 1;
		whole += 1;
	}
	if (fraction != 0)
		product = exp(fraction * logarithm(x));
	square = frexp(x, &square_exponent);
	for (int64_t n = (int64_t)whole; n != 0; n >>= 1) {
		if (square_exponent < -4096 || square_exponent > 4096) {
			exponent += square_exponent;
			break;
		}
		if (n & 1) {
			product *= square;
			exponent += square_exponent;
		}
		square *= square;
		square_exponent *= 2;
		if (square < 0.5) {
			square += square;
			square_exponent--;
		}
	}
	return y < 0 ? ldexp(1 / product, -exponent) : ldexp(product, exponent);
}

struct hcl_value *
hcl_fn_log(struct hcl_call *c)
{
	double number = hcl_arg_double(c, 0), base = hcl_arg_double(c, 1);

	return hcl_double_result(c, logarithm(number) / logarithm(base));
}

struct hcl_value *
hcl_fn_pow(struct hcl_call *c)
{
	double x = hcl_arg_double(c, 0), y = hcl_arg_double(c, 1);
	bool special = x == 0 || x == 1 || isinf(x) || isinf(y) || fabs(y) >= 0x1p63 ||
		       (x < 0 && y != trunc(y)) || y == 0 || y == 1;

	if (!special && fabs(y) == 0.5)
		return hcl_double_result(c, y > 0 ? sqrt(x) : 1 / sqrt(x));
	return hcl_double_result(c, special ? pow(x, y) : power(x, y));
}
