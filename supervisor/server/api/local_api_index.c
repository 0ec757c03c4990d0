// SPDX-License-Identifier: Apache-2.0
/* local_api_index.c: the index at which the answer of each path changed last: for a list, or an
 * object that does not exist, that of its kind; for an object, its own. Runs in: supervisor. */
#include <string.h>

#include "supervisor/api/alloc_view.h"
#include "supervisor/http/api_list.h"
#include "supervisor/http/api_paths.h"
#include "supervisor/server/api/local_api.h"
#include "supervisor/server/deploy/local_deployment.h"
#include "supervisor/server/feed/local_changes.h"
#include "supervisor/server/variable/local_variables.h"

static uint64_t
later_index(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t
of_kind(struct sup *sup, enum local_kind kind)
{
	return local_changes_last(local_of_sup(sup), kind);
}

static uint64_t
of_object(struct sup *sup, uint64_t index)
{
	return local_changes_since_start(local_of_sup(sup), index);
}

/* The list of jobs also has their status and counts of their allocs. */
static uint64_t
index_of_jobs(struct sup *sup, const struct api_req *req)
{
	return later_index(of_kind(sup, LOCAL_JOBS),
	    later_index(of_kind(sup, LOCAL_ALLOCS), of_kind(sup, LOCAL_EVALS)));
}

static uint64_t
index_of_job(struct sup *sup, const struct api_req *req)
{
	const struct local_job *j =
	    local_job_find(local_of_sup(sup), api_namespace(req), api_param(req, 0));

	return j ? of_object(sup, j->index) : of_kind(sup, LOCAL_JOBS);
}

/* The summary of a parent counts its children. */
static uint64_t
index_of_summary(struct sup *sup, const struct api_req *req)
{
	const struct local_job *j =
	    local_job_find(local_of_sup(sup), api_namespace(req), api_param(req, 0));

	return j && job_is_parent(local_job_wanted(j)) ? index_of_jobs(sup, req)
						       : index_of_job(sup, req);
}

static uint64_t
index_of_allocs(struct sup *sup, const struct api_req *req)
{
	return of_kind(sup, LOCAL_ALLOCS);
}

static uint64_t
index_of_alloc(struct sup *sup, const struct api_req *req)
{
	const struct sup_alloc *sa = api_alloc(req);

	return sa ? of_object(sup, sa->a.modify_index) : of_kind(sup, LOCAL_ALLOCS);
}

static uint64_t
index_of_namespaces(struct sup *sup, const struct api_req *req)
{
	return of_kind(sup, LOCAL_NAMESPACES);
}

static uint64_t
index_of_keys(struct sup *sup, const struct api_req *req)
{
	return of_kind(sup, LOCAL_SIGNING_KEYS);
}

static uint64_t
index_of_policies(struct sup *sup, const struct api_req *req)
{
	return of_kind(sup, LOCAL_ACL_POLICIES);
}

static uint64_t
index_of_roles(struct sup *sup, const struct api_req *req)
{
	return of_kind(sup, LOCAL_ACL_ROLES);
}

static uint64_t
index_of_tokens(struct sup *sup, const struct api_req *req)
{
	return of_kind(sup, LOCAL_ACL_TOKENS);
}

static uint64_t
index_of_evals(struct sup *sup, const struct api_req *req)
{
	return of_kind(sup, LOCAL_EVALS);
}

static const struct local_eval *
find_eval(struct sup *sup, const struct api_req *req)
{
	return local_eval_find(local_of_sup(sup), api_param(req, 0));
}

static uint64_t
index_of_eval(struct sup *sup, const struct api_req *req)
{
	const struct local_eval *ev = find_eval(sup, req);

	return ev ? of_object(sup, ev->ev.modify_index) : of_kind(sup, LOCAL_EVALS);
}

static uint64_t
index_of_eval_allocs(struct sup *sup, const struct api_req *req)
{
	const struct local_eval *ev = find_eval(sup, req);

	return ev && ev->job ? of_object(sup, ev->job->index) : of_kind(sup, LOCAL_ALLOCS);
}

/* Deployments count allocs. */
static uint64_t
index_of_deployments(struct sup *sup, const struct api_req *req)
{
	return later_index(of_kind(sup, LOCAL_DEPLOYMENTS), of_kind(sup, LOCAL_ALLOCS));
}

static uint64_t
index_of_deployment(struct sup *sup, const struct api_req *req)
{
	const struct local_deployment *dep =
	    local_deployment_find(local_of_sup(sup), api_param(req, 0));

	return dep && dep->job ? of_object(sup, dep->job->index) : index_of_deployments(sup, req);
}

static uint64_t
index_of_nodes(struct sup *sup, const struct api_req *req)
{
	return of_kind(sup, LOCAL_NODES);
}

static uint64_t
index_of_services(struct sup *sup, const struct api_req *req)
{
	return of_kind(sup, LOCAL_SERVICES);
}

/* Whether a volume is schedulable follows from its plugin, a part of the node. */
static uint64_t
index_of_volumes(struct sup *sup, const struct api_req *req)
{
	return later_index(of_kind(sup, LOCAL_VOLUMES), of_kind(sup, LOCAL_NODES));
}

static uint64_t
index_of_volume(struct sup *sup, const struct api_req *req)
{
	const struct local_volume *lv =
	    local_volume_find(local_of_sup(sup), api_namespace(req), api_param(req, 0));

	return lv ? later_index(of_object(sup, lv->vol.modify_index), of_kind(sup, LOCAL_NODES))
		  : index_of_volumes(sup, req);
}

static uint64_t
index_of_variables(struct sup *sup, const struct api_req *req)
{
	return of_kind(sup, LOCAL_VARIABLES);
}

static uint64_t
index_of_variable(struct sup *sup, const struct api_req *req)
{
	const struct local_variable *v =
	    local_variable_find(local_of_sup(sup), api_namespace(req), api_param(req, 0));

	return v ? of_object(sup, v->var.modify_index) : of_kind(sup, LOCAL_VARIABLES);
}

#define index_none NULL

static api_index *const indexes[API_PATHS] = {
#define API_PATH(method, pattern, durable, need, index, ...) index,
#include "supervisor/http/api_paths.def"
#undef API_PATH
};

api_index *
local_index_of(struct sup *sup, unsigned path)
{
	return indexes[path];
}
