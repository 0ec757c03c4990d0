/* SPDX-License-Identifier: Apache-2.0 */
/* re2.h: the library RE2, for C. It matches in time that is linear in the text. regex.h is the
 * interface for others. Runs in: cli, job-parser, template-renderer. */
#ifndef DROVER_LANG_RE2_H
#define DROVER_LANG_RE2_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct re2_program;

/* Why a pattern is not compiled. */
struct re2_problem {
	bool too_large;  /* it needs more than memory_max */
	const char *why; /* else: a static sentence */
	char part[64];   /* the wrong part of the pattern, perhaps cut; "" if it is unknown */
	size_t part_len;
};

/* Compiles a pattern; it and its matches take at most memory_max bytes. Returns NULL with
 * *ret_problem if it is wrong or too large. The caller frees it with re2_free(). */
struct re2_program *re2_compile(
    const char *s, size_t len, size_t memory_max, struct re2_problem *ret_problem);
void re2_free(struct re2_program *p);

/* The number of instructions. */
size_t re2_size(const struct re2_program *p);
size_t re2_groups(const struct re2_program *p);

/* Finds the first match in the text (UTF-8) at or after a byte. ret[2 * i] and ret[2 * i + 1] are
 * where group i of the first n begins and ends, RE2_UNSET if it took no part. Group 0 is the
 * match; n is at least 1. */
bool re2_find(struct re2_program *p, const char *s, size_t len, size_t from, size_t *ret, size_t n);
#define RE2_UNSET (~(size_t)0)

#ifdef __cplusplus
}
#endif

#endif
