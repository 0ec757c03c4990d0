// SPDX-License-Identifier: Apache-2.0
/* local_api_tokens.c: ACL tokens over the API, and the first of them. Runs in: supervisor. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/fd.h"
#include "common/id.h"
#include "common/mem.h"
#include "supervisor/core/journal.h"
#include "supervisor/server/acl/local_acl.h"
#include "supervisor/server/acl/local_identity.h"
#include "supervisor/server/api/local_api.h"
#include "supervisor/server/api/local_api_acl.h"
#include "supervisor/server/api/local_gate.h"

/* As with the servers. */
#define NAME_MAX_LEN 256

void
local_api_make_uuid(char **ret)
{
	struct id id = id_random_uuid();
	char text[ID_UUID_SIZE];

	id_to_uuid(&id, text);
	str_set(ret, text);
}

static bool
is_uuid(const char *text)
{
	struct id id;

	return text && id_from_uuid(text, &id);
}

/* --- reading --- */

/* Copies the token as the API shows it, with the names of its roles; those that do not exist any
 * more are left out. */
static void
view_token(struct local *l, const struct local_token *t, struct acl_token *ret)
{
	size_t n = 0;

	acl_token_copy(&t->t, ret);
	for (size_t i = 0; i < ret->roles.n; i++) {
		const struct local_role *r = local_role_find(l, str(ret->roles.v[i].id));
		struct acl_link link = ret->roles.v[i];

		ret->roles.v[i] = ret->roles.v[n];
		ret->roles.v[n] = link;
		if (r)
			str_set(&ret->roles.v[n++].name, r->r.name);
	}
	for (size_t i = n; i < ret->roles.n; i++)
		acl_link_done(&ret->roles.v[i]);
	ret->roles.n = n;
}

static void
reply_token(struct api_req *req, const struct local_token *t)
{
	cleanup_done(acl_token) struct acl_token view = { 0 };

	view_token(local_of_sup(api_req_sup(req)), t, &view);
	api_reply_model(req, &acl_token_type, &view);
}

void
local_api_list_tokens(struct sup *sup, struct api_req *req)
{
	struct local *l = local_of_sup(sup);
	size_t n;
	cleanup_free struct local_key **all = local_tokens_sorted(l, &n);
	bool global = false;
	struct api_list list;
	struct err e = { 0 };

	if (api_query_bool(req, "global", &global, &e) < 0) {
		api_reply_error(req, 400, "%s", e.msg);
		return;
	}
	api_list_begin(&list, req);
	for (size_t i = 0; i < n; i++) {
		cleanup_done(acl_token) struct acl_token view = { 0 };

		if (!api_prefix_fits(req, all[i]->name) ||
		    (global && !local_token_of(all[i])->t.global))
			continue;
		view_token(l, local_token_of(all[i]), &view);
		api_list_add(&list, &acl_token_stub_type, &view);
	}
	api_list_reply(&list, req);
}

void
local_api_get_token(struct sup *sup, struct api_req *req)
{
	const struct local_identity *who = local_gate_identity(sup, req);
	const struct local_token *t = local_token_find(local_of_sup(sup), api_param(req, 0));

	if (!who || (!who->rules.management && (!t || t != who->token)))
		local_gate_refuse(sup, req);
	else if (!t)
		api_reply_error(req, 404, "ACL token not found");
	else
		reply_token(req, t);
}

void
local_api_get_own_token(struct sup *sup, struct api_req *req)
{
	const struct local_identity *who = local_gate_identity(sup, req);

	if (!who)
		local_gate_refuse(sup, req);
	else if (who->token)
		reply_token(req, who->token);
	else if (who->claims)
		api_reply_error(req, 404, "ACL token not found");
	else
		api_reply_json(
		    req, json_pack("{s:s, s:s, s:s, s:s, s:[s], s:b}", "AccessorID", "anonymous",
			     "SecretID", "", "Name", "Anonymous Token", "Type", LOCAL_ACL_CLIENT,
			     "Policies", LOCAL_ACL_ANONYMOUS, "Global", 0));
}

/* --- changing --- */

/* Sets the ids of the token's roles, which may be named instead, and drops those that it has twice.
 */
