/* SPDX-License-Identifier: Apache-2.0 */
/* fet_s3.h: objects of buckets, one or all below a name. Runs in: fetcher. */
#ifndef DROVER_FETCHER_FET_S3_H
#define DROVER_FETCHER_FET_S3_H

#include "fetcher/fet_source.h"

struct fet_s3 {
	char *bucket; /* its url, without a slash at the end */
	char *key;    /* the object's name, or the beginning of several; "": all of the bucket */
	char *version;
	/* As those of struct fet_http. Without credentials, requests are not signed. */
	char *sign, *user, *password, *token;
};

/* Takes the source apart, and takes the credentials out of its query, of the credentials file or
 * the environment. Returns 0, or -errno with *e. The caller calls fet_s3_done(). */
int fet_s3_read(struct fet_source *s, struct fet_s3 *ret, struct err *e);
void fet_s3_done(struct fet_s3 *s3);

/* Return the url of an object; and that of the names that begin with prefix, from the one on that
 * token stands for (NULL: the first). The caller frees it. */
char *fet_s3_url(const struct fet_s3 *s3, const char *key);
char *fet_s3_list_url(const struct fet_s3 *s3, const char *prefix, const char *token);
/* Returns the request for a url of the bucket. */
struct fet_http fet_s3_request(const struct fet_s3 *s3, const char *url, uint64_t timeout_ms);

/* fet_s3_dir.c: makes the directory `to` of all objects whose names are below s3->key. Returns 0;
 * -ENOENT if there are none; or another -errno; with *e. */
int fet_s3_get_dir(struct fet *f, const struct fet_s3 *s3, const char *to, struct err *e);

#endif
