/* SPDX-License-Identifier: Apache-2.0 */
/* api_wait.h: blocking queries: requests with ?index=, held until what they ask for has changed, or
 * for ?wait=. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_HTTP_API_WAIT_H
#define DROVER_SUPERVISOR_HTTP_API_WAIT_H

#include <stdint.h>

#include "supervisor/http/api.h"

#define API_WAIT_MAX_S 600

struct api_wait_wish {
	uint64_t index;  /* 0: it does not wait */
	int64_t wait_ns; /* 5 minutes if it does not say */
};

/* -EINVAL with *e. */
int api_wait_read(const struct api_req *req, struct api_wait_wish *ret, struct err *e);

/* Answers a request to whose route the source has an index, now or once that has passed the wish's.
 * False: it has none. */
bool api_wait_serve(struct api_req *req);
/* Indexes have grown: answers whoever has waited for that. What it says has been committed. */
void api_wait_look(struct sup *sup);

#endif
