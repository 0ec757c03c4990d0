// SPDX-License-Identifier: Apache-2.0
/* nomad_sign.c: has tokens of tasks signed by the servers. Runs in: supervisor. */
#include "supervisor/cluster/node/nomad_sign.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/duration.h"
#include "common/mem.h"
#include "supervisor/cluster/node/nomad.h"
#include "supervisor/cluster/node/nomad_call.h"
#include "supervisor/cluster/node/nomad_clock.h"
#include "supervisor/cluster/node/nomad_register.h"
#include "supervisor/cluster/rpc/rpc_alloc.h"

#define SIGN_DEADLINE_MS 15000
#define SIGN_QUERY_NS    (5 * NS_PER_S) /* how long a server may wait until it has the alloc */
#define TOKEN_MAX        16384          /* bytes */

/* One call in progress. */
struct nomad_signing {
	LIST_ENTRY(nomad_signing) link;
	struct nomad *n;
	struct sup_alloc *sa;
	sign_cb *cb;
	void *arg;
	uint64_t call;
	size_t n_tokens;
	struct source_token tokens[];
};

static void
free_signing(struct nomad_signing *w)
{
	LIST_REMOVE(w, link);
	free(w);
}

/* Checks that a token is three parts of base64url, because it becomes an environment variable and a
 * file. */
static bool
is_token(const char *jwt)
{
	const char *at = jwt;

	for (int part = 0; part < 3; part++) {
		size_t len =
		    strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_");

		if (len == 0 || at[len] != (part < 2 ? '.' : '\0'))
			return false;
		at += len + (part < 2);
	}
	return at - jwt <= TOKEN_MAX;
}

/* Stores one token of the answer, which may have them in any order but must have each exactly once.
 */
static int
take_token(struct nomad_signing *w, const struct rpc_identity *one, struct err *e)
{
	for (size_t i = 0; i < w->n_tokens; i++) {
		struct source_token *t = &w->tokens[i];

		if (t->jwt || !str_eq(t->task, one->workload_identifier) ||
		    !str_eq(t->name, one->identity_name) || !str_eq(one->alloc_id, w->sa->a.id))
			continue;
		if (!is_token(str(one->jwt)))
			return err_say(e, -EBADMSG,
			    "a server returned an invalid token for identity \"%s\" of task \"%s\"",
			    t->name, t->task);
		t->jwt = one->jwt;
		t->expires_ns = one->expiration;
		return 0;
	}
	return err_say(e, -EBADMSG, "a server signed an identity that was not requested");
}

static int
read_answer(struct nomad_signing *w, const struct rpc_sign_rep *rep, struct err *e)
{
	size_t refused = rep->rejections.n;
	int r = 0;

	/* The server may be behind the one that placed the alloc. */
	if (refused > 0 && rep->meta.index < w->sa->a.create_index)
		return err_say(e, -EAGAIN, "the server does not know the allocation yet");
	if (refused > 0)
		return err_say(e, -EKEYREJECTED, "%zu/%zu signing request%s rejected: %.200s",
		    refused, w->n_tokens, refused > 1 ? "s were" : " was",
		    str(rep->rejections.v[0].reason));
	for (size_t i = 0; r == 0 && i < rep->signed_identities.n; i++)
		r = take_token(w, &rep->signed_identities.v[i], e);
	if (r == 0 && rep->signed_identities.n != w->n_tokens)
		return err_say(e, -EBADMSG, "expected %zu signed identities but received %zu",
		    w->n_tokens, rep->signed_identities.n);
	return r;
}

/* Returns true if the server does not have the method, so that a retry is useless. */
static bool
is_final(int r, const struct err *e)
{
	return r == -EREMOTEIO && strstr(e->msg, "rpc: can't find");
}

static void
on_signed(struct sup *sup, void *arg, int r, const void *body, size_t len, const struct err *e)
{
	cleanup_done(rpc_sign_rep) struct rpc_sign_rep rep;
	struct nomad_signing *w = arg;
	struct err why = { 0 };

	if (r < 0 && !nomad_register_if_unknown(w->n, r, e) && is_final(r, e))
		r = -EKEYREJECTED;
	r = nomad_decode(r, body, len, e, &rpc_sign_rep_type, &rep, &why);
	if (r == 0)
		r = read_answer(w, &rep, &why);
	if (r == 0 && w->n_tokens)
		nomad_clock_note(w->n, w->tokens[0].jwt);
	w->cb(sup, w->arg, r, w->tokens, r < 0 ? 0 : w->n_tokens, &why);
	free_signing(w);
}

void
nomad_sign(struct source *s, struct sup_alloc *sa, const struct source_token *wanted, size_t n,
    sign_cb *cb, void *arg)
{
	struct nomad *nomad = nomad_of(s);
	struct nomad_signing *w = mem_zeroed(1, sizeof *w + n * sizeof w->tokens[0]);
	struct rpc_sign_req req;

	*w = (struct nomad_signing){ .n = nomad, .sa = sa, .cb = cb, .arg = arg, .n_tokens = n };
	LIST_INSERT_HEAD(&nomad->signings, w, link);
	rpc_sign_req_init(&req);
	nomad_query(nomad, &req.query);
	req.query.allow_stale = true;
	req.query.min_query_index = sa->a.create_index > 0 ? sa->a.create_index - 1 : 0;
	req.query.max_query_time = SIGN_QUERY_NS;
	for (size_t i = 0; i < n; i++) {
		struct rpc_identity *one = list_add(rpc_identity, &req.identities);

		w->tokens[i] = wanted[i];
		str_set(&one->alloc_id, sa->a.id);
		str_set(&one->workload_identifier, wanted[i].task);
		str_set(&one->identity_name, wanted[i].name);
	}
	w->call = nomad_call(nomad, "Alloc.SignIdentities", &rpc_sign_req_type, &req,
	    SIGN_DEADLINE_MS, LINK_REPEAT, on_signed, w);
	rpc_sign_req_done(&req);
}

void
nomad_sign_cancel(struct source *s, struct sup_alloc *sa)
{
	struct nomad_signing *w, *next;

	LIST_FOREACH_SAFE (w, &nomad_of(s)->signings, link, next) {
		if (w->sa != sa)
			continue;
		link_cancel(s->sup, w->call);
		free_signing(w);
	}
}

void
nomad_sign_free(struct nomad *n)
{
	while (!LIST_EMPTY(&n->signings))
		free_signing(LIST_FIRST(&n->signings));
}
