/* SPDX-License-Identifier: Apache-2.0 */
/* base64.h: encodes and decodes base64 (RFC 4648, with padding), and encodes base64url, without
 * padding. Runs in: supervisor, cli. */
#ifndef DROVER_COMMON_BASE64_H
#define DROVER_COMMON_BASE64_H

#include <stddef.h>

/* Size of the text for len bytes, with its NUL. */
#define BASE64_SIZE(len) (((len) + 2) / 3 * 4 + 1)

/* Encodes len bytes into ret, a buffer of BASE64_SIZE(len) bytes. Returns the length without the
 * NUL. */
size_t base64_encode(const void *data, size_t len, char *ret);
size_t base64url_encode(const void *data, size_t len, char *ret);
/* Decodes text into ret, a buffer of strlen(text) / 4 * 3 bytes. Returns 0 and sets *ret_len, or
 * returns -EINVAL. */
int base64_decode(const char *text, void *ret, size_t *ret_len);

#endif
