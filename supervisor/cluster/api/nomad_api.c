// SPDX-License-Identifier: Apache-2.0
/* nomad_api.c: passes requests of the API on to the servers and shows their answers. If no server
 * can be reached, shows what this node knows of itself and its allocs. Runs in: supervisor. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "supervisor/cluster/acl/nomad_acl.h"
#include "supervisor/cluster/api/nomad_json.h"
#include "supervisor/cluster/api/nomad_mapped.h"
#include "supervisor/cluster/node/nomad.h"
#include "supervisor/cluster/rpc/rpc_claim.h"
#include "supervisor/volume/volume_stats.h"

#define CALL_MS     30000
#define FALLBACK_MS 3000 /* timeout if this node can answer from its own state */
/* Limit of blocking queries, so that the node's own calls are not held up. */
#define WAITING_MAX 500

/* A call whose answer is awaited. */
struct ask {
	struct api_held held; /* the held request */
	struct api_req *req;
	const struct mapped *m;
	uint64_t call;
	bool blocks;
};

static void
free_ask(struct ask *a)
{
	nomad_of_sup(api_req_sup(a->req))->n_queries -= a->blocks;
	free(a);
}

/* The client has disconnected. */
static void
on_gone(struct api_held *held)
{
	struct ask *a = container_of(held, struct ask, held);

	link_cancel(api_req_sup(a->req), a->call);
	free_ask(a);
}

/* Answers. */

/* An answer that waits until this node's plugin has been asked about the volume. */
struct volume_answer {
	struct api_req *req;
	struct csi_volume *volume;
};

static void
show_volume(struct sup *sup, void *arg)
{
	struct volume_answer *a = arg;
	struct csi_volume *v = a->volume;

	csi_volume_fill_view(v);
	v->here = volume_here_make(sup, str(v->namespace), str(v->id));
	api_reply_model(a->req, &csi_volume_view_type, v);
	csi_volume_free(v);
	free(a);
}

/* The servers' answer contains claims in their internal form; the API shows the model's form, with
 * what this node knows about the volume. The servers ignore ?refresh=true: this node asks its own
 * plugin. */
void
reply_volume(struct api_req *req, const void *body, size_t len)
{
	cleanup_done(rpc_claim_rep) struct rpc_claim_rep rep;
	struct sup *sup = api_req_sup(req);
	struct volume_answer *a;
	bool refresh = false;
	struct err e = { 0 };

	rpc_claim_rep_init(&rep);
	if (model_from_msgpack(&rpc_claim_rep_type, body, len, &rep, WIRE_MEMORY_MAX, &e) < 0)
		api_reply_error(req, 502, "%s", e.msg);
	else if (!rep.volume)
		api_reply_error(req, 404, "volume not found");
	else if (api_query_bool(req, "refresh", &refresh, &e) < 0)
		api_reply_error(req, 400, "invalid refresh value");
	else {
		a = mem_new(struct volume_answer);
		*a = (struct volume_answer){ req, steal_ptr(&rep.volume) };
		if (refresh)
			volume_stats_ask(
			    sup, str(a->volume->namespace), str(a->volume->id), show_volume, a);
		else
			show_volume(sup, a);
	}
}

/* Maps an error text to an HTTP status: "RPC Error:: 404,text", and errors that are known by how
 * they end. */
void
reply_remote(struct api_req *req, const char *text)
{
	const char *coded = strstr(text, "RPC Error:: ");
	int status = 500;

	if (coded) {
		char *end;
		long code = strtol(coded + strlen("RPC Error:: "), &end, 10);

		if (*end == ',' && code >= 400 && code < 600) {
			api_reply_error(req, (int)code, "%s", end + 1);
			return;
		}
	}
	if (strstr(text, "Permission denied") || strstr(text, "ACL token not found"))
		status = 403;
	else if (strstr(text, "Unknown node") || strstr(text, "Unknown allocation") ||
		 strstr(text, "No path to node") || strstr(text, "no such file or directory"))
		status = 404;
	api_reply_error(req, status, "%s", text);
}

/* Members that the API shows as an empty list when they are nil. Others are shown as null, which
 * clients expect. */
