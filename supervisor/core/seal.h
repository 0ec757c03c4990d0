/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seal.h: encrypts secrets before they are written to state.db, with a key in the file seal.key
 * beside it. Whoever has only one of the two files, such as an old copy of state.db, reads no
 * secret. Runs in: supervisor.
 *
 * The cipher is AES-SIV (RFC 5297) with two keys of 256 bits and a random nonce. It keeps its
 * promises, except for showing that two values are equal, even if a nonce comes again, as it may
 * after a virtual machine was copied while it ran.
 */
#ifndef DROVER_SUPERVISOR_CORE_SEAL_H
#define DROVER_SUPERVISOR_CORE_SEAL_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

struct seal;

/* The encrypted bytes of one value. The caller frees them with sealed_done(). */
struct sealed {
	uint8_t *bytes;
	size_t len;
};

/* Reads <dir>/seal.key. Never fails: without a usable file *e has the reason, and a new key is made
 * before something is sealed for the first time; then an unusable file is kept as seal.key.old,
 * seal.key.old2, … A file that does not exist is no error. The caller frees the result with
 * seal_free(). */
struct seal *seal_new(const char *dir, struct err *e);
void seal_free(struct seal *s);

/* Seals len bytes. about names the row and the column: only with the same name it opens again, so
 * that sealed values cannot be moved to other rows. A new key is on the disk when this returns.
 * Returns 0 or -errno. */
int seal_close(struct seal *s, const char *about, const void *plain, size_t len, struct sealed *ret,
    struct err *e);
/* Opens what seal_close() made. Returns 0; -EBADMSG if it was made with another key, for another
 * row, or was changed since. The caller frees *ret_plain with seal_wipe(). */
int seal_open(const struct seal *s, const char *about, const void *bytes, size_t len,
    uint8_t **ret_plain, size_t *ret_len);

/* Overwrites and frees a secret; ignores NULL. */
void seal_wipe(void *plain, size_t len);
void sealed_done(struct sealed *sealed);

#endif
