/* SPDX-License-Identifier: Apache-2.0 */
/* filter_pattern.h: the regular expressions of ?filter=, in PCRE2's syntax, which includes Go's.
 * CPU time and memory are limited. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_HTTP_FILTER_PATTERN_H
#define DROVER_SUPERVISOR_HTTP_FILTER_PATTERN_H

#include <stdint.h>

#include "common/cleanup.h"
#include "common/err.h"

struct filter_pattern;

/* Compiles a pattern. -EINVAL with *e if it is invalid or too large. The caller frees *ret. */
int filter_pattern_new(const char *text, struct filter_pattern **ret, struct err *e);
void filter_pattern_free(struct filter_pattern *p);
DEFINE_CLEANUP(struct filter_pattern *, filter_pattern_free);

/* Returns the CPU time of this thread. */
int64_t filter_pattern_now_ns(void);
/* Matches a part of this text (UTF-8; invalid bytes are skipped). Returns 1 or 0; -EINVAL with *e
 * if it takes too many steps, or longer than until_ns of that clock; -ENOMEM. */
int filter_pattern_fits(
    struct filter_pattern *p, const char *text, int64_t until_ns, struct err *e);

#endif
