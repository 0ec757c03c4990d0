/* SPDX-License-Identifier: Apache-2.0 */
/* base64.h: bytes as text (RFC 4648, with padding). Runs in: supervisor, cli. */
#ifndef DROVER_COMMON_BASE64_H
#define DROVER_COMMON_BASE64_H

#include <stddef.h>

/* Characters and the NUL for len bytes. */
#define BASE64_SIZE(len) (((len) + 2) / 3 * 4 + 1)

/* ret has room for BASE64_SIZE(len). Returns the length without the NUL. */
size_t base64_encode(const void *data, size_t len, char *ret);
/* ret has room for strlen(text) / 4 * 3 bytes. 0 with *ret_len, or -EINVAL. */
int base64_decode(const char *text, void *ret, size_t *ret_len);

#endif
