/* SPDX-License-Identifier: Apache-2.0 */
/* json.h: reads JSON (RFC 8259) into values of the caller. Runs in: cli, job-parser,
 * template-renderer. */
#ifndef DROVER_LANG_JSON_H
#define DROVER_LANG_JSON_H

#include "lang/arena.h"

struct json_member {
	const char *key; /* ends with NUL */
	size_t key_len;
	void *value;
};

/*
 * Makes values, in the arena. Strings are decoded and end with NUL; a number is as written; half a
 * pair of surrogates is U+FFFD. enter and leave begin and end a level of nesting. fail() does not
 * return: `expected` says what should be at this byte.
 */
struct json_maker {
	void *(*null)(void *arg);
	void *(*boolean)(void *arg, bool b);
	void *(*number)(void *arg, const char *s, size_t len);
	void *(*string)(void *arg, const char *s, size_t len);
	void *(*list)(void *arg, void **items, size_t n);
	void *(*object)(void *arg, struct json_member *members, size_t n);
	void (*enter)(void *arg);
	void (*leave)(void *arg);
	void (*fail)(void *arg, size_t at, const char *expected);
};

/* Reads a text, which has a NUL after its len bytes, to its end. Returns its value. */
void *json_read(struct arena *a, const char *s, size_t len, const struct json_maker *m, void *arg);

#endif
