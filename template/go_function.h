/* SPDX-License-Identifier: Apache-2.0 */
/* go_function.h: functions and methods that templates call. Runs in: template-renderer. */
#ifndef DROVER_TEMPLATE_GO_FUNCTION_H
#define DROVER_TEMPLATE_GO_FUNCTION_H

#include "template/go_value.h"

struct tpl_run;
struct tpl_node;
struct go_call;

typedef struct go_value go_fn(struct go_call *c);

/*
 * The parameters, a letter each: s string, i int, I int64, b bool, f float64, a interface{},
 * v reflect.Value, S []string, A []interface{}, D map[string]interface{}, k []*KeyPair, h
 * []*HealthService, n sockaddr.IfAddrs, u uint; "*" at the end: the last one may occur any number
 * of times.
 */
struct go_function {
	const char *name;
	const char *params;
	go_fn *fn;
};

struct go_call {
	struct tpl_run *run;
	struct arena *arena;
	const struct go_function *function;
	const char *name;                 /* as the template calls it */
	const struct tpl_node *node;      /* that errors are about */
	const struct tpl_node *first_arg; /* NULL: there is none before a pipe's value */
	struct go_value self;             /* of a method */
	struct go_value *args;
	size_t n;
};

/* Marks a value in a sentence about an error, as "%s" or with other conversions, so that it can be
 * hidden. Values in quotes need no mark. */
#define TPL_VALUE_BEGIN   "\1"
#define TPL_VALUE_END     "\2"
#define TPL_VALUE(format) TPL_VALUE_BEGIN format TPL_VALUE_END

/* Ends the execution: "error calling NAME: SENTENCE". */
void go_call_fail(struct go_call *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3), noreturn));

#endif
