// SPDX-License-Identifier: Apache-2.0
/* nomad_acl.c: the permission that each request needs, and its check. Runs in: supervisor. */
#include "supervisor/cluster/acl/nomad_acl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "supervisor/cluster/acl/acl_token.h"
#include "supervisor/cluster/rpc/rpc_acl.h"
#include "supervisor/cluster/rpc/rpc_serve.h"
#include "supervisor/cluster/rpc/rpc_stream.h"
#include "supervisor/http/api_paths.h"

/* Methods that are not listed need a management token. The servers themselves call CSI.* without a
 * token. */
static const struct method_need {
	const char *method;
	enum acl_need need;
} methods[] = {
	{ "Agent.Host", ACL_AGENT_READ },
	{ "Agent.Monitor", ACL_AGENT_READ },
	{ "Agent.MonitorExport", ACL_AGENT_READ },
	{ "Agent.Profile", ACL_AGENT_WRITE },
	{ "Allocations.Checks", ACL_READ_JOB },
	{ "Allocations.Exec", ACL_EXEC },
	{ "Allocations.GarbageCollect", ACL_COLLECT },
	{ "Allocations.GarbageCollectAll", ACL_NODE_WRITE },
	{ "Allocations.GetPauseState", ACL_READ_JOB },
	{ "Allocations.Restart", ACL_LIFECYCLE },
	{ "Allocations.Signal", ACL_LIFECYCLE },
	{ "Allocations.Stats", ACL_READ_JOB },
	{ "ClientStats.Stats", ACL_NODE_READ },
	{ "FileSystem.List", ACL_READ_FS },
	{ "FileSystem.Logs", ACL_READ_LOGS },
	{ "FileSystem.Stat", ACL_READ_FS },
	{ "FileSystem.Stream", ACL_READ_FS },
	{ "NodeIdentity.Get", ACL_NODE_READ },
	{ "NodeIdentity.Renew", ACL_NODE_WRITE },
	{ "NodeMeta.Apply", ACL_NODE_WRITE },
	{ "NodeMeta.Read", ACL_NODE_READ },
	{ 0 },
};

/* For paths that this node answers; the servers check requests that are passed on to them. */
static const enum acl_need path_needs[API_PATHS] = {
#define API_PATH(method, pattern, durable, need, ...) need,
#include "supervisor/http/api_paths.def"
#undef API_PATH
};

static enum acl_need
need_of_method(const char *method)
{
	const struct method_need *m = methods;

	if (strncmp(method, "CSI.", 4) == 0 || strncmp(method, "ClientCSI.", 10) == 0)
		return ACL_OPEN;
	while (m->method && strcmp(m->method, method) != 0)
		m++;
	return m->need;
}

/* The alloc's namespace decides; the one that the request names is only used without an alloc. */
static const char *
namespace_of(const struct sup_alloc *sa, const char *named)
{
	const char *namespace = sa ? str(sa->a.namespace) : str(named);

	return *namespace ? namespace : "default";
}

static struct sup_alloc *
find(struct sup *sup, const char *uuid)
{
	struct id id;

	return uuid && id_from_uuid(uuid, &id) ? alloc_find(sup, &id) : NULL;
}

/* A session in a task without isolation is a session on the node. */
static enum acl_need
raise_exec(enum acl_need need, const struct sup_alloc *sa, const char *task_name)
{
	const struct task *task = sa ? alloc_task(sa, task_name) : NULL;

	return need == ACL_EXEC && !(task && str_eq(task->driver, "exec")) ? ACL_EXEC_NODE : need;
}

/* Requests of servers. */

struct link_gate {
	const struct link_method *method;
	uint64_t stream;
	void *body;
	size_t len;
	bool gone;
};

static void
on_gone(struct sup *sup, void *arg, uint64_t stream)
{
	struct link_gate *g = arg;

	g->gone = true;
}

static const struct link_stream_ops gate_ops = { .on_gone = on_gone };

static void
refuse(struct sup *sup, const struct link_method *m, uint64_t stream, int r, const char *text)
{
	struct text frame = { 0 };

	if (!m->streaming) {
		link_answer(sup, stream, text, NULL, 0);
		return;
	}
	rpc_frame_error(&frame, r == -EACCES ? 403 : 500, text);
	link_stream_write(sup, stream, frame.text, frame.len);
	link_stream_close(sup, stream);
	text_done(&frame);
}

static void
on_method_checked(struct sup *sup, void *arg, int r, const struct err *e)
{
	struct link_gate *g = arg;

	if (!g->gone && r != -ECANCELED) {
		link_stream_watch(sup, g->stream, NULL, NULL);
		if (r == 0)
			g->method->fn(sup, g->stream, g->body, g->len);
		else
			refuse(sup, g->method, g->stream, r, e->msg);
		link_stream_go_on(sup, g->stream);
	}
	free(g->body);
	free(g);
}

void
nomad_acl_gate(
    struct sup *sup, const struct link_method *m, uint64_t stream, const void *body, size_t len)
{
	cleanup_done(rpc_caller) struct rpc_caller who = { 0 };
	enum acl_need need = need_of_method(m->name);
	struct err e = { 0 };
	struct link_gate *g;
	struct sup_alloc *sa;

	if (!sup->config->acl_enabled || need == ACL_OPEN) {
		m->fn(sup, stream, body, len);
		return;
	}
	if (model_from_msgpack(&rpc_caller_type, body, len, &who, WIRE_MEMORY_MAX, &e) < 0) {
		refuse(sup, m, stream, e.code, e.msg);
		return;
	}
	sa = find(sup, who.alloc_id);
	g = calloc(1, sizeof *g);
	if (!g || !(g->body = malloc(len + 1)))
		abort();
	memcpy(g->body, body, len);
	g->len = len;
	g->method = m;
	g->stream = stream;
	link_stream_hold(sup, stream);
	link_stream_watch(sup, stream, &gate_ops, g);
	acl_check(nomad_of_sup(sup), str(who.auth_token), raise_exec(need, sa, str(who.task)),
	    namespace_of(sa, who.namespace), on_method_checked, g);
}

/* Requests of the API. */

struct api_gate {
	struct api_req *req;
	api_handler *here;
};

static void
on_path_checked(struct sup *sup, void *arg, int r, const struct err *e)
{
	cleanup_free struct api_gate *g = arg;

	if (r == -ECANCELED)
		return;
	if (r == 0 && g->here)
		g->here(sup, g->req);
	else if (r == 0)
		api_serve(g->req);
	else
		api_reply_error(g->req,
		    r == -EACCES      ? 403
		    : r == -EREMOTEIO ? 500
				      : 503,
		    "%s", e->msg);
}

void
nomad_acl_serve(struct sup *sup, struct api_req *req, const char *alloc_id, api_handler *here)
{
	struct sup_alloc *sa = find(sup, alloc_id);
	enum acl_need need = path_needs[api_req_path(req)];
	struct api_gate *g = malloc(sizeof *g);

	if (!g)
		abort();
	*g = (struct api_gate){ .req = req, .here = here };
	acl_check(nomad_of_sup(sup), str(acl_request_token(req)),
	    raise_exec(need, sa, str(api_query(req, "task"))),
	    namespace_of(sa, api_query(req, "namespace")), on_path_checked, g);
}

bool
nomad_acl_shows(struct sup *sup, const struct api_req *req, const char *namespace)
{
	return acl_is_known_to_permit(nomad_of_sup(sup), str(acl_request_token(req)), ACL_READ_JOB,
	    namespace_of(NULL, namespace));
}
