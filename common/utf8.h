/* SPDX-License-Identifier: Apache-2.0 */
/* utf8.h: text that comes from elsewhere: is it text, and made printable. Runs in: csi-helper,
 * supervisor, cli. */
#ifndef DROVER_COMMON_UTF8_H
#define DROVER_COMMON_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of the UTF-8 character at s (left bytes there): 1 to 4, or 0 if it is none (RFC 3629). */
size_t utf8_char_length(const void *s, size_t left);

/* Valid UTF-8 without NUL. */
bool utf8_is_text(const void *data, size_t len);

/*
 * Copies len bytes as one printable line: what is no UTF-8 becomes '?', control characters become
 * spaces, and what does not fit into size (> 0, with the NUL) is cut between two characters.
 * Returns the length.
 */
size_t utf8_sanitize(char *ret, size_t size, const void *data, size_t len);

#endif
