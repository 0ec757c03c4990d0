/* SPDX-License-Identifier: Apache-2.0 */
/* hcl_func_regex.c: replaces matches of a regular expression. Runs in: cli, job-parser. */
#include <unistr.h>

#include "hcl/hcl_func.h"
#include "hcl/hcl_normal.h"
#include "lang/regex.h"

struct hcl_value *
hcl_fn_regex_replace(struct hcl_call *c)
{
	const struct hcl_value *s = c->args[0], *re = c->args[1], *by = c->args[2];
	struct text out = { .arena = hcl_arena(c->h) };
	struct regex *r;
	const char *why;

	if (u8_check((const uint8_t *)s->string, s->len))
		hcl_refuse_argument(c, 0, "the text is not UTF-8");
	r = regex_compile(hcl_arena(c->h), re->string, re->len, &why);
	if (!r)
		hcl_refuse_argument(c, 1, "wrong pattern \"%.80s\": %s", re->string, why);
	regex_replace_all(r, s->string, s->len, by->string, by->len, false, &out);
	return hcl_text_value(&out);
}
