/* SPDX-License-Identifier: Apache-2.0 */
/* fet_s3_list.h: what a bucket answers that is asked for its objects. Runs in: fetcher. */
#ifndef DROVER_FETCHER_FET_S3_LIST_H
#define DROVER_FETCHER_FET_S3_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"
#include "model/engine/containers.h"

/* One answer has a part of the names. */
struct s3_page {
	struct strings keys;
	bool more;   /* there are others, … */
	char *token; /* … from this one on; NULL: the server does not say it */
};

/* Reads the XML. Returns 0, or -EBADMSG with *e. The caller calls s3_page_done(). */
int s3_page_read(const char *xml, size_t len, struct s3_page *ret, struct err *e);
void s3_page_done(struct s3_page *page);

#endif
