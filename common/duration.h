/* SPDX-License-Identifier: Apache-2.0 */
/* duration.h: parses and prints durations such as "1h30m" as Go's time.Duration does. Runs in:
 * every process. */
#ifndef DROVER_COMMON_DURATION_H
#define DROVER_COMMON_DURATION_H

#include <stdint.h>

#include "common/err.h"

#define DURATION_SIZE 32 /* the longest text, "-2562047h47m16.854775808s", and its NUL */
#define NS_PER_MS     1000000ll
#define NS_PER_S      1000000000ll

/*
 * Parses an optional sign and one or more decimal numbers with a unit each ("1h30m", "1.5s",
 * "-200ms"). Units: ns, us (or with U+00B5, U+03BC), ms, s, m, h; "0" needs no unit. Returns 0 and
 * sets *ret_ns, or returns -EINVAL (-ERANGE beyond 292 years) with a sentence in *e that quotes
 * text.
 */
int duration_parse(const char *text, int64_t *ret_ns, struct err *e);

/* Prints as time.Duration's String() does: "1h0m0s", "1.5s", "250ms", "1.5µs", "0s".
 * duration_parse() reads each of these back exactly. */
void duration_format(int64_t ns, char ret[DURATION_SIZE]);

#endif
