/* SPDX-License-Identifier: Apache-2.0 */
/* hcl_pattern.h: regular expressions in the syntax of RE2, translated to that of PCRE2. Runs in:
 * cli, job-parser. */
#ifndef DROVER_HCL_HCL_PATTERN_H
#define DROVER_HCL_HCL_PATTERN_H

#include "hcl/hcl_text.h"

struct hcl_pattern {
	const char *text; /* for PCRE2 */
	size_t len;
	const char **names; /* of the groups, from 1; NULL for a group without a name */
	size_t n_groups;
};

/* Returns NULL, or a sentence about what is wrong; then *ret_at is the byte. */
const char *hcl_pattern_translate(
    struct hcl *h, const char *s, size_t len, struct hcl_pattern *ret, size_t *ret_at);

/* What hcl_pattern_class.c translates: a set such as [a-z\d], from after "[". It returns the length
 * with "]", or 0 with a sentence; \d, \pL and the like, of which *ret_len is the length: NULL if
 * there is none here. */
size_t hcl_pattern_class(
    struct hcl_text *out, const char *s, size_t len, bool fold, const char **ret_why);
const char *hcl_pattern_set(struct hcl *h, const char *s, size_t len, bool fold, bool inside,
    size_t *ret_len, const char **ret_why);
/* The character that an escape such as \x41 means. Returns the length, or 0. */
size_t hcl_pattern_escape(const char *s, size_t len, uint32_t *ret);
void hcl_pattern_add_char(struct hcl_text *out, uint32_t ch);

#endif
