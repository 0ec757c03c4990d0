/* SPDX-License-Identifier: Apache-2.0 */
/* fet_checksum.h: the checksum that an artifact must have. Runs in: fetcher. */
#ifndef DROVER_FETCHER_FET_CHECKSUM_H
#define DROVER_FETCHER_FET_CHECKSUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

enum checksum_type {
	CHECKSUM_MD5,
	CHECKSUM_SHA1,
	CHECKSUM_SHA256,
	CHECKSUM_SHA512,
	CHECKSUM_TYPES
};

struct checksum {
	enum checksum_type type;
	uint8_t bytes[64];
};

/* Parses "type:hex", or hex digits whose number says the type. Returns 0, or -EINVAL with *e. */
int checksum_parse(const char *text, struct checksum *ret, struct err *e);
/* Finds the checksum of the file `name` in a list of checksums, in the form of GNU (hex name) or
 * BSD (TYPE (name) = hex). path: another name that it may have there. A line without a name counts
 * for any file. Returns 0, or -ENOENT with *e. */
int checksum_find(const char *list, size_t len, const char *name, const char *path,
    struct checksum *ret, struct err *e);
/* Compares the contents of fd. Returns 0; -EBADMSG with *e if they differ, or another -errno. */
int checksum_verify(const struct checksum *c, int fd, struct err *e);

#endif
