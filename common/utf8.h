/* SPDX-License-Identifier: Apache-2.0 */
/* utf8.h: checks and sanitizes text from outside. Runs in: csi-helper, supervisor, cli. */
#ifndef DROVER_COMMON_UTF8_H
#define DROVER_COMMON_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Returns the length of the UTF-8 character at s, of which `left` bytes exist: 1 to 4, or 0 if it
 * is invalid (RFC 3629). */
size_t utf8_char_length(const void *s, size_t left);

/* Returns whether data is valid UTF-8 without NUL. */
bool utf8_is_text(const void *data, size_t len);

/*
 * Copies len bytes as one printable line: invalid UTF-8 becomes '?', control characters become
 * spaces, and a text that does not fit into size (> 0, with the NUL) is truncated between two
 * characters. Returns the length.
 */
size_t utf8_sanitize(char *ret, size_t size, const void *data, size_t len);

#endif
