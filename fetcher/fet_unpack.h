/* SPDX-License-Identifier: Apache-2.0 */
/* fet_unpack.h: archives. Runs in: fetcher. */
#ifndef DROVER_FETCHER_FET_UNPACK_H
#define DROVER_FETCHER_FET_UNPACK_H

#include "fetcher/fet.h"

struct archive_kind;

/* Returns the kind of archive with this name, such as "tar.gz", or NULL. */
const struct archive_kind *archive_kind_named(const char *name);
/* Returns the kind of archive that a path's name says, or NULL. */
const struct archive_kind *archive_kind_of(const char *path);

/* Unpacks the archive in fd to `to`, a directory that it makes, or with single the only file of the
 * archive. Returns 0, or -errno with *e: -EFBIG beyond the limits, -EBADMSG for an archive that is
 * damaged or has entries that are not permitted. */
int fet_unpack(struct fet *f, const struct archive_kind *kind, int fd, bool single, const char *to,
    struct err *e);

#endif
