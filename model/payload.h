/* SPDX-License-Identifier: Apache-2.0 */
/* payload.h: the payload of a dispatched job: as servers store it, and as a task gets it. Runs in:
 * supervisor. */
#ifndef DROVER_MODEL_PAYLOAD_H
#define DROVER_MODEL_PAYLOAD_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

#define PAYLOAD_MAX 16384 /* bytes */

/* Encodes len bytes (at most PAYLOAD_MAX) in Snappy's format, without compression, into ret, a
 * buffer of PAYLOAD_PACKED_SIZE(len) bytes. Returns the length. */
#define PAYLOAD_PACKED_SIZE(len) ((len) + 8)
size_t payload_pack(const void *data, size_t len, uint8_t *ret);
/* Decodes at most PAYLOAD_MAX bytes. Returns 0 and sets *ret_len, or returns -EBADMSG if packed is
 * invalid, or -E2BIG if the result would be longer. */
int payload_unpack(const void *packed, size_t len, uint8_t ret[PAYLOAD_MAX], size_t *ret_len);

/* Checks that a payload can be stored as this file in a task's directory `local`. Returns 0, or
 * -EINVAL with *e. */
int payload_file_check(const char *file, struct err *e);

#endif
