/* SPDX-License-Identifier: Apache-2.0 */
/* regex.h: finds and replaces matches of regular expressions as Go's package regexp does, with the
 * library RE2, which does not backtrack, and within the limits of an arena. Texts are UTF-8. Runs
 * in: cli, job-parser, template-renderer. */
#ifndef DROVER_LANG_REGEX_H
#define DROVER_LANG_REGEX_H

#include "lang/text.h"

struct regex;

/* NULL: the expression is wrong; then *ret_why is a sentence to be put after "…: ". */
struct regex *regex_compile(struct arena *arena, const char *s, size_t len, const char **ret_why);

/* Finds the first match at or after a byte. ret has where it begins and ends. */
bool regex_find(struct regex *r, const char *s, size_t len, size_t from, size_t ret[2]);

/* Appends the text with all matches replaced; in `by`, $1 or ${name} is what a group matched unless
 * `literal`. */
void regex_replace_all(struct regex *r, const char *s, size_t len, const char *by, size_t by_len,
    bool literal, struct text *out);

/* Where a search for the match after the one that ended at m_end and was searched from `from`
 * begins. */
size_t regex_next(const char *s, size_t len, size_t from, size_t m_end);

#endif
