/* SPDX-License-Identifier: Apache-2.0 */
/* sup_fetcher.h: requests to the fetcher. It is started by the first one, and ended after 30 s
 * without one. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_CORE_SUP_FETCHER_H
#define DROVER_SUPERVISOR_CORE_SUP_FETCHER_H

#include "proto/ipc_records.h"
#include "supervisor/core/sup_child.h"

struct fetch_request;

void fetcher_new(struct sup *sup);
/* After all owners of requests have ended. */
void fetcher_free(struct sup *sup);

/* At most 16 artifacts are fetched at a time, further requests wait. spec_fd, the memfd with the
 * description, is taken over. The callback is as that of child_call(), and not called after
 * fetcher_forget(). The request is freed before the callback runs. */
struct fetch_request *fetcher_ask(
    struct sup *sup, const struct fet_artifact_get_req *msg, int spec_fd, call_cb *cb, void *arg);
/* A request that still waits is not sent, and one that was sent is ended. Ignores NULL. */
void fetcher_forget(struct fetch_request *p);
/* True: the request was sent. */
bool fetcher_has_begun(const struct fetch_request *p);

#endif
