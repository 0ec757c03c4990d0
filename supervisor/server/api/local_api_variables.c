// SPDX-License-Identifier: Apache-2.0
/* local_api_variables.c: writes, reads, lists, locks and deletes variables over the API. Runs in:
 * supervisor. */
#include <errno.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/duration.h"
#include "supervisor/api/variable_operation.h"
#include "supervisor/server/api/local_api.h"
#include "supervisor/server/api/local_gate.h"
#include "supervisor/server/job/local_namespaces.h"
#include "supervisor/server/variable/local_locks.h"

/* --- permissions --- */

static bool
is_permitted(const struct api_req *req, const struct variable *var, enum acl_variable what)
{
	return local_gate_permits_variable(req, str(var->namespace), str(var->path), what);
}

/* A lock's id is what its holder changes the variable with: only management sees that of others. */
static bool
shows_locks(const struct api_req *req)
{
	return api_permits(req, ACL_MANAGEMENT, "*");
}

/* Fills in what the client may see of the variable but its items; *ret is not to be freed. */
static void
fill_stub(const struct api_req *req, const struct variable *var, struct variable *ret)
{
	*ret = *var;
	ret->items = (struct string_map){ 0 };
	if (!shows_locks(req))
		ret->lock = NULL;
}

/* --- reading --- */

void
local_api_list_variables(struct sup *sup, struct api_req *req)
{
	size_t n;
	cleanup_free struct local_key **all = local_variables_select(
	    local_of_sup(sup), api_namespace(req), str(api_query(req, "prefix")), &n);
	struct api_list list;

	api_list_begin_named(&list, req);
	for (size_t i = 0; i < n; i++) {
		struct variable shown;

		fill_stub(req, &local_variable_of(all[i])->var, &shown);
		if (api_list_wants(&list, shown.namespace, shown.path) &&
		    is_permitted(req, &shown, ACL_VARIABLE_LIST))
			api_list_add_stub(
			    &list, &variable_stub_type, &shown, &variable_filter_type, &shown);
	}
	api_list_reply(&list, req);
}

void
local_api_get_variable(struct sup *sup, struct api_req *req)
{
	const struct local_variable *v =
	    local_variable_find(local_of_sup(sup), api_namespace(req), api_param(req, 0));
	cleanup_done(variable) struct variable var;
	struct err e = { 0 };

	variable_init(&var);
	if (!local_gate_permits_variable(
		req, api_namespace(req), api_param(req, 0), ACL_VARIABLE_READ)) {
		local_gate_refuse(sup, req);
	} else if (!v) {
		api_reply_error(req, 404, "variable not found");
	} else if (local_variable_get(v, &var, &e) < 0) {
		api_reply_error(req, 500, "%s", e.msg);
	} else {
		if (!shows_locks(req))
			variable_lock_free(steal_ptr(&var.lock));
		api_reply_model(req, &variable_type, &var);
	}
}

/* --- conflicts --- */

static void
reply_conflict(struct api_req *req, const struct variable *var)
{
	if (var->modify_index)
		api_set_meta(req, &(struct api_meta){ .index = var->modify_index });
	api_reply_json_status(req, 409, model_to_json(&variable_type, var, 0));
}

/* Answers with a variable that has nothing but its name: there is none, or its contents are not
 * shown, because another holds its lock. */
static void
reply_named_conflict(struct api_req *req, const char *namespace, const char *path)
{
	cleanup_done(variable) struct variable var;

	variable_init(&var);
	str_set(&var.namespace, namespace);
	str_set(&var.path, path);
	reply_conflict(req, &var);
}

/* Answers with the variable as it is, without its items if they cannot or may not be read. */
static void
reply_present_conflict(struct api_req *req, const struct local_variable *v)
{
	cleanup_done(variable) struct variable var;
	struct err ignored = { 0 };
	struct variable shown;

	variable_init(&var);
	(void)local_variable_get(v, &var, &ignored);
	fill_stub(req, &var, &shown);
	if (is_permitted(req, &var, ACL_VARIABLE_READ))
		shown.items = var.items;
	reply_conflict(req, &shown);
}

/* Checks ?cas=, the index that the variable must have: 0 if there must be none. v may be NULL.
 * Returns false after an answer. */