static bool
is_list(const char *member)
{
	static const char *const lists[] = { "ACLRoles", "Allocations", "Allocs", "Data",
		"Deployments", "Evaluations", "Jobs", "Keys", "Namespaces", "NodePools", "Nodes",
		"Policies", "Services", "Tokens" };

	for (size_t i = 0; i < ELEMENTSOF(lists); i++)
		if (strcmp(lists[i], member) == 0)
			return true;
	return false;
}

static void
reply_answer(struct api_req *req, const struct mapped *m, const void *body, size_t len)
{
	struct text json = { 0 };
	struct err e = { 0 };
	struct api_meta meta = { 0 };
	int r = nomad_to_json(body, len, m->member, &json, &meta, &e);

	api_set_meta(req, &meta);
	if (r < 0)
		api_reply_error(req, 502, "%s", e.msg);
	else if (r == 0 && m->missing)
		api_reply_error(req, 404, "%s", m->missing);
	else if (r == 0 && is_list(m->member))
		api_reply_json(req, json_array());
	else
		api_reply_take(req, &json);
	text_done(&json);
}

static void
serve_here(struct sup *sup, struct api_req *req, api_handler *here)
{
	const struct mapped *m = mapped_of(req);

	nomad_acl_serve(
	    sup, req, m->alloc_query ? api_query(req, m->alloc_query) : api_param(req, 0), here);
}

static void
on_answer(struct sup *sup, void *arg, int r, const void *body, size_t len, const struct err *e)
{
	struct ask *a = arg;

	api_hold(a->req, NULL);
	if (r == 0 && a->m->reply)
		a->m->reply(a->req, body, len);
	else if (r == 0)
		reply_answer(a->req, a->m, body, len);
	else if (r == -EREMOTEIO && a->m->absent && strstr(e->msg, "rpc: can't find "))
		serve_here(sup, a->req, a->m->absent);
	else if (r == -EREMOTEIO)
		reply_remote(a->req, e->msg);
	else if (a->m->fallback)
		serve_here(sup, a->req, a->m->fallback);
	else if (r == -ENETUNREACH)
		api_reply_error(a->req, 503, "No servers: %s", e->msg);
	else
		api_reply_error(a->req, 504, "%s", e->msg);
	free_ask(a);
}

/* Calls. */

void
serve_mapped(struct sup *sup, struct api_req *req)
{
	const struct mapped *m = mapped_of(req);
	const bool is_get = strcmp(api_req_route(req)->method, "GET") == 0;
	struct nomad *n = nomad_of_sup(sup);
	cleanup_json json_t *args = json_object();
	struct text body = { 0 };
	struct err e = { 0 };
	int64_t blocks_ms;
	struct ask *a;

	if (m->is_here && m->is_here(sup, req)) {
		serve_here(sup, req, m->here);
		return;
	}
	if (!*link_server(sup)) {
		if (m->fallback)
			serve_here(sup, req, m->fallback);
		else
			api_reply_error(req, 503,
			    "No servers are reachable, and only servers can answer %s",
			    api_req_route(req)->pattern);
		return;
	}
	if (mapped_get_args(n, req, m, args, &blocks_ms, &e) < 0 ||
	    (m->encode ? m->encode : encode_plain)(req, args, &body, &e) < 0) {
		api_reply_error(req, 400, "%s", e.msg);
		text_done(&body);
		return;
	}
	if (m->pass) {
		m->pass(sup, req, m, args, &body);
		text_done(&body);
		return;
	}
	if (blocks_ms > 0 && n->n_queries >= WAITING_MAX) {
		api_reply_error(req, 429,
		    "%d blocking queries are already waiting, which is the limit", WAITING_MAX);
		text_done(&body);
		return;
	}
	a = mem_new(struct ask);
	*a = (struct ask){ .held.done = on_gone, .req = req, .m = m, .blocks = blocks_ms > 0 };
	n->n_queries += a->blocks;
	a->call = link_call(sup, m->method, body.text, body.len,
	    (unsigned)((m->fallback ? FALLBACK_MS : CALL_MS) + blocks_ms + blocks_ms / 16),
	    is_get ? LINK_REPEAT : 0, on_answer, a);
	text_done(&body);
	/* A change is not cancelled when its client disconnects. */
	if (is_get)
		api_hold(req, &a->held);
}

bool
nomad_api_is_mapped(const struct api_req *req)
{
	return api_req_route(req)->fn == serve_mapped;
}
