/* SPDX-License-Identifier: Apache-2.0 */
/* pattern.h: regular expressions in the syntax of Go's package regexp, translated to that of the
 * library RE2. Runs in: cli, job-parser, template-renderer. */
#ifndef DROVER_LANG_PATTERN_H
#define DROVER_LANG_PATTERN_H

#include <sys/queue.h>

#include "lang/text.h"

/* The name of a group. */
struct pattern_name {
	size_t group;
	const char *name;
	size_t len;
	STAILQ_ENTRY(pattern_name) entry;
};

struct pattern {
	struct text text;                  /* for RE2; its groups have no names */
	STAILQ_HEAD(, pattern_name) names; /* by group; more than one group can have a name */
};

/* Returns NULL, or a sentence about what is wrong; then *ret_at is the byte. Most mistakes are left
 * to RE2. */
const char *pattern_translate(
    struct arena *arena, const char *s, size_t len, struct pattern *ret, size_t *ret_at);

/* Appends the characters of a category or script, such as \pL or \p{^Greek}, at s. Returns its
 * length, or 0 if the name is unknown. inside: of a set such as [a\pL]. */
size_t pattern_property(struct text *out, const char *s, size_t len, bool inside);

#endif
