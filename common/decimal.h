/* SPDX-License-Identifier: Apache-2.0 */
/* decimal.h: decimal texts of binary numbers. Runs in: supervisor, job-parser, cli. */
#ifndef DROVER_COMMON_DECIMAL_H
#define DROVER_COMMON_DECIMAL_H

#include <stddef.h>

/*
 * Writes the number 0.DIGITS * 10^exponent without an exponent. Digits are those of mpfr_get_str():
 * at least one, after an optional '-'; zeros at their end are left out. decimal_size() is the size
 * of the buffer that decimal_write() needs. Returns buf.
 */
size_t decimal_size(const char *digits, long exponent);
char *decimal_write(char *buf, const char *digits, long exponent);

/* Writes the shortest text that stands for this finite number, as Go's encoding/json does: without
 * an exponent from 1e-6 up to 1e21. Returns buf. */
#define REAL_TEXT_SIZE 64
char *real_format(double d, char buf[REAL_TEXT_SIZE]);

#endif
