/* SPDX-License-Identifier: Apache-2.0 */
/* regex.h: finds and replaces matches of regular expressions in RE2's syntax, with PCRE2 and
 * within the limits of an arena. Runs in: cli, job-parser, template-renderer. */
#ifndef DROVER_LANG_REGEX_H
#define DROVER_LANG_REGEX_H

#include "lang/text.h"

struct regex;

/* NULL: the expression is wrong; then *ret_why is a sentence to be put after "…: ". */
struct regex *regex_compile(struct arena *arena, const char *s, size_t len, const char **ret_why);

/*
 * Finds the first match in the text (UTF-8) at or after a byte. Returns 1; 0 if there is none;
 * -1 if the expression has too many ways through the text. (*ret_groups)[2 * i] and [2 * i + 1] are
 * where group i begins and ends, REGEX_UNSET if it took no part; they are valid until the next
 * search. Group 0 is the match.
 */
int regex_find(struct regex *r, const char *s, size_t len, size_t from, const size_t **ret_groups);
#define REGEX_UNSET (~(size_t)0)

/* Appends the text with all matches replaced; in `by`, $1 or ${name} is what a group matched unless
 * `literal`. Returns 0, or -1 as regex_find() does. */
int regex_replace_all(struct regex *r, const char *s, size_t len, const char *by, size_t by_len,
    bool literal, struct text *out);

/* Where a search for the match after the one that ended at m_end and was searched from `from`
 * begins. */
size_t regex_next(const char *s, size_t len, size_t from, size_t m_end);

#endif
