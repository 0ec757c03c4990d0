/* SPDX-License-Identifier: Apache-2.0 */
/* sup_fetcher.h: artifacts: requests to the fetcher, which is started by the first one and ended
 * after 30 s without one, and to file-helper, which puts them into their places. Runs in:
 * supervisor. */
#ifndef DROVER_SUPERVISOR_CORE_SUP_FETCHER_H
#define DROVER_SUPERVISOR_CORE_SUP_FETCHER_H

#include "proto/ipc_records.h"
#include "supervisor/core/sup_child.h"

struct fetch_request;

void fetcher_new(struct sup *sup);
/* After all owners of requests have ended. */
void fetcher_free(struct sup *sup);

enum fetch_kind { FETCH_GET, FETCH_PLACE, FETCH_KINDS };

struct fetch_msg {
	enum fetch_kind kind;
	union {
		struct fet_artifact_get_req get;
		struct file_artifact_place_req place;
	};
};

/* At most 16 artifacts are fetched at a time, and 8 are put into their places, so that other
 * requests to these helpers always find a worker; further ones wait. spec_fd, the memfd with the
 * description (-1 for FETCH_PLACE), is taken over. The callback is as that of child_call(), and not
 * called after fetcher_forget(). The request is freed before the callback runs. */
struct fetch_request *fetcher_ask(
    struct sup *sup, const struct fetch_msg *msg, int spec_fd, call_cb *cb, void *arg);
/* A request that still waits is not sent, and a fetch that was sent is ended. Ignores NULL. */
void fetcher_forget(struct fetch_request *p);
/* True: the request was sent. */
bool fetcher_has_begun(const struct fetch_request *p);

#endif