static bool
check_index(struct api_req *req, const struct local_variable *v, const char *namespace)
{
	uint64_t index = 0;
	struct err e = { 0 };
	int r = api_query_number(req, "cas", &index, &e);

	if (r < 0)
		api_reply_error(req, 400, "%s", e.msg);
	else if (r > 0 && v && v->var.modify_index != index)
		reply_present_conflict(req, v);
	else if (r > 0 && !v && index != 0)
		reply_named_conflict(req, namespace, api_param(req, 0));
	else
		return true;
	return false;
}

/* Only the holder of its lock changes a locked variable; a lock of which the holder does not know
 * yet that it has ended changes none. v may be NULL. Returns false after an answer. */
static bool
check_holder(struct api_req *req, const struct local_variable *v, const struct variable *wanted)
{
	const char *held = v && v->var.lock ? v->var.lock->id : NULL;
	const char *id = wanted->lock ? wanted->lock->id : NULL;

	if (str_eq(held, id))
		return true;
	reply_named_conflict(req, wanted->namespace, wanted->path);
	return false;
}

/* --- writing --- */

/* Reads the body; the path is that of the request, and its namespace holds if the body has none. */
static int
read_variable(struct api_req *req, struct variable *ret, struct err *e)
{
	const json_t *body = api_body(req, e);
	int r = body ? model_from_json(&variable_type, body, ret, e) : -EINVAL;

	str_set(&ret->path, api_param(req, 0));
	if (!ret->namespace)
		str_set(&ret->namespace, api_namespace(req));
	return r;
}

static int
check_contents(struct local *l, const struct variable *var, struct err *e)
{
	if (!local_namespace_find(l, var->namespace))
		return err_say(e, -EINVAL, "the variable is in nonexistent namespace \"%.140s\"",
		    var->namespace);
	if (variable_size(var) > VARIABLE_BYTES_MAX)
		return err_say(e, -EINVAL,
		    "the keys and values of a variable are limited to %d KiB together",
		    VARIABLE_BYTES_MAX / 1024);
	return variable_check_path(var->path, e);
}

/* Answers with the variable as this type shows it. */
static void
put_variable(struct local *l, struct api_req *req, struct variable *var, const struct type *type)
{
	struct err e = { 0 };
	int r = local_variable_put(l, var, &e);

	if (r < 0)
		api_reply_error(req, r == -EDQUOT ? 507 : 500, "%s", e.msg);
	else
		api_reply_model(req, type, var);
}

static void
set_variable(struct local *l, struct api_req *req, struct variable *var)
{
	struct local_variable *v = local_variable_find(l, var->namespace, var->path);
	struct err e = { 0 };

	if (var->items.n == 0)
		api_reply_error(req, 400, "variable missing required Items object");
	else if (var->lock && (var->lock->ttl || var->lock->delay))
		api_reply_error(
		    req, 400, "only lock-acquire sets the TTL and the LockDelay of a lock");
	else if (check_contents(l, var, &e) < 0)
		api_reply_error(req, 400, "%s", e.msg);
	else if (check_index(req, v, var->namespace) && check_holder(req, v, var)) {
		variable_lock_free(steal_ptr(&var->lock)); /* it stays as it is */
		put_variable(l, req, var, &variable_type);
	}
}

/* --- locks --- */

static int
complete_lock(struct variable *var, struct err *e)
{
	struct variable_lock *lock = var->lock ?: (var->lock = variable_lock_new());
	char id[ID_UUID_SIZE];
	struct id random;

	if (!lock->id) {
		random = id_random_uuid();
		id_to_uuid(&random, id);
		str_set(&lock->id, id);
	}
	lock->ttl = lock->ttl ?: LOCK_TTL_DEFAULT_NS;
	lock->delay = lock->delay ?: LOCK_DELAY_DEFAULT_NS;
	if (lock->ttl < LOCK_TTL_MIN_NS || lock->ttl > LOCK_TTL_MAX_NS)
		return err_say(e, -EINVAL, "the TTL of a lock must be 10s to 24h");
	if (lock->delay < 0)
		return err_say(e, -EINVAL, "the LockDelay of a lock must not be negative");
	return 0;
}