static int
check_roles(struct local *l, struct acl_token *t, struct err *e)
{
	size_t n = 0;

	for (size_t i = 0; i < t->roles.n; i++) {
		struct acl_link *link = &t->roles.v[i];
		const char *wanted = *str(link->id) ? link->id : str(link->name);
		const struct local_role *r =
		    *str(link->id) ? local_role_find(l, wanted) : local_role_named(l, wanted);
		struct acl_link one;
		bool twice = false;

		if (!r)
			return err_say(e, -EINVAL, "cannot find role %.140s", wanted);
		str_set(&link->id, r->r.id);
		str_set(&link->name, NULL);
		for (size_t k = 0; k < n; k++)
			twice |= str_eq(t->roles.v[k].id, r->r.id);
		one = *link;
		*link = t->roles.v[n];
		t->roles.v[n] = one;
		n += !twice;
	}
	for (size_t i = n; i < t->roles.n; i++)
		acl_link_done(&t->roles.v[i]);
	t->roles.n = n;
	return 0;
}

static int
check_type(const struct acl_token *t, struct err *e)
{
	if (strlen(str(t->name)) > NAME_MAX_LEN)
		return err_say(e, -EINVAL, "token name too long");
	if (str_eq(t->type, LOCAL_ACL_MANAGER))
		return t->policies.n + t->roles.n == 0
			   ? 0
			   : err_say(e, -EINVAL,
				 "management token cannot be associated with policies or roles");
	if (!str_eq(t->type, LOCAL_ACL_CLIENT))
		return err_say(e, -EINVAL, "token type must be client or management");
	if (t->policies.n + t->roles.n == 0)
		return err_say(e, -EINVAL, "client token missing policies or roles");
	return 0;
}

/* Sets when a new token expires. */
static int
set_expiration(const struct agent_config *config, struct acl_token *t, struct err *e)
{
	const int64_t min = (int64_t)config->acl_expiration_min_ms * NS_PER_MS;
	const int64_t max = (int64_t)config->acl_expiration_max_ms * NS_PER_MS;
	char limit[DURATION_SIZE];
	int64_t ttl = 0;

	if (*str(t->expiration_ttl) && duration_parse(t->expiration_ttl, &ttl, NULL) < 0)
		return err_say(
		    e, -EINVAL, "ExpirationTTL: \"%.60s\" is no duration", t->expiration_ttl);
	if (ttl < 0)
		return err_say(e, -EINVAL, "token expiration TTL should not be negative");
	if (!t->expiration_time && ttl)
		t->expiration_time = t->create_time + ttl;
	if (!t->expiration_time)
		return 0;
	if (t->expiration_time < t->create_time)
		return err_say(e, -EINVAL, "expiration time cannot be before create time");
	if (t->expiration_time - t->create_time > max) {
		duration_format(max, limit);
		return err_say(e, -EINVAL,
		    "expiration time cannot be more than %s in the future "
		    "(token_max_expiration_ttl)",
		    limit);
	}
	if (t->expiration_time - t->create_time < min) {
		duration_format(min, limit);
		return err_say(e, -EINVAL,
		    "expiration time cannot be less than %s in the future "
		    "(token_min_expiration_ttl)",
		    limit);
	}
	return 0;
}

/* Completes a token that is new. A caller may choose both ids of a client token. */
static int
complete_new(struct local *l, struct acl_token *t, struct err *e)
{
	if (*str(t->accessor_id)) {
		if (!is_uuid(t->accessor_id) || !is_uuid(t->secret_id) ||
		    !str_eq(t->type, LOCAL_ACL_CLIENT))
			return err_say(e, -EINVAL, "cannot find token %.140s", t->accessor_id);
		if (local_token_by_secret(l, t->secret_id))
			return err_say(e, -EINVAL, "another token has this SecretID");
	} else {
		local_api_make_uuid(&t->accessor_id);
		local_api_make_uuid(&t->secret_id);
		t->create_time = 0;
	}
	if (!t->create_time)
		t->create_time = clock_real_ns();
	return set_expiration(l->base.sup->config, t, e);
}

static int
check_update(const struct local_token *old, const struct acl_token *t, struct err *e)
{
	if (old->t.global != t->global)
		return err_say(e, -EINVAL, "cannot toggle global mode");
	if (*str(t->expiration_ttl) && !str_eq(t->expiration_ttl, str(old->t.expiration_ttl)))
		return err_say(e, -EINVAL, "cannot update expiration TTL");
	if (t->expiration_time && t->expiration_time != old->t.expiration_time)
		return err_say(e, -EINVAL, "cannot update expiration time");
	return 0;
}

