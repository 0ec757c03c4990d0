/* SPDX-License-Identifier: Apache-2.0 */
/* local_api.h: the handlers of what only a server can answer; their routes are in local_api.c. Runs
 * in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_API_LOCAL_API_H
#define DROVER_SUPERVISOR_SERVER_API_LOCAL_API_H

#include "supervisor/http/api.h"
#include "supervisor/http/api_list.h"
#include "supervisor/server/claim/local_volumes.h"
#include "supervisor/server/job/local_allocs.h"
#include "supervisor/server/job/local_evals.h"
#include "supervisor/server/job/local_job.h"

#define API_PATH(method, pattern, durable, need, index, agent, server, ...) api_handler server;
#include "supervisor/http/api_paths.def"
#undef API_PATH

/* NULL: the local source has no handler for this line of api_paths.def. */
api_handler *local_api_handler(unsigned path);

/* local_api_jobs.c */
struct local_job *local_api_find_job(struct sup *sup, struct api_req *req); /* NULL: answered */
/* Could this node's source run it? 0 or -EINVAL with all that is wrong. */
int local_api_check_job(struct local *l, const struct job *job, struct err *e);
/* The body's job (initialised), completed and checked. *warn: what of it has no effect. 0 or -errno
 * with all that is wrong. */
int local_api_read_job(
    struct sup *sup, struct api_req *req, struct job *ret, struct problems *warn, struct err *e);
/* Makes *job (completed, checked; emptied) what is wanted, and answers. */
void local_api_put_job(struct sup *sup, struct api_req *req, struct job *job, const char *trigger,
    const char *warnings);

/* local_api_ask.c */

/* local_api_system.c */
/* Why the path of a request's target, which Nomad has, is not here; NULL: Nomad has none either. */
const char *local_elsewhere(const char *target);
/* local_api_drain.c */

/* local_api_plan.c */

/* local_api_deployments.c */

/* local_api_change.c */

/* local_api_children.c */

/* local_api_index.c */
api_index *local_index_of(struct sup *sup, unsigned path);

/* local_api.c. ev may be NULL. */
void local_api_reply_eval(struct sup *sup, struct api_req *req, const struct local_eval *ev,
    uint64_t job_index, const char *warnings);

/* local_api_services.c */

/* local_api_volumes.c */
/* {"Volumes":[…]}, the volume as the API shows it. */
void local_api_reply_volume(struct sup *sup, struct api_req *req, struct local_volume *lv);
/* 400, 404, 409 or 500 for a negative errno. */
int local_api_volume_status(int r);

/* local_api_controller.c */
/* Makes lv as large as vol wants it, for the nodes that use it too, and answers. */
void local_api_expand_volume(
    struct sup *sup, struct api_req *req, struct local_volume *lv, const struct csi_volume *vol);

#endif
