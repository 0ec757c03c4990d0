// SPDX-License-Identifier: Apache-2.0
/* local_api_acl.c: ACL policies and roles over the API. Runs in: supervisor. */
#include <errno.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/id.h"
#include "supervisor/server/acl/local_acl.h"
#include "supervisor/server/acl/local_identity.h"
#include "supervisor/server/api/local_api.h"
#include "supervisor/server/api/local_api_acl.h"
#include "supervisor/server/api/local_gate.h"

#define DESCRIPTION_MAX_LEN 256 /* as with the servers */

bool
local_api_name_is_valid(const char *name)
{
	size_t len = strlen(name);

	return len > 0 && len <= LOCAL_NAME_MAX_LEN &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") ==
		   len;
}

int
local_api_read_object(struct api_req *req, const struct type *type, void *ret, struct err *e)
{
	const json_t *body = api_body_object(req, e);

	return body ? model_from_json(type, body, ret, e) : -EINVAL;
}

/* --- policies --- */

/* A token may read its own policies, and everybody that of requests without a token. */
static bool
may_read_policy(const struct local_identity *who, const char *name)
{
	return who->rules.management || strings_has(who->policies, name);
}

static void
list_policies(struct sup *sup, struct api_req *req, const struct local_identity *who)
{
	size_t n;
	cleanup_free struct local_key **all = local_policies_sorted(local_of_sup(sup), &n);
	struct api_list list;

	api_list_begin_named(&list, req);
	for (size_t i = 0; i < n; i++)
		if (api_prefix_fits(req, all[i]->name) && may_read_policy(who, all[i]->name))
			api_list_add(&list, &acl_policy_stub_type, &local_policy_of(all[i])->p);
	api_list_reply(&list, req);
}

void
local_api_list_policies(struct sup *sup, struct api_req *req)
{
	const struct local_identity *who = local_gate_identity(sup, req);

	if (who)
		list_policies(sup, req, who);
	else
		local_gate_refuse(sup, req);
}

void
local_api_get_policy(struct sup *sup, struct api_req *req)
{
	const struct local_identity *who = local_gate_identity(sup, req);
	const char *name = api_param(req, 0);
	const struct local_policy *p = local_policy_find(local_of_sup(sup), name);

	if (!who || (!may_read_policy(who, name) && strcmp(name, LOCAL_ACL_ANONYMOUS) != 0))
		local_gate_refuse(sup, req);
	else if (!p)
		api_reply_error(req, 404, "ACL policy not found");
	else
		api_reply_model(req, &acl_policy_type, &p->p);
}

static int
check_policy(const struct acl_policy *p, const char *name, struct err *e)
{
	const struct acl_job *job = p->job;

	if (!str_eq(p->name, name))
		return err_say(e, -EINVAL, "ACL policy name does not match request path");
	if (!local_api_name_is_valid(name))
		return err_say(e, -EINVAL,
		    "policy name \"%.140s\" must have 1 to %d letters, digits and '-'", name,
		    LOCAL_NAME_MAX_LEN);
	if (strlen(str(p->description)) > DESCRIPTION_MAX_LEN)
		return err_say(e, -EINVAL, "description longer than %d", DESCRIPTION_MAX_LEN);
	if (job &&
	    ((*str(job->job_id) && !*str(job->namespace)) ||
		(*str(job->group) && !*str(job->job_id)) || (*str(job->task) && !*str(job->group))))
		return err_say(e, -EINVAL,
		    "JobACL: a task needs its Group, a group its JobID, a job its Namespace");
	return acl_rules_check(str(p->rules), name, e);
}

void
local_api_put_policy(struct sup *sup, struct api_req *req)
{
	cleanup_done(acl_policy) struct acl_policy p;
	struct err e = { 0 };

	acl_policy_init(&p);
	if (local_api_read_object(req, &acl_policy_type, &p, &e) < 0 ||
	    check_policy(&p, api_param(req, 0), &e) < 0) {
		api_reply_error(req, 400, "%s", e.msg);
		return;
	}
	local_policy_put(local_of_sup(sup), &p);
	api_reply_json(req, json_null());
}

/* As with the servers, a policy that does not exist is no error. */
void
local_api_delete_policy(struct sup *sup, struct api_req *req)
{
	struct local *l = local_of_sup(sup);
	struct local_policy *p = local_policy_find(l, api_param(req, 0));

	if (p)
		local_policy_forget(l, p);
	api_reply_json(req, json_null());
}

/* --- roles --- */

