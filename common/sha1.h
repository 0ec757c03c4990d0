/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sha1.h: SHA-1 (FIPS 180-4), for the handshake of websockets, and for csi-local's tests of
 * secrets: it is not secure. Runs in: supervisor, cli, drover-csi-local.
 */
#ifndef DROVER_COMMON_SHA1_H
#define DROVER_COMMON_SHA1_H

#include <stddef.h>
#include <stdint.h>

#define SHA1_SIZE  20
#define SHA1_BLOCK 64

struct sha1 {
	uint32_t h[5];
	uint64_t len;
	uint8_t block[SHA1_BLOCK];
};

void sha1_init(struct sha1 *s);
void sha1_add(struct sha1 *s, const void *data, size_t len);
void sha1_end(struct sha1 *s, uint8_t ret[SHA1_SIZE]);

#endif
