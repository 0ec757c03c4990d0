/* SPDX-License-Identifier: Apache-2.0 */
/* local_api.h: the handlers of paths that only a server answers. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_API_LOCAL_API_H
#define DROVER_SUPERVISOR_SERVER_API_LOCAL_API_H

#include "supervisor/http/api.h"
#include "supervisor/http/api_backend.h"
#include "supervisor/http/api_list.h"
#include "supervisor/server/claim/local_volumes.h"
#include "supervisor/server/job/local_allocs.h"
#include "supervisor/server/job/local_evals.h"
#include "supervisor/server/job/local_job.h"

#define API_PATH(method, pattern, durable, need, index, agent, server, ...) api_handler server;
#include "supervisor/http/api_paths.def"
#undef API_PATH

/* Returns the handler of this line of api_paths.def, or NULL if the embedded server has none. */
api_handler *local_api_handler(unsigned path);

/* local_api_jobs.c */
/* Returns the job of the path; NULL if there is none, which was answered. */
struct local_job *local_api_find_job(struct sup *sup, struct api_req *req);

/* The warning of a request that has PolicyOverride. */
#define LOCAL_NO_POLICIES "PolicyOverride has no effect: there are no policies"

/* local_api_register.c */
/* Checks whether the embedded server can run the job. Returns 0, or -EINVAL with the faults. */
int local_api_check_job(struct local *l, const struct job *job, struct err *e);
/* Reads the body's job into *ret (initialised), completes and checks it. *warn gets its parts that
 * have no effect, *faults why it is refused. Returns 0, or -errno with faults: -EPERM if the token
 * does not permit it. */
int local_api_read_job(struct sup *sup, struct api_req *req, struct job *ret, struct problems *warn,
    struct problems *faults);
/* Registers *job, a changed copy of one of its versions (checked; emptied), and answers. */
void local_api_put_job(struct sup *sup, struct api_req *req, struct job *job, const char *trigger);

/* Checks EnforceIndex of a request: the job must have the index that its caller saw. Returns 0 or
 * -EEXIST with *e. */
int local_api_check_index(
    struct local *l, const json_t *body, const struct job *job, struct err *e);

/* local_api_namespaces.c */
/* Checks whether the job's namespace exists and permits its drivers and networks. */
void local_api_check_namespace(struct local *l, const struct job *job, struct problems *p);

/* local_api_system.c */
/* Returns why this path of the servers' API is not supported; NULL if servers do not have it
 * either. */
const char *local_elsewhere(const char *target);
/* local_api_index.c */
api_index *local_index_of(struct sup *sup, unsigned path);

/* local_api.c. Answers with the allocs of j (NULL: none) that belong to this evaluation and this
 * deployment (NULL: any). */
void local_api_reply_allocs(
    struct api_req *req, struct local_job *j, const char *eval_id, const char *deployment_id);
/* Answers with an evaluation, which may be NULL. */
void local_api_reply_eval(struct sup *sup, struct api_req *req, const struct local_eval *ev,
    uint64_t job_index, const char *warnings);

/* local_api_volumes.c */
/* Returns whether the request is for CSI volumes and their plugins. */
bool local_api_wants_csi(const struct api_req *req);
/* Sets *ret, which must hold nothing, to the alloc as lists show it. */
void local_api_fill_stub(struct alloc *ret, const struct sup_alloc *sa);
/* Returns the volume of the path; NULL if there is none, which was answered. */
struct local_volume *local_api_find_volume(struct sup *sup, struct api_req *req);
/* Answers with 409, and returns false, if the volume is in use. */
bool local_api_check_unused(struct api_req *req, const struct local_volume *lv);
/* Answers with the volume: {"Volumes":[…],"Warnings":…}. */
void local_api_reply_volume(struct sup *sup, struct api_req *req, struct local_volume *lv);
/* As it, for several: appends a volume to the list; answers with the list and takes it over. */
void local_api_append_volume(struct local *l, json_t *list, struct local_volume *lv);
void local_api_reply_volumes(struct api_req *req, json_t *list);
/* Returns the status for a negative errno: 400, 403 (-EPERM: the token does not permit it), 404,
 * 409 or 500. */
int local_api_volume_status(int r);

/* local_api_controller.c */
/* Adds the texts of an object in the body, which may be missing. Returns 0 or -EINVAL with *e. */
int local_api_read_map(
    const json_t *body, const char *member, struct string_map *ret, struct err *e);
/* Adds the secrets of the request's header X-Nomad-CSI-Secrets, "key=value,key=value"; parts
 * without = are ignored. */
void local_api_read_secrets(const struct api_req *req, struct string_map *ret);

/* local_api_volume_register.c */
/* Returns how many volumes the body {"Volumes":[…]} has (at least one), or -EINVAL. */
int local_api_count_volumes(struct api_req *req, struct err *e);
/* Reads and checks the i-th volume of the body. If the path has an id, it must be the volume's.
 * Secrets and other members that answers hide are kept from the volume that has this id. */
int local_api_read_volume(struct api_req *req, size_t i, struct csi_volume *ret, struct err *e);
/* Returns -EEXIST if another volume has the plugin's id of *vol. */
int local_api_check_external(const struct local *l, const struct csi_volume *vol, struct err *e);
/* Replaces the contents of lv by those of *vol, which is emptied. */
void local_api_replace_volume(struct local *l, struct local_volume *lv, struct csi_volume *vol);

/* local_api_expand.c */
/* Expands lv to the size of vol, also where it is mounted, and answers. */
void local_api_expand_volume(
    struct sup *sup, struct api_req *req, struct local_volume *lv, const struct csi_volume *vol);
/* Expands lv, which has a node_expansion, where it is mounted, and answers. */
void local_api_resume_expansion(struct sup *sup, struct api_req *req, struct local_volume *lv);

#endif
