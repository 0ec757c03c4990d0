// SPDX-License-Identifier: Apache-2.0
/* nomad_self.c: requests of servers about the node itself: its metadata and its identity. Runs in:
 * supervisor. */
#include "supervisor/cluster/serve/nomad_self.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base64.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "supervisor/cluster/serve/nomad_requests.h"
#include "supervisor/cluster/rpc/rpc_serve.h"
#include "supervisor/core/store.h"
#include "supervisor/node/host_facts.h"
#include "supervisor/node/node_meta.h"
#include "supervisor/node/node_state.h"

/* Metadata. */

static void
answer_meta(struct sup *sup, uint64_t stream)
{
	struct rpc_meta_apply_rep rep;

	node_meta_show(sup, &rep);
	nomad_answer(sup, stream, &rpc_meta_apply_rep_type, &rep);
	node_meta_unshow(&rep);
}

/* An error carries the HTTP status that the servers show to their users. */
static int
apply_meta(struct sup *sup, const json_t *changes, struct err *e)
{
	struct err why = { 0 };
	int r = node_meta_apply(sup, changes, &why);

	return r < 0 ? err_say(e, r, "RPC Error:: %d,%s", r == -EINVAL ? 400 : 500, why.msg) : 0;
}

void
nomad_self_apply_meta(struct sup *sup, uint64_t stream, const void *body, size_t len)
{
	cleanup_done(rpc_meta_apply_req) struct rpc_meta_apply_req req;
	struct err e = { 0 };

	rpc_meta_apply_req_init(&req);
	if (model_from_msgpack(&rpc_meta_apply_req_type, body, len, &req, WIRE_MEMORY_MAX, &e) <
		0 ||
	    (req.meta && apply_meta(sup, req.meta, &e) < 0))
		link_answer(sup, stream, e.msg, NULL, 0);
	else
		answer_meta(sup, stream);
}

void
nomad_self_read_meta(struct sup *sup, uint64_t stream, const void *body, size_t len)
{
	answer_meta(sup, stream);
}

/* The machine. */

void
nomad_self_host(struct sup *sup, uint64_t stream, const void *body, size_t len)
{
	cleanup_done(rpc_host_rep) struct rpc_host_rep rep;

	rpc_host_rep_init(&rep);
	rep.host_data = host_data_new();
	host_facts_fill(sup, rep.host_data);
	str_set(&rep.agent_id, node_get(sup)->id);
	nomad_answer(sup, stream, &rpc_host_rep_type, &rep);
}

/* Identity. */

/* Decodes the claims of a JWT. The signature is not verified, because the token is the node's own.
 */
static json_t *
read_claims(const char *jwt)
{
	const char *from = jwt ? strchr(jwt, '.') : NULL;
	size_t n = from ? strcspn(from + 1, ".") : 0, len;
	cleanup_free char *text = mem_zeroed(1, n + 4), *bytes = mem_alloc(n + 4);

	if (n == 0)
		return NULL;
	memcpy(text, from + 1, n);
	for (size_t i = 0; i < n; i++)
		text[i] = text[i] == '-' ? '+' : text[i] == '_' ? '/' : text[i];
	for (; n % 4; n++)
		text[n] = '=';
	return base64_decode(text, bytes, &len) < 0 ? NULL : json_loadb(bytes, len, 0, NULL);
}

void
nomad_self_get_identity(struct sup *sup, uint64_t stream, const void *body, size_t len)
{
	struct rpc_claims_rep rep = { .claims = read_claims(nomad_of_sup(sup)->identity) };

	if (rep.claims)
		nomad_answer(sup, stream, &rpc_claims_rep_type, &rep);
	else
		link_answer(sup, stream, "node does not have a JWT identity token", NULL, 0);
	json_decref(rep.claims);
}

void
nomad_self_renew_identity(struct sup *sup, uint64_t stream, const void *body, size_t len)
{
	nomad_of_sup(sup)->renew_identity = true;
	nomad_answer_empty(sup, stream);
}
