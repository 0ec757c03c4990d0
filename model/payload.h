/* SPDX-License-Identifier: Apache-2.0 */
/* payload.h: what a job was dispatched with: as servers keep it, and as a task gets it. Runs in:
 * supervisor. */
#ifndef DROVER_MODEL_PAYLOAD_H
#define DROVER_MODEL_PAYLOAD_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

#define PAYLOAD_MAX 16384 /* bytes */

/* Bytes in Snappy's form, none of them made shorter. ret has room for PAYLOAD_PACKED_SIZE(len); len
 * is at most PAYLOAD_MAX. Returns the length. */
#define PAYLOAD_PACKED_SIZE(len) ((len) + 8)
size_t payload_pack(const void *data, size_t len, uint8_t *ret);
/* 0 with *ret_len of at most PAYLOAD_MAX bytes; -EBADMSG: it is not Snappy's form; -E2BIG: it would
 * be more. */
int payload_unpack(const void *packed, size_t len, uint8_t ret[PAYLOAD_MAX], size_t *ret_len);

/* Can a payload be this file in a task's directory `local`? -EINVAL with the sentence. */
int payload_file_check(const char *file, struct err *e);

#endif
