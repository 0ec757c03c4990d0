/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filter_pattern.h: regular expressions as users of ?filter= write them: PCRE2's, which has what
 * Go's have. What one may take of processor and memory for a text is bounded. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_HTTP_FILTER_PATTERN_H
#define DROVER_SUPERVISOR_HTTP_FILTER_PATTERN_H

#include <stdint.h>

#include "common/cleanup.h"
#include "common/err.h"

struct filter_pattern;

/* -EINVAL with *e: it is none, or is too large; -ENOMEM. The caller frees *ret. */
int filter_pattern_new(const char *text, struct filter_pattern **ret, struct err *e);
void filter_pattern_free(struct filter_pattern *p);
DEFINE_CLEANUP(struct filter_pattern *, filter_pattern_free);

/* What this thread has had of the processor. */
int64_t filter_pattern_now_ns(void);
/*
 * Does it fit a part of this text (UTF-8; what is none is passed over)? 1 or 0; -EINVAL with *e: to
 * know takes too many steps, or longer than until_ns of that clock; -ENOMEM.
 */
int filter_pattern_fits(
    struct filter_pattern *p, const char *text, int64_t until_ns, struct err *e);

#endif
