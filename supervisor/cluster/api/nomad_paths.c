// SPDX-License-Identifier: Apache-2.0
/* nomad_paths.c: how each path of api_paths.def is answered by a method of the servers. Runs in:
 * supervisor. */
#include "supervisor/api/api_fs.h"
#include "supervisor/api/api_routes.h"
#include "supervisor/http/api_paths.h"
#include "supervisor/node/node_state.h"
#include "supervisor/http/api_router.h"
#include "supervisor/cluster/node/nomad.h"
#include "supervisor/cluster/api/nomad_mapped.h"

/* Paths that this agent answers itself. */

static bool
alloc_is_here(struct sup *sup, const struct api_req *req)
{
	struct id id;

	return id_from_uuid(api_param(req, 0), &id) && alloc_find(sup, &id);
}

/* A word that is not an id belongs to no other node, so this one refuses it. */
static bool
files_are_here(struct sup *sup, const struct api_req *req)
{
	struct id id;

	return !id_from_uuid(api_param(req, 0), &id) || alloc_find(sup, &id);
}

static bool
action_is_here(struct sup *sup, const struct api_req *req)
{
	struct id id;

	return !id_from_uuid(str(api_query(req, "allocID")), &id) || alloc_find(sup, &id);
}

static bool
node_is_here(struct sup *sup, const struct api_req *req)
{
	const char *wanted = api_query(req, "node_id");

	return !wanted || !*wanted || str_eq(wanted, node_get(sup)->id);
}

static bool
agent_is_here(struct sup *sup, const struct api_req *req)
{
	return !*str(api_query(req, "server_id")) && node_is_here(sup, req);
}

/* Lists of volumes and plugins are requested by type. */
static bool
wants_host(const struct api_req *req)
{
	return str_eq(api_query(req, "type"), "host");
}

static bool
is_not_csi(struct sup *sup, const struct api_req *req)
{
	return !str_eq(api_query(req, "type"), "csi");
}

static bool
is_always(struct sup *sup, const struct api_req *req)
{
	return true;
}

static void
reply_nothing(struct sup *sup, struct api_req *req)
{
	api_reply_json(req, json_array());
}

/* The columns of api_paths.def. */

#define RPC(...)                                                                                   \
	{                                                                                          \
		.method = __VA_ARGS__                                                              \
	}
#define HERE(fn)                                                                                   \
	{                                                                                          \
		.is_here = is_always, .here = fn                                                   \
	}
#define NO_RPC                                                                                     \
	{                                                                                          \
		0                                                                                  \
	}

/* Dynamic host volumes, which servers have since 1.10. */
static const struct mapped list_host_volumes =
    RPC("HostVolume.List", .member = "Volumes", .args = host_list_args, .absent = reply_nothing);

/* Locks, which servers have since 1.7. */
static const struct mapped renew_lock =
    RPC("Variables.RenewLock", .param = "Path", .args = renew_args, .reply = reply_renewal);

static const struct mapped mappings[API_PATHS] = {
#define API_PATH(http, pattern, durable, need, index, agent, server, ...) __VA_ARGS__,
#include "supervisor/http/api_paths.def"
#undef API_PATH
};

const struct mapped *
mapped_of(const struct api_req *req)
{
	const struct mapped *m = &mappings[api_req_path(req)];

	return m->is_other && m->is_other(req) ? m->other : m;
}

static const struct api_absent absent[] = {
	{ "/v1/volume/csi/*/claims",
	    "the servers have the claims and do not show their states: `drover volume status` "
	    "shows the allocations that have claims, `drover volume detach` releases those of "
	    "ended ones" },
	{ "/v1/volume/csi/*/modify",
	    "mutable parameters cannot be modified in a cluster: Nomad's servers have no such "
	    "request, and only they know the volume's secrets" },
	{ "/v1/volumes/group-snapshot",
	    "there are no group snapshots in a cluster: Nomad's servers have no such request; "
	    "`drover volume snapshot` makes snapshots of single volumes" },
	{ "*", "drover does not support this path yet: it neither answers it nor passes it on to "
	       "servers" },
	{ 0 },
};

const char *
nomad_elsewhere(const char *target)
{
	return api_absent_reason(absent, target);
}

api_handler *
nomad_api_handler(unsigned path)
{
	return mappings[path].method || mappings[path].here ? serve_mapped : NULL;
}
