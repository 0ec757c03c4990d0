// SPDX-License-Identifier: Apache-2.0
/* local_gate.c: checks what tokens permit at an agent that works alone. Runs in: supervisor. */
#include "supervisor/server/api/local_gate.h"

#include <errno.h>
#include <string.h>

#include "supervisor/api/alloc_view.h"
#include "supervisor/http/api_paths.h"
#include "supervisor/server/acl/local_acl.h"
#include "supervisor/server/acl/local_identity.h"
#include "supervisor/server/api/local_api.h"
#include "supervisor/server/sign/local_verify.h"
#include "supervisor/server/deploy/local_deployment.h"

static const enum acl_need path_needs[API_PATHS] = {
#define API_PATH(method, pattern, durable, need, ...) need,
#include "supervisor/http/api_paths.def"
#undef API_PATH
};

/* --- the namespace of the request's object --- */

static const char *
namespace_of_alloc(struct sup *sup, const struct api_req *req)
{
	const struct sup_alloc *sa = api_alloc(req);

	return sa ? str(sa->a.namespace) : NULL;
}

static struct sup_alloc *
action_alloc(struct sup *sup, const struct api_req *req)
{
	struct id id;

	return id_from_uuid(str(api_query(req, "allocID")), &id) ? alloc_find(sup, &id) : NULL;
}

static const char *
namespace_of_action(struct sup *sup, const struct api_req *req)
{
	const struct sup_alloc *sa = action_alloc(sup, req);

	return sa ? str(sa->a.namespace) : NULL;
}

static const char *
namespace_of_eval(struct sup *sup, const struct api_req *req)
{
	const struct local_eval *ev = local_eval_find(local_of_sup(sup), api_param(req, 0));

	return ev ? str(ev->ev.namespace) : NULL;
}

static const char *
namespace_of_deployment(struct sup *sup, const struct api_req *req)
{
	const struct local_deployment *dep =
	    local_deployment_find(local_of_sup(sup), api_param(req, 0));

	return dep ? str(dep->d.namespace) : NULL;
}

static const char *
namespace_of_path(struct sup *sup, const struct api_req *req)
{
	return api_param(req, 0);
}

/* Paths that are about an object with a namespace of its own: the first parameter, or, for an
 * action of a job, a query parameter, names it. */
static const struct {
	const char *prefix;                                              /* of the pattern */
	const char *(*find)(struct sup *sup, const struct api_req *req); /* NULL: no such object */
} objects[] = {
	{ "/v1/allocation/:id", namespace_of_alloc },
	{ "/v1/client/allocation/:id", namespace_of_alloc },
	{ "/v1/client/fs/", namespace_of_alloc },
	{ "/v1/job/:id/action", namespace_of_action },
	{ "/v1/evaluation/:id", namespace_of_eval },
	{ "/v1/deployment/", namespace_of_deployment },
	{ "/v1/namespace/:name", namespace_of_path },
};

/* Returns the namespace in which the request needs its permission. "*": in any, because the handler
 * will answer that the object does not exist, or because it checks the namespace in the body. */
static const char *
find_namespace(struct sup *sup, const struct api_req *req)
{
	const char *pattern = api_req_route(req)->pattern;

	for (size_t i = 0; i < ELEMENTSOF(objects); i++) {
		if (strncmp(pattern, objects[i].prefix, strlen(objects[i].prefix)) != 0 ||
		    strcmp(pattern, "/v1/job/:id/actions") == 0)
			continue;
		return objects[i].find(sup, req) ?: "*";
	}
	return acl_need_is_of_body(path_needs[api_req_path(req)]) ? "*" : api_namespace(req);
}

/* --- permissions --- */

/* Without ACLs everyone who can open the control socket has full access. A task has the rights of
 * its identity all the same. */
static bool
is_open(struct sup *sup, const struct api_req *req)
{
	return !sup->config->acl_enabled && !api_task(req);
}

/* A command in a task without isolation runs on the node. */
static bool
is_isolated(struct sup *sup, const struct api_req *req)
{
	const struct sup_alloc *sa = api_alloc(req) ?: action_alloc(sup, req);
	const struct task *task = sa ? alloc_task(sa, str(api_query(req, "task"))) : NULL;

	return task && str_eq(task->driver, "exec");
}

/* Returns the permission that this request needs, which may be more than that of its path. */
static enum acl_need
need_of(struct sup *sup, const struct api_req *req)
{
	enum acl_need need = path_needs[api_req_path(req)];
	struct err e = { 0 };
	bool purge = false;

	if (need == ACL_EXEC && !is_isolated(sup, req))
		return ACL_EXEC_NODE;
	if (need == ACL_STOP_JOB && (api_query_bool(req, "purge", &purge, &e) < 0 || purge))
		return ACL_PURGE_JOB;
	return need;
}

static bool
permits(const struct local_identity *who, enum acl_need need, const char *namespace)
{
	bool all = strcmp(namespace, "*") == 0;

	/* A task may find the services of a namespace by its own identity. */
	if (need == ACL_READ_SERVICES && who->claims && !all)
		return true;
	return all ? acl_rules_permit_any(&who->rules, need)
		   : acl_rules_permit(&who->rules, need, namespace);
}