static bool
may_read_role(const struct local_identity *who, const char *id)
{
	const struct acl_token *t = who->token ? &who->token->t : NULL;

	for (size_t i = 0; t && i < t->roles.n; i++)
		if (str_eq(t->roles.v[i].id, id))
			return true;
	return who->rules.management;
}

void
local_api_list_roles(struct sup *sup, struct api_req *req)
{
	const struct local_identity *who = local_gate_identity(sup, req);
	size_t n;
	cleanup_free struct local_key **all = local_roles_sorted(local_of_sup(sup), &n);
	struct api_list list;

	if (!who) {
		local_gate_refuse(sup, req);
		return;
	}
	api_list_begin(&list, req);
	for (size_t i = 0; i < n; i++)
		if (api_prefix_fits(req, all[i]->name) && may_read_role(who, all[i]->name))
			api_list_add(&list, &acl_role_type, &local_role_of(all[i])->r);
	api_list_reply(&list, req);
}

static void
reply_role(struct sup *sup, struct api_req *req, const struct local_role *r)
{
	const struct local_identity *who = local_gate_identity(sup, req);

	if (!who || !(r ? may_read_role(who, r->r.id) : who->rules.management))
		local_gate_refuse(sup, req);
	else if (!r)
		api_reply_error(req, 404, "ACL role not found");
	else
		api_reply_model(req, &acl_role_type, &r->r);
}

void
local_api_get_role(struct sup *sup, struct api_req *req)
{
	reply_role(sup, req, local_role_find(local_of_sup(sup), api_param(req, 0)));
}

void
local_api_get_role_named(struct sup *sup, struct api_req *req)
{
	reply_role(sup, req, local_role_named(local_of_sup(sup), api_param(req, 0)));
}

/* Checks the role's policies, and drops those that it has twice. */
static int
check_links(struct local *l, struct acl_role *r, struct err *e)
{
	size_t n = 0;

	for (size_t i = 0; i < r->policies.n; i++) {
		struct acl_link link = r->policies.v[i];
		bool twice = false;

		if (!local_policy_find(l, str(link.name)))
			return err_say(e, -EINVAL, "cannot find policy %.140s", str(link.name));
		for (size_t k = 0; k < n; k++)
			twice |= str_eq(r->policies.v[k].name, link.name);
		/* Those that are dropped go to the end. */
		r->policies.v[i] = r->policies.v[n];
		r->policies.v[n] = link;
		n += !twice;
	}
	for (size_t i = n; i < r->policies.n; i++)
		acl_link_done(&r->policies.v[i]);
	r->policies.n = n;
	return 0;
}

static int
check_role(struct local *l, struct acl_role *r, const char *id, struct err *e)
{
	const struct local_role *named = local_role_named(l, str(r->name));

	if (id && !str_eq(r->id, id))
		return err_say(e, -EINVAL, "ACL role ID does not match request path");
	if (!local_api_name_is_valid(str(r->name)))
		return err_say(e, -EINVAL,
		    "role name \"%.140s\" must have 1 to %d letters, digits and '-'", str(r->name),
		    LOCAL_NAME_MAX_LEN);
	if (strlen(str(r->description)) > DESCRIPTION_MAX_LEN)
		return err_say(e, -EINVAL, "description longer than %d", DESCRIPTION_MAX_LEN);
	if (r->policies.n == 0)
		return err_say(e, -EINVAL, "at least one policy should be specified");
	if (*str(r->id) && !local_role_find(l, r->id))
		return err_say(e, -EINVAL, "cannot find role %.140s", r->id);
	if (named && !str_eq(named->r.id, str(r->id)))
		return err_say(e, -EINVAL, "role with name %s already exists", r->name);
	return check_links(l, r, e);
}

void
local_api_put_role(struct sup *sup, struct api_req *req)
{
	struct local *l = local_of_sup(sup);
	cleanup_done(acl_role) struct acl_role r;
	struct err e = { 0 };

	acl_role_init(&r);
	if (local_api_read_object(req, &acl_role_type, &r, &e) < 0 ||
	    check_role(l, &r, api_param(req, 0), &e) < 0) {
		api_reply_error(req, 400, "%s", e.msg);
		return;
	}
	if (!*str(r.id))
		local_api_make_uuid(&r.id);
	api_reply_model(req, &acl_role_type, &local_role_put(l, &r)->r);
}

void
local_api_delete_role(struct sup *sup, struct api_req *req)
{
	struct local *l = local_of_sup(sup);
	struct local_role *r = local_role_find(l, api_param(req, 0));

	if (!r) {
		api_reply_error(req, 404, "ACL role not found");
		return;
	}
	local_role_forget(l, r);
	api_reply_json(req, json_null());
}
