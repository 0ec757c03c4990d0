/* SPDX-License-Identifier: Apache-2.0 */
/* pattern.h: regular expressions in the syntax of RE2, translated to that of PCRE2. Runs in:
 * cli, job-parser, template-renderer. */
#ifndef DROVER_LANG_PATTERN_H
#define DROVER_LANG_PATTERN_H

#include "lang/text.h"

struct pattern {
	const char *text; /* for PCRE2 */
	size_t len;
	const char **names; /* of the groups, from 1; NULL for a group without a name */
	size_t n_groups;
};

/* Returns NULL, or a sentence about what is wrong; then *ret_at is the byte. */
const char *pattern_translate(
    struct arena *arena, const char *s, size_t len, struct pattern *ret, size_t *ret_at);

/* What pattern_class.c translates: a set such as [a-z\d], from after "[". It returns the length
 * with "]", or 0 with a sentence; \d, \pL and the like, of which *ret_len is the length: NULL if
 * there is none here. */
size_t pattern_class(struct text *out, const char *s, size_t len, bool fold, const char **ret_why);
const char *pattern_set(struct arena *arena, const char *s, size_t len, bool fold, bool inside,
    size_t *ret_len, const char **ret_why);
/* The character that an escape such as \x41 means. Returns the length, or 0. */
size_t pattern_escape(const char *s, size_t len, uint32_t *ret);
void pattern_add_char(struct text *out, uint32_t ch);

#endif
