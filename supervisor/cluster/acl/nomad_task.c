// SPDX-License-Identifier: Apache-2.0
/* nomad_task.c: the tokens of requests of tasks and over TCP, which the servers know. Runs in:
 * supervisor. */
#include "supervisor/cluster/acl/nomad_task.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "supervisor/cluster/node/nomad_call.h"
#include "supervisor/cluster/rpc/rpc_acl.h"

#define CALL_MS 10000
#define DENIED  "Permission denied"

/* A call whose answer is awaited. */
struct task_check {
	LIST_ENTRY(task_check) link; /* in nomad.checks */
	struct sup *sup;
	struct id alloc;
	char *task; /* NULL: no task, but a client over TCP */
	api_authenticate_cb *cb;
	void *arg;
};

static void
end_check(struct task_check *c, int r, const struct err *e)
{
	LIST_REMOVE(c, link);
	c->cb(c->sup, c->arg, r, e);
	free(c->task);
	free(c);
}

/* The identity of a service has no task. */
static bool
is_own(const struct task_check *c, const struct acl_claims *claims)
{
	struct id alloc;

	return c->task && id_from_uuid(str(claims->alloc_id), &alloc) &&
	       id_equal(&alloc, &c->alloc) &&
	       (!*str(claims->task) || str_eq(claims->task, c->task));
}

/* Servers without ACLs, and those that see no token, name tokens that nobody has made: over TCP
 * they say nothing about the sender. */
static bool
is_made(const struct task_check *c, const struct rpc_token *token)
{
	return c->task || (!str_eq(token->accessor_id, "acls-disabled") &&
			      !str_eq(token->accessor_id, "anonymous"));
}

static bool
ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), n = strlen(end);

	return len >= n && strcmp(text + len - n, end) == 0;
}

static void
on_who(struct sup *sup, void *arg, int r, const void *body, size_t len, const struct err *e)
{
	cleanup_done(rpc_who_rep) struct rpc_who_rep rep = { 0 };
	const struct acl_identity *who;
	struct task_check *c = arg;
	struct err bad = { 0 };

	if (r < 0) {
		/* Servers refuse what they cannot read as a token with other errors. */
		end_check(c,
		    r != -EREMOTEIO             ? r
		    : ends_with(e->msg, DENIED) ? -EACCES
						: -EBADMSG,
		    e);
		return;
	}
	r = model_from_msgpack(&rpc_who_rep_type, body, len, &rep, WIRE_MEMORY_MAX, &bad);
	who = rep.identity;
	if (r == 0 && !(who && ((who->token && is_made(c, who->token)) ||
				   (who->claims && is_own(c, who->claims)))))
		r = err_say(&bad, -EACCES,
		    c->task ? "the token is not valid for this task" : "the token is not valid");
	end_check(c, r, &bad);
}

void
nomad_task_authenticate(struct sup *sup, const char *token, const struct api_task *task,
    api_authenticate_cb *cb, void *arg)
{
	cleanup_done(rpc_query_req) struct rpc_query_req req = { 0 };
	struct nomad *n = nomad_of_sup(sup);
	struct task_check *c = mem_new(struct task_check);

	*c = (struct task_check){
		.sup = sup, .task = task ? mem_strdup(task->name) : NULL, .cb = cb, .arg = arg
	};
	if (task)
		c->alloc = task->alloc;
	LIST_INSERT_HEAD(&n->checks, c, link);
	str_set(&req.query.region, nomad_region(n));
	str_set(&req.query.auth_token, token);
	req.query.allow_stale = true;
	(void)nomad_call(
	    n, "ACL.WhoAmI", &rpc_query_req_type, &req, CALL_MS, LINK_REPEAT, on_who, c);
}

void
nomad_tasks_free(struct nomad *n)
{
	static const struct err ends = { .code = -ECANCELED };

	while (!LIST_EMPTY(&n->checks))
		end_check(LIST_FIRST(&n->checks), -ECANCELED, &ends);
}
