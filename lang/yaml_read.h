/* SPDX-License-Identifier: Apache-2.0 */
/* yaml_read.h: reads YAML with libyaml into values of the caller. Aliases share their value.
 * Runs in: cli, job-parser, template-renderer. */
#ifndef DROVER_LANG_YAML_READ_H
#define DROVER_LANG_YAML_READ_H

#include "lang/arena.h"

#define YAML_TAG(name) "tag:yaml.org,2002:" name

struct yaml_scalar {
	const char *tag; /* "" if it has none */
	const char *s;   /* ends with NUL */
	size_t len;
	bool quoted; /* in single or double quotes */
	bool plain;  /* in no quotes, and no block */
	bool key;    /* of a mapping */
	size_t line;
};

struct yaml_pair {
	void *key; /* NULL for "<<" */
	void *value;
	size_t line; /* of the value's end */
};

/* Makes values, in the arena. enter and leave begin and end a level of nesting. fail() does not
 * return: `why` says what is wrong in this line, counted from 0. */
struct yaml_maker {
	void *(*scalar)(void *arg, const struct yaml_scalar *s);
	void *(*list)(void *arg, void **items, size_t n);
	void *(*map)(void *arg, struct yaml_pair *pairs, size_t n);
	void (*enter)(void *arg);
	void (*leave)(void *arg);
	void (*fail)(void *arg, size_t line, const char *why);
	bool scalar_keys;  /* other keys of mappings are refused */
	bool one_document; /* more than one document are refused, and none */
};

/* Returns the first document's value, or NULL if there is none. */
void *yaml_read(struct arena *a, const char *s, size_t len, const struct yaml_maker *m, void *arg);

#endif
