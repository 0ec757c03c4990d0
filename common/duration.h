/* SPDX-License-Identifier: Apache-2.0 */
/* duration.h: "1h30m" and nanoseconds, as Go's time.Duration reads and prints them. Runs in: every
 * process. */
#ifndef DROVER_COMMON_DURATION_H
#define DROVER_COMMON_DURATION_H

#include <stdint.h>

#include "common/err.h"

#define DURATION_SIZE 32 /* the longest, "-2562047h47m16.854775808s", and NUL */
#define NS_PER_MS     1000000ll
#define NS_PER_S      1000000000ll

/*
 * A sign, then one or more decimal numbers with a unit each ("1h30m", "1.5s", "-200ms"): ns, us (or
 * with U+00B5, U+03BC), ms, s, m, h. "0" needs no unit. 0, or -EINVAL (-ERANGE beyond 292 years)
 * with a sentence that quotes text; *ret_ns is untouched then.
 */
int duration_parse(const char *text, int64_t *ret_ns, struct err *e);

/* As time.Duration's String(): "1h0m0s", "1.5s", "250ms", "1.5µs", "0s". Any value that it prints
 * is parsed back exactly. */
void duration_format(int64_t ns, char ret[DURATION_SIZE]);

#endif
