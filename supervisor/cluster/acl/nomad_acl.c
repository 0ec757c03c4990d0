// SPDX-License-Identifier: Apache-2.0
/* nomad_acl.c: the permission that each request needs, and its check. Runs in: supervisor. */
#include "supervisor/cluster/acl/nomad_acl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "supervisor/cluster/acl/acl_token.h"
#include "supervisor/cluster/node/nomad_call.h"
#include "supervisor/cluster/rpc/rpc_acl.h"
#include "supervisor/http/api_backend.h"
#include "supervisor/http/api_paths.h"
#include "supervisor/http/http_audit.h"

/* For paths that this node answers; the servers check requests that are passed on to them. */
static const enum acl_need path_needs[API_PATHS] = {
#define API_PATH(method, pattern, durable, need, ...) need,
#include "supervisor/http/api_paths.def"
#undef API_PATH
};

/* Returns the namespace that counts: the alloc's, or without an alloc the one that the request
 * names. */
static const char *
namespace_of(const struct sup_alloc *sa, const char *named)
{
	const char *namespace = sa ? str(sa->a.namespace) : str(named);

	return *namespace ? namespace : "default";
}

static struct sup_alloc *
find_alloc(struct sup *sup, const char *uuid)
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

struct gated_call {
	const struct link_method *method;
	uint64_t stream;
	void *body;
	size_t len;
	bool gone;
};

static void
on_gone(struct sup *sup, void *arg, uint64_t stream)
{
	struct gated_call *g = arg;

	g->gone = true;
}

static const struct link_stream_ops gate_ops = { .on_gone = on_gone };

static void
refuse_method(
    struct sup *sup, const struct link_method *m, uint64_t stream, int r, const char *text)
{
	if (m->streaming)
		nomad_stream_fail(sup, stream, r == -EACCES ? 403 : 500, text);
	else
		link_answer(sup, stream, text, NULL, 0);
}

/* Permissions of methods that change something, or open a session. */
static bool
changes(enum acl_need need)
{
	return need == ACL_LIFECYCLE || need == ACL_EXEC || need == ACL_COLLECT ||
	       need == ACL_NODE_WRITE;
}

/* Calls the method. Servers that are asked over HTTP audit that; this node audits what it does. */
static void
call_method(
    struct sup *sup, const struct link_method *m, uint64_t stream, const void *body, size_t len)
{
	cleanup_done(rpc_caller) struct rpc_caller who = { 0 };
	struct audit_call call = { .method = m->name };
	struct err e = { 0 };

	if (sup->audit && changes(m->need)) {
		/* A body that cannot be decoded is refused by the method. */
		(void)model_from_msgpack(&rpc_caller_type, body, len, &who, WIRE_MEMORY_MAX, &e);
		call.namespace = namespace_of(find_alloc(sup, who.alloc_id), who.namespace);
		call.alloc_id = who.alloc_id;
		call.token = str(who.auth_token);
		call.describe = sup->config->acl_enabled ? acl_describe_token : NULL;
		if (!http_audit_call(sup, &call)) {
			refuse_method(sup, m, stream, -EIO,
			    "refused, because requests are audited and the audit log of the node "
			    "cannot be written");
			return;
		}
	}
	m->fn(sup, stream, body, len);
}

static void
on_method_checked(struct sup *sup, void *arg, int r, const struct err *e)
{
	struct gated_call *g = arg;

	if (!g->gone && r != -ECANCELED) {
		link_stream_watch(sup, g->stream, NULL, NULL);
		if (r == 0)
			call_method(sup, g->method, g->stream, g->body, g->len);
		else
			refuse_method(sup, g->method, g->stream, r, e->msg);
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
	enum acl_need need = m->need;
	struct err e = { 0 };
	struct gated_call *g;
	struct sup_alloc *sa;
	void *copy;

	if (!sup->config->acl_enabled || need == ACL_OPEN) {
		call_method(sup, m, stream, body, len);
		return;
	}
	if (model_from_msgpack(&rpc_caller_type, body, len, &who, WIRE_MEMORY_MAX, &e) < 0) {
		refuse_method(sup, m, stream, e.code, e.msg);
		return;
	}
	sa = find_alloc(sup, who.alloc_id);
	copy = malloc(len + 1); /* a server chooses its size */
	if (!copy) {
		refuse_method(sup, m, stream, -ENOMEM, "out of memory for the request");
		return;
	}
	g = mem_new(struct gated_call);
	*g = (struct gated_call){
		.method = m, .stream = stream, .body = memcpy(copy, body, len), .len = len
	};
	link_stream_hold(sup, stream);
	link_stream_watch(sup, stream, &gate_ops, g);
	acl_check(nomad_of_sup(sup), str(who.auth_token), raise_exec(need, sa, str(who.task)),
	    namespace_of(sa, who.namespace), on_method_checked, g);
}

/* Requests of the API. */

struct gated_request {
	struct api_req *req;
	api_handler *here;
};

static void
on_path_checked(struct sup *sup, void *arg, int r, const struct err *e)
{
	cleanup_free struct gated_request *g = arg;

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
	struct sup_alloc *sa = find_alloc(sup, alloc_id);
	enum acl_need need = path_needs[api_req_path(req)];
	struct gated_request *g = mem_new(struct gated_request);

	*g = (struct gated_request){ .req = req, .here = here };
	(api_task(req) ? acl_check_always : acl_check)(nomad_of_sup(sup), str(api_token(req)),
	    raise_exec(need, sa, str(api_query(req, "task"))),
	    namespace_of(sa, api_query(req, "namespace")), on_path_checked, g);
}

bool
nomad_acl_shows(struct sup *sup, const struct api_req *req, const char *namespace)
{
	if (!sup->config->acl_enabled && !api_task(req))
		return true;
	return acl_is_known_to_permit(
	    nomad_of_sup(sup), str(api_token(req)), ACL_READ_JOB, namespace_of(NULL, namespace));
}
