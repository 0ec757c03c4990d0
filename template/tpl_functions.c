/* SPDX-License-Identifier: Apache-2.0 */
/* tpl_functions.c: the table of the functions, and their parameters. Runs in: template-renderer. */
#include "template/tpl_functions.h"

#include <stdlib.h>
#include <string.h>

#include "template/go_source.h"

const struct go_function tpl_functions[] = {
#define TPL_FUNCTION(function, parameters, function_fn)                                            \
	{ .name = (function), .params = (parameters), .fn = (function_fn) },
#include "template/tpl_functions.def"
#undef TPL_FUNCTION
};

const size_t tpl_function_count = sizeof tpl_functions / sizeof tpl_functions[0];

struct name {
	const char *s;
	size_t len;
};

static int
compare_name(const void *name, const void *function)
{
	const struct name *n = name;
	const struct go_function *f = function;
	int r = strncmp(n->s, f->name, n->len);

	return r ? r : f->name[n->len] ? -1 : 0;
}

const struct go_function *
tpl_find_function(const char *name, size_t len)
{
	struct name n = { name, len };

	return bsearch(
	    &n, tpl_functions, tpl_function_count, sizeof tpl_functions[0], compare_name);
}

const struct go_function *
tpl_denied_function(struct arena *a, const struct go_function *f)
{
	struct go_function *denied = arena_alloc(a, sizeof *denied);

	*denied = (struct go_function){ .name = f->name, .params = "s*", .fn = tpl_fn_denied };
	return denied;
}

bool
tpl_is_variadic(const struct go_function *f)
{
	size_t n = strlen(f->params);

	return n > 0 && f->params[n - 1] == '*';
}

size_t
tpl_param_count(const struct go_function *f)
{
	return strlen(f->params) - tpl_is_variadic(f);
}

const struct go_type *
tpl_param_type(const struct go_function *f, size_t i)
{
	size_t last = tpl_param_count(f) - 1;

	switch (f->params[i < last ? i : last]) {
	case 's':
		return &go_type_string;
	case 'i':
		return &go_type_int;
	case 'I':
		return &go_type_int64;
	case 'b':
		return &go_type_bool;
	case 'f':
		return &go_type_float64;
	case 'v':
		return &go_type_value;
	case 'S':
		return &go_type_strings;
	case 'A':
		return &go_type_anys;
	case 'D':
		return &go_type_dict;
	case 'k':
		return &go_type_key_pairs;
	case 'h':
		return &go_type_health_services;
	case 'n':
		return &go_type_if_addrs;
	case 'u':
		return &go_type_uint;
	default:
		return &go_type_any;
	}
}
