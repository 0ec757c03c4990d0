// SPDX-License-Identifier: Apache-2.0
/* local_api_index.c: the index at which the answer of each path changed last: of a list, the last
 * of its kind; of an object, its own; of an object that does not exist, the last of its kind too.
 * Runs in: supervisor. */
#include <string.h>

#include "supervisor/api/alloc_view.h"
#include "supervisor/http/api_list.h"
#include "supervisor/server/api/local_api.h"
#include "supervisor/server/deploy/local_deployment.h"
#include "supervisor/server/feed/local_changes.h"

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

/* With them come their status and how many of their allocs are in which. */
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

/* A parent's counts its children. */
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

/* The namespaces of jobs and volumes. */
static uint64_t
index_of_namespaces(struct sup *sup, const struct api_req *req)
{
	return later_index(of_kind(sup, LOCAL_JOBS), of_kind(sup, LOCAL_VOLUMES));
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

/* They count allocs. */
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

/* Whether one can be used follows from its plugin. */
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

static const struct {
	const char *pattern;
	api_index *index;
} indexes[] = {
	{ "/v1/allocation/:id", index_of_alloc },
	{ "/v1/allocation/:id/services", index_of_services },
	{ "/v1/allocations", index_of_allocs },
	{ "/v1/deployment/:id", index_of_deployment },
	{ "/v1/deployment/allocations/:id", index_of_deployment },
	{ "/v1/deployments", index_of_deployments },
	{ "/v1/evaluation/:id", index_of_eval },
	{ "/v1/evaluation/:id/allocations", index_of_eval_allocs },
	{ "/v1/evaluations", index_of_evals },
	{ "/v1/job/:id", index_of_job },
	{ "/v1/job/:id/allocations", index_of_job },
	{ "/v1/job/:id/deployment", index_of_job },
	{ "/v1/job/:id/deployments", index_of_job },
	{ "/v1/job/:id/evaluations", index_of_job },
	{ "/v1/job/:id/scale", index_of_job },
	{ "/v1/job/:id/summary", index_of_summary },
	{ "/v1/job/:id/versions", index_of_job },
	{ "/v1/jobs", index_of_jobs },
	{ "/v1/namespace/:name", index_of_namespaces },
	{ "/v1/namespaces", index_of_namespaces },
	{ "/v1/node/:id", index_of_nodes },
	{ "/v1/node/:id/allocations", index_of_allocs },
	{ "/v1/nodes", index_of_nodes },
	{ "/v1/plugin/csi/:id", index_of_nodes },
	{ "/v1/plugins", index_of_nodes },
	{ "/v1/service/:name", index_of_services },
	{ "/v1/services", index_of_services },
	{ "/v1/volume/csi/:id", index_of_volume },
	{ "/v1/volumes", index_of_volumes },
};

api_index *
local_index_of(struct sup *sup, const struct api_route *route)
{
	for (size_t i = 0; i < ELEMENTSOF(indexes) && strcmp(route->method, "GET") == 0; i++)
		if (strcmp(indexes[i].pattern, route->pattern) == 0)
			return indexes[i].index;
	return NULL;
}
