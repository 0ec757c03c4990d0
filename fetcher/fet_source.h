/* SPDX-License-Identifier: Apache-2.0 */
/* fet_source.h: what the source of an artifact says: how it is fetched, from which url, and what
 * becomes of it. Runs in: fetcher. */
#ifndef DROVER_FETCHER_FET_SOURCE_H
#define DROVER_FETCHER_FET_SOURCE_H

#include "common/err.h"
#include "fetcher/fet.h"
#include "model/engine/containers.h"

struct fet_s3;

struct fet_source {
	char *getter;            /* "http", "https", "git", "s3" or "file" */
	char *scheme;            /* of the url */
	char *base;              /* the url without its query */
	char *path;              /* of the url, decoded */
	char *subdir;            /* the part of a directory that is wanted, or NULL */
	struct string_map query; /* of the url, decoded, with the options of the artifact */
	/* Out of the query: */
	char *archive;           /* NULL: as the name says */
	char *checksum;          /* or NULL */
	char *filename;          /* or NULL */
	const struct fet_s3 *s3; /* of the getter s3, set by fet_get.c */
};

/* Returns 0, or -EINVAL with *e. The caller calls fet_source_done(). */
int fet_source_read(const struct fet_spec *spec, struct fet_source *ret, struct err *e);
void fet_source_done(struct fet_source *s);

/* Removes a parameter from the query and returns its value, which the caller frees; NULL: it has
 * none. */
char *fet_source_take(struct fet_source *s, const char *name);
/* Returns the url with what is left of the query. The caller frees it. */
char *fet_source_url(const struct fet_source *s);
/* Returns the name of the file in the source's path; "" if that ends with "/". */
const char *fet_source_name(const struct fet_source *s);

#endif
