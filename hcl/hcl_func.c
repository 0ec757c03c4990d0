/* SPDX-License-Identifier: Apache-2.0 */
/* hcl_func.c: arguments and results of functions. Runs in: cli, job-parser. */
#include "hcl/hcl_func.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unigbrk.h>

#include "hcl/hcl_number.h"

/* A step stands for about 100 ns. */
/* Normal form C has at most three times the bytes. */

int64_t
hcl_arg_int(struct hcl_call *c, size_t i)
{
	int64_t n;

	if (!hcl_number_int64(c->args[i]->number, &n))
		hcl_refuse_argument(c, i, "argument %zu must be a whole number of 64 bits", i + 1);
	return n;
}

double
hcl_arg_double(struct hcl_call *c, size_t i)
{
	double d = hcl_number_double(c->args[i]->number);

	if (isinf(d) && !mpfr_inf_p(c->args[i]->number->v))
		hcl_refuse_argument(c, i, "argument %zu is too large", i + 1);
	return d;
}

struct hcl_value *
hcl_arg_list(struct hcl_call *c, size_t i, const struct hcl_type *item)
{
	const struct hcl_type *type = hcl_type_list(c->h, HCL_LIST, item);
	const char *why = "";
	struct hcl_value *v = hcl_convert(c->h, c->args[i], type, &why);

	if (!v)
		hcl_refuse_argument(c, i, "argument %zu: %s", i + 1, why);
	return v;
}

const struct hcl_type *
hcl_arg_type(struct hcl_call *c, size_t i)
{
	return hcl_type_of(c->h, c->args[i]);
}

struct hcl_value *
hcl_double_result(struct hcl_call *c, double d)
{
	if (isnan(d))
		hcl_refuse_argument(c, 0, "the result is not a number");
	return hcl_double(c->h, d);
}

const char *
hcl_clusters(struct hcl *h, const char *s, size_t len)
{
	char *begins = hcl_alloc(h, len + 1);

	hcl_count_bytes(h, len);
	u8_grapheme_breaks((const uint8_t *)s, len, begins);
	return begins;
}

void
hcl_finally(struct hcl *h, hcl_try_fn *fn, void *arg, void (*done)(void *arg))
{
	bool ok = hcl_try(h, fn, arg);

	done(arg);
	if (!ok)
		hcl_leave(h);
}

void
hcl_items_add(struct hcl_items *items, struct hcl_value *v)
{
	struct hcl_value **more;

	hcl_step(items->h, 1);
	if (items->n == items->room) {
		items->room = 2 * items->room + 8;
		more = hcl_alloc(items->h, items->room * sizeof(struct hcl_value *));
		if (items->n > 0)
			memcpy(more, items->v, items->n * sizeof(struct hcl_value *));
		items->v = more;
	}
	items->v[items->n++] = v;
}
