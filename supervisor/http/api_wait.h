/* SPDX-License-Identifier: Apache-2.0 */
/* api_wait.h: blocking queries: requests with ?index= that are held until their answer has changed,
 * or for the time of ?wait=. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_HTTP_API_WAIT_H
#define DROVER_SUPERVISOR_HTTP_API_WAIT_H

#include <stdint.h>

#include "supervisor/http/api.h"

#define API_WAIT_MAX_S 600

struct api_wait_wish {
	uint64_t index;  /* 0: no blocking query */
	int64_t wait_ns; /* default: 5 minutes */
};

/* Parses ?index= and ?wait=. -EINVAL with *e. */
int api_wait_read(const struct api_req *req, struct api_wait_wish *ret, struct err *e);

/* Answers a request whose route has an index, now or once the index has passed the requested one.
 * Returns false if the route has none. */
bool api_wait_serve(struct api_req *req);
/* To be called after a commit in which indexes have grown: answers the queries that waited for
 * that. */
void api_wait_check(struct sup *sup);

#endif
