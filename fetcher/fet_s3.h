/* SPDX-License-Identifier: Apache-2.0 */
/* fet_s3.h: how requests to buckets are signed. Runs in: fetcher. */
#ifndef DROVER_FETCHER_FET_S3_H
#define DROVER_FETCHER_FET_S3_H

#include "fetcher/fet_source.h"

struct fet_s3 {
	char *sign, *user, *password, *token;
};

/* Takes the parameters of s3 out of the source's query. Without credentials, there and in the
 * environment, requests are not signed: *ret has none. Returns 0, or -EINVAL with *e. The caller
 * calls fet_s3_done(). */
int fet_s3_read(struct fet_source *s, struct fet_s3 *ret, struct err *e);
void fet_s3_done(struct fet_s3 *s3);

#endif