static int
check_token(struct local *l, struct acl_token *t, const char *accessor, struct err *e)
{
	const struct local_token *old;
	int r;

	if (accessor && !str_eq(t->accessor_id, accessor))
		return err_say(e, -EINVAL, "ACL token accessor does not match request path");
	old = *str(t->accessor_id) ? local_token_find(l, t->accessor_id) : NULL;
	r = check_type(t, e);
	if (r == 0)
		r = old ? check_update(old, t, e) : complete_new(l, t, e);
	return r < 0 ? r : check_roles(l, t, e);
}

void
local_api_put_token(struct sup *sup, struct api_req *req)
{
	struct local *l = local_of_sup(sup);
	cleanup_done(acl_token) struct acl_token t;
	struct err e = { 0 };

	acl_token_init(&t);
	if (local_api_read_object(req, &acl_token_type, &t, &e) < 0 ||
	    check_token(l, &t, api_param(req, 0), &e) < 0)
		api_reply_error(req, 400, "%s", e.msg);
	else
		reply_token(req, local_token_put(l, &t));
}

void
local_api_delete_token(struct sup *sup, struct api_req *req)
{
	struct local *l = local_of_sup(sup);
	struct local_token *t = local_token_find(l, api_param(req, 0));

	if (!t) {
		api_reply_error(
		    req, 400, "Cannot delete nonexistent tokens: %.140s", api_param(req, 0));
		return;
	}
	local_token_forget(l, t);
	api_reply_json(req, json_null());
}

void
local_api_no_onetime(struct sup *sup, struct api_req *req)
{
	api_reply_error(req, 501, "%s", local_elsewhere("/v1/acl/token/onetime/exchange"));
}

/* --- the first token --- */

/* Returns the index in the file acl-bootstrap-reset, with which root permits another first token;
 * 0: there is no such file. */
static uint64_t
read_reset(const struct sup *sup)
{
	cleanup_free char *path = mem_printf("%s/state/acl-bootstrap-reset", sup->args.data_dir);
	cleanup_close int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char text[24] = "";
	ssize_t n = fd < 0 ? 0 : fd_read_full(fd, text, sizeof text - 1);

	if (fd < 0 && errno != ENOENT)
		journal_warn(JOURNAL_STATE, NULL, "cannot read %s: %s", path, strerror(errno));
	return n > 0 ? strtoull(text, NULL, 10) : 0;
}

static int
check_bootstrap(struct local *l, const char *secret, struct err *e)
{
	unsigned long long done = local_acl_bootstrapped(l), reset;

	if (secret && *secret && !is_uuid(secret))
		return err_say(e, -EINVAL, "invalid acl token: BootstrapSecret is not a UUID");
	if (secret && *secret && local_token_by_secret(l, secret))
		return err_say(e, -EINVAL, "invalid acl token: another token has this secret");
	if (!done)
		return 0;
	reset = read_reset(l->base.sup);
	if (!reset)
		return err_say(e, -EINVAL,
		    "ACL bootstrap already done (reset index: %llu): to do it again, write this "
		    "index to the file acl-bootstrap-reset in the directory state below data_dir",
		    done);
	if (reset != done)
		return err_say(e, -EINVAL,
		    "Invalid bootstrap reset index (specified %llu, reset index: %llu)", reset,
		    done);
	return 0;
}

void
local_api_bootstrap(struct sup *sup, struct api_req *req)
{
	struct local *l = local_of_sup(sup);
	cleanup_done(acl_token) struct acl_token t;
	struct err e = { 0 };
	const json_t *body = api_body(req, &e);
	const char *secret = json_string_value(json_object_get(body, "BootstrapSecret"));
	const struct local_token *made;

	acl_token_init(&t);
	if ((!body && e.code != -ENODATA) || check_bootstrap(l, secret, &e) < 0) {
		api_reply_error(req, 400, "%s", e.msg);
		return;
	}
	local_api_make_uuid(&t.accessor_id);
	local_api_make_uuid(&t.secret_id);
	if (secret && *secret)
		str_set(&t.secret_id, secret);
	str_set(&t.name, "Bootstrap Token");
	str_set(&t.type, LOCAL_ACL_MANAGER);
	t.global = true;
	t.create_time = clock_real_ns();
	made = local_token_put(l, &t);
	local_acl_set_bootstrapped(l, made);
	reply_token(req, made);
}