const struct local_identity *
local_gate_identity(struct sup *sup, const struct api_req *req)
{
	struct err e = { 0 };

	return local_identify(local_of_sup(sup), str(api_token(req)), &e);
}

bool
local_gate_permits(struct sup *sup, const struct api_req *req, int need, const char *namespace)
{
	const struct local_identity *who;

	if (is_open(sup, req))
		return true;
	who = local_gate_identity(sup, req);
	if (need == API_NEED_OF_PATH)
		need = (int)need_of(sup, req);
	return who && permits(who, (enum acl_need)need, namespace);
}

bool
local_gate_shows(struct sup *sup, const struct api_req *req, const char *namespace)
{
	return local_gate_permits(sup, req, ACL_READ_JOB, *namespace ? namespace : "default");
}

bool
local_gate_permits_host_volume(const struct api_req *req, const char *name, bool writes)
{
	struct sup *sup = api_req_sup(req);
	const struct local_identity *who;

	if (is_open(sup, req))
		return true;
	who = local_gate_identity(sup, req);
	return who && acl_rules_permit_host_volume(&who->rules, name, writes);
}

bool
local_gate_permits_variable(
    const struct api_req *req, const char *namespace, const char *path, enum acl_variable what)
{
	struct sup *sup = api_req_sup(req);
	const struct local_identity *who;

	if (is_open(sup, req))
		return true;
	who = local_gate_identity(sup, req);
	return who &&
	       local_identity_permits_variable(local_of_sup(sup), who, namespace, path, what);
}

void
local_gate_describe(struct sup *sup, const struct api_req *req, json_t *auth)
{
	const struct local_identity *who = local_gate_identity(sup, req);
	const struct acl_token *t = who && who->token ? &who->token->t : NULL;
	char alloc[ID_UUID_SIZE];

	if (t) {
		api_describe_token(auth, str(t->accessor_id), str(t->name), str(t->type));
		(void)json_object_set_new(auth, "global", json_boolean(t->global));
	} else if (who && who->claims) {
		id_to_uuid(&who->claims->alloc_id, alloc);
		api_describe_task(auth, alloc, str(who->claims->task));
	} else if (is_open(sup, req)) {
		api_describe_token(auth, "acls-disabled", "ACLs are disabled", "");
	} else if (!*str(api_token(req))) {
		api_describe_token(auth, LOCAL_ACL_ANONYMOUS, "Anonymous Token", "client");
	}
}

void
local_gate_refuse(struct sup *sup, struct api_req *req)
{
	struct local *l = local_of_sup(sup);
	const char *token = api_token(req);
	struct err e = { 0 };

	if (!local_identify(l, str(token), &e))
		api_reply_error(req, 403, "Permission denied: %s", e.msg);
	else if (api_task(req) && !sup->config->acl_enabled)
		api_reply_error(req, 403,
		    "Permission denied: ACLs are disabled, so a task has no rights but those that "
		    "each identity has; acl { enabled = true } in the configuration lets "
		    "policies grant more");
	else if (*str(token))
		api_reply_error(req, 403, "Permission denied");
	else if (local_acl_bootstrapped(l))
		api_reply_error(req, 403,
		    "Permission denied: the request has no ACL token (-token, DROVER_TOKEN, or the "
		    "header X-Nomad-Token)");
	else
		api_reply_error(req, 403,
		    "Permission denied: the request has no ACL token, and none has been made yet: "
		    "`drover acl bootstrap` makes the first");
}

bool
local_gate_admit(struct sup *sup, struct api_req *req)
{
	enum acl_need need = path_needs[api_req_path(req)];
	const struct local_identity *who;

	if (!sup->config->acl_enabled &&
	    strncmp(api_req_route(req)->pattern, "/v1/acl/", strlen("/v1/acl/")) == 0) {
		api_reply_error(req, 400,
		    "ACL support disabled: anyone who can open this agent's socket has full "
		    "access; acl { enabled = true } in the configuration changes that");
		return false;
	}
	if (is_open(sup, req) || need == ACL_OPEN)
		return true;
	who = local_gate_identity(sup, req);
	if (who && need == ACL_VALID)
		return true;
	if (who && permits(who, need_of(sup, req), find_namespace(sup, req)))
		return true;
	local_gate_refuse(sup, req);
	return false;
}

/* A token of another task was stolen, or is not meant for this one. Without ACLs tokens of ACLs
 * have no meaning. */
void
local_gate_authenticate(struct sup *sup, const char *token, const struct api_task *task,
    api_authenticate_cb *cb, void *arg)
{
	struct err e = { 0 };
	const struct local_identity *who = local_identify(local_of_sup(sup), token, &e);

	if (who && !who->claims && !sup->config->acl_enabled)
		(void)err_say(&e, -EACCES, "ACLs are disabled");
	else if (who && !task && !who->token)
		(void)err_say(
		    &e, -EACCES, "the token is that of a task: over TCP an ACL token is needed");
	else if (who && who->claims && task &&
		 (!id_equal(&who->claims->alloc_id, &task->alloc) ||
		     !str_eq(who->claims->task, task->name)))
		(void)err_say(&e, -EACCES, "the token is that of another task");
	cb(sup, arg, e.code, &e);
}