/* Without items those of the variable stay. */
static int
keep_items(const struct local_variable *v, struct variable *var, struct err *e)
{
	cleanup_done(variable) struct variable present;
	int r;

	variable_init(&present);
	if (!v || var->items.n > 0)
		return 0;
	r = local_variable_get(v, &present, e);
	if (r == 0) {
		struct string_map items = present.items;

		present.items = var->items;
		var->items = items;
	}
	return r;
}

static void
acquire_lock(struct local *l, struct api_req *req, struct variable *var)
{
	struct local_variable *v = local_variable_find(l, var->namespace, var->path);
	const char *id = var->lock ? var->lock->id : NULL;
	bool shown = var->items.n > 0 || is_permitted(req, var, ACL_VARIABLE_READ);
	struct err e = { 0 };

	if (v && v->var.lock && !str_eq(v->var.lock->id, id))
		reply_named_conflict(req, var->namespace, var->path);
	else if (check_contents(l, var, &e) < 0 || complete_lock(var, &e) < 0)
		api_reply_error(req, 400, "%s", e.msg);
	else if (keep_items(v, var, &e) < 0)
		api_reply_error(req, 500, "%s", e.msg);
	else
		put_variable(l, req, var, shown ? &variable_type : &variable_stub_type);
}

/* Returns the variable with the lock whose id is in *wanted; NULL after an answer. */
static struct local_variable *
find_held(struct local *l, struct api_req *req, const struct variable *wanted)
{
	struct local_variable *v = local_variable_find(l, wanted->namespace, wanted->path);

	if (!wanted->lock || !wanted->lock->id)
		api_reply_error(req, 400, "the request has no ID of a lock");
	else if (!v)
		api_reply_error(req, 404, "variable not found");
	else if (!v->var.lock)
		api_reply_error(req, 409, "the variable is not locked");
	else if (check_holder(req, v, wanted))
		return v;
	return NULL;
}

static void
renew_lock(struct local *l, struct api_req *req, const struct variable *wanted)
{
	struct local_variable *v = find_held(l, req, wanted);

	if (v && !local_lock_renew(v))
		api_reply_error(req, 409, "the lock was not renewed in time");
	else if (v)
		api_reply_model(req, &variable_stub_type, &v->var);
}

static void
release_lock(struct local *l, struct api_req *req, const struct variable *wanted)
{
	struct local_variable *v;

	if (wanted->items.v) {
		api_reply_error(req, 400, "lock-release changes no Items");
		return;
	}
	v = find_held(l, req, wanted);
	if (!v)
		return;
	local_variable_unlock(v);
	api_reply_model(req, &variable_stub_type, &v->var);
}

/* --- requests --- */

void
local_api_put_variable(struct sup *sup, struct api_req *req)
{
	struct local *l = local_of_sup(sup);
	cleanup_done(variable) struct variable var;
	enum variable_operation operation;
	struct err e = { 0 };

	variable_init(&var);
	if (variable_operation_read(req, &operation, &e) < 0 || read_variable(req, &var, &e) < 0) {
		api_reply_error(req, 400, "%s", e.msg);
		return;
	}
	if (!is_permitted(req, &var, ACL_VARIABLE_WRITE)) {
		local_gate_refuse(sup, req);
		return;
	}
	switch (operation) {
	case VARIABLE_SET:
		set_variable(l, req, &var);
		break;
	case VARIABLE_LOCK_ACQUIRE:
		acquire_lock(l, req, &var);
		break;
	case VARIABLE_LOCK_RENEW:
		renew_lock(l, req, &var);
		break;
	case VARIABLE_LOCK_RELEASE:
		release_lock(l, req, &var);
		break;
	}
}

void
local_api_delete_variable(struct sup *sup, struct api_req *req)
{
	struct local *l = local_of_sup(sup);
	const char *namespace = api_namespace(req), *path = api_param(req, 0);
	struct local_variable *v = local_variable_find(l, namespace, path);

	if (!local_gate_permits_variable(req, namespace, path, ACL_VARIABLE_DESTROY)) {
		local_gate_refuse(sup, req);
		return;
	}
	if (!check_index(req, v, namespace))
		return;
	if (v && v->var.lock) {
		reply_named_conflict(req, namespace, path);
		return;
	}
	if (v)
		local_variable_forget(v);
	api_reply_text(req, 204, "application/json", "", 0);
}
