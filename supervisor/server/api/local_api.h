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

extern const struct api_route local_api_routes[]; /* local_api.c */

/* local_api_jobs.c */
void local_api_list_jobs(struct sup *sup, struct api_req *req);
void local_api_register_job(struct sup *sup, struct api_req *req);
void local_api_get_job(struct sup *sup, struct api_req *req);
void local_api_delete_job(struct sup *sup, struct api_req *req);
void local_api_job_allocs(struct sup *sup, struct api_req *req);
void local_api_job_evals(struct sup *sup, struct api_req *req);
void local_api_job_summary(struct sup *sup, struct api_req *req);
void local_api_job_versions(struct sup *sup, struct api_req *req);
void local_api_job_actions(struct sup *sup, struct api_req *req);
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
void local_api_evaluate_job(struct sup *sup, struct api_req *req);
void local_api_validate_job(struct sup *sup, struct api_req *req);

/* local_api_system.c */
/* Why the path of a request's target, which Nomad has, is not here; NULL: Nomad has none either. */
const char *local_elsewhere(const char *target);
void local_api_search(struct sup *sup, struct api_req *req);
void local_api_list_namespaces(struct sup *sup, struct api_req *req);
void local_api_get_namespace(struct sup *sup, struct api_req *req);
void local_api_list_regions(struct sup *sup, struct api_req *req);
void local_api_collect_system(struct sup *sup, struct api_req *req);
void local_api_reconcile_summaries(struct sup *sup, struct api_req *req);
void local_api_no_pools(struct sup *sup, struct api_req *req);
/* local_api_drain.c */
void local_api_drain_node(struct sup *sup, struct api_req *req);

/* local_api_plan.c */
void local_api_plan_job(struct sup *sup, struct api_req *req);

/* local_api_deployments.c */
void local_api_list_deployments(struct sup *sup, struct api_req *req);
void local_api_job_deployments(struct sup *sup, struct api_req *req);
void local_api_job_deployment(struct sup *sup, struct api_req *req);
void local_api_get_deployment(struct sup *sup, struct api_req *req);
void local_api_deployment_allocs(struct sup *sup, struct api_req *req);
void local_api_promote_deployment(struct sup *sup, struct api_req *req);
void local_api_pause_deployment(struct sup *sup, struct api_req *req);
void local_api_fail_deployment(struct sup *sup, struct api_req *req);
void local_api_set_alloc_health(struct sup *sup, struct api_req *req);

/* local_api_change.c */
void local_api_revert_job(struct sup *sup, struct api_req *req);
void local_api_scale_job(struct sup *sup, struct api_req *req);
void local_api_job_scale(struct sup *sup, struct api_req *req);

/* local_api_children.c */
void local_api_dispatch_job(struct sup *sup, struct api_req *req);
void local_api_force_job(struct sup *sup, struct api_req *req);

/* local_api_index.c */
api_index *local_index_of(struct sup *sup, const struct api_route *route);

/* local_api.c. ev may be NULL. */
void local_api_reply_eval(struct sup *sup, struct api_req *req, const struct local_eval *ev,
    uint64_t job_index, const char *warnings);

/* local_api_services.c */
void local_api_list_services(struct sup *sup, struct api_req *req);
void local_api_get_service(struct sup *sup, struct api_req *req);
void local_api_delete_service(struct sup *sup, struct api_req *req);
void local_api_alloc_services(struct sup *sup, struct api_req *req);

/* local_api_volumes.c */
void local_api_list_volumes(struct sup *sup, struct api_req *req);
void local_api_register_volumes(struct sup *sup, struct api_req *req);
void local_api_get_volume(struct sup *sup, struct api_req *req);
void local_api_create_volume(struct sup *sup, struct api_req *req);
void local_api_delete_volume(struct sup *sup, struct api_req *req);
void local_api_deregister_volume(struct sup *sup, struct api_req *req);
/* {"Volumes":[…]}, the volume as the API shows it. */
void local_api_reply_volume(struct sup *sup, struct api_req *req, struct local_volume *lv);
/* 400, 404, 409 or 500 for a negative errno. */
int local_api_volume_status(int r);
void local_api_list_plugins(struct sup *sup, struct api_req *req);
void local_api_get_plugin(struct sup *sup, struct api_req *req);

/* local_api_controller.c */
void local_api_list_external(struct sup *sup, struct api_req *req);
void local_api_list_snapshots(struct sup *sup, struct api_req *req);
void local_api_create_snapshot(struct sup *sup, struct api_req *req);
void local_api_delete_snapshot(struct sup *sup, struct api_req *req);
/* Makes lv as large as vol wants it, for the nodes that use it too, and answers. */
void local_api_expand_volume(
    struct sup *sup, struct api_req *req, struct local_volume *lv, const struct csi_volume *vol);

#endif
