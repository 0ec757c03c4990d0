// SPDX-License-Identifier: Apache-2.0
/* nomad_self.c: what servers ask of the node itself: its metadata and its identity. Runs in:
 * supervisor. */
#include "supervisor/source/nomad/nomad_self.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base64.h"
#include "common/cleanup.h"
#include "model/rpc_serve.h"
#include "supervisor/node/host_facts.h"
#include "supervisor/node/node_state.h"
#include "supervisor/source/nomad/nomad_requests.h"
#include "supervisor/store/store.h"

#define META_KEY_MAX 128

/* --- metadata --- */

static int
write_meta(struct sup *sup, struct dirty *d, struct err *e)
{
	struct nomad *n = nomad_of_sup(sup);
	cleanup_free char *text = json_dumps(n->meta, JSON_COMPACT);

	if (!text)
		return err_set(e, -ENOMEM, "write the node's metadata");
	return store_meta_put(sup->store, "nomad_meta", text, e);
}

int
nomad_self_load(struct nomad *n, struct err *e)
{
	cleanup_free char *text = NULL;
	int r = store_meta_get(n->base.sup->store, "nomad_meta", &text, e);

	n->meta_row.write = write_meta;
	n->meta_row.point = CRASH_ROW_NOMAD_META;
	if (r < 0 && r != -ENOENT)
		return r;
	n->meta = r >= 0 ? json_loads(text, 0, NULL) : json_object();
	if (!json_is_object(n->meta))
		return err_say(e, -EBADMSG, "state.db: the node's metadata is no object");
	node_set_meta(n->base.sup, n->meta);
	return 0;
}

static bool
is_meta_key(const char *key)
{
	size_t len =
	    strspn(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./");

	return len > 0 && len <= META_KEY_MAX && key[len] == '\0' && key[0] != '.';
}

static void
answer_meta(struct sup *sup, uint64_t stream)
{
	struct nomad *n = nomad_of_sup(sup);
	struct rpc_meta_apply_rep rep = { .meta = node_get(sup)->meta, .dynamic = n->meta };

	for (uint32_t i = 0; i < sup->config->n_meta; i++)
		(void)string_map_set(
		    &rep.static_meta, sup->config->meta[i].key, sup->config->meta[i].value);
	nomad_answer(sup, stream, &rpc_meta_apply_rep_type, &rep);
	rep.meta = (struct string_map){ 0 }; /* the node's */
	rep.dynamic = NULL;
	rpc_meta_apply_rep_done(&rep);
}

/* null takes a key away for good, also one of the configuration: it stays remembered as null. */
static int
apply_meta(struct nomad *n, const json_t *changes, struct err *e)
{
	const char *key;
	json_t *value;

	json_object_foreach ((json_t *)(uintptr_t)changes, key, value)
		if (!is_meta_key(key) || !(json_is_string(value) || json_is_null(value)))
			return err_say(
			    e, -EINVAL, "RPC Error:: 400,invalid metadata key \"%.64s\"", key);
	json_object_foreach ((json_t *)(uintptr_t)changes, key, value)
		if (json_object_set(n->meta, key, value) < 0)
			return err_set(e, -ENOMEM, "keep the node's metadata");
	turn_write(n->base.sup, &n->meta_row);
	turn_durable(n->base.sup);
	node_set_meta(n->base.sup, n->meta);
	nomad_node_changed(n);
	return 0;
}

void
nomad_self_apply_meta(struct sup *sup, uint64_t stream, const void *body, size_t len)
{
	cleanup_done(rpc_meta_apply_req) struct rpc_meta_apply_req req;
	struct err e = { 0 };

	rpc_meta_apply_req_init(&req);
	if (model_from_msgpack(&rpc_meta_apply_req_type, body, len, &req, WIRE_MEMORY_MAX, &e) <
		0 ||
	    (req.meta && apply_meta(nomad_of_sup(sup), req.meta, &e) < 0))
		link_answer(sup, stream, e.msg, NULL, 0);
	else
		answer_meta(sup, stream);
}

void
nomad_self_read_meta(struct sup *sup, uint64_t stream, const void *body, size_t len)
{
	answer_meta(sup, stream);
}

/* --- the machine --- */

void
nomad_self_host(struct sup *sup, uint64_t stream, const void *body, size_t len)
{
	cleanup_done(rpc_host_rep) struct rpc_host_rep rep;

	rpc_host_rep_init(&rep);
	rep.host_data = host_data_new();
	if (!rep.host_data || host_facts_fill(sup, rep.host_data) < 0 ||
	    str_set(&rep.agent_id, node_get(sup)->id) < 0)
		link_answer(sup, stream, "no memory for the answer", NULL, 0);
	else
		nomad_answer(sup, stream, &rpc_host_rep_type, &rep);
}

/* --- identity --- */

/* The middle part of a JWT, without its signature being looked at: it is our own. */
static json_t *
read_claims(const char *jwt)
{
	const char *from = jwt ? strchr(jwt, '.') : NULL;
	size_t n = from ? strcspn(from + 1, ".") : 0, len;
	cleanup_free char *text = calloc(1, n + 4), *bytes = malloc(n + 4);

	if (!n || !text || !bytes)
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

void
nomad_self_free(struct nomad *n)
{
	turn_forget_write(n->base.sup, &n->meta_row);
	json_decref(n->meta);
}
