// SPDX-License-Identifier: Apache-2.0
/* nomad_variables.c: requests for variables, for servers. The times of a lock are texts in the API
 * and numbers for servers. Runs in: supervisor. */
#include <errno.h>
#include <string.h>

#include "common/duration.h"
#include "model/variable.h"
#include "supervisor/api/variable_operation.h"
#include "supervisor/cluster/api/nomad_json.h"
#include "supervisor/cluster/api/nomad_mapped.h"

/* --- requests --- */

static bool
is_delete(const struct api_req *req)
{
	return strcmp(api_req_route(req)->method, "DELETE") == 0;
}

static json_t *
encode_items(const struct string_map *items)
{
	json_t *made = json_object();

	for (size_t i = 0; i < items->n; i++)
		(void)json_object_set_new(
		    made, items->v[i].key, json_string(str(items->v[i].value)));
	return made;
}

/* Returns the variable as servers have it. */
static json_t *
encode_variable(const struct variable *var)
{
	const struct variable_lock *lock = var->lock;
	json_t *made = json_pack("{s:s}", "Namespace", str(var->namespace));

	if (var->items.v)
		(void)json_object_set_new(made, "Items", encode_items(&var->items));
	if (lock)
		(void)json_object_set_new(made, "Lock",
		    json_pack("{s:s, s:I, s:I}", "ID", str(lock->id), "TTL", (json_int_t)lock->ttl,
			"LockDelay", (json_int_t)lock->delay));
	return made;
}

static int
read_body(struct api_req *req, struct variable *ret, struct err *e)
{
	const json_t *body = api_body(req, e);

	return body ? model_from_json(&variable_type, body, ret, e) : -EINVAL;
}

/* Adds the variable of a PUT to args, and reads the lock operation. */
static int
put_args(struct api_req *req, json_t *args, const char **ret_operation, struct err *e)
{
	cleanup_done(variable) struct variable var;
	enum variable_operation operation;
	int r;

	variable_init(&var);
	r = variable_operation_read(req, &operation, e);
	if (r == 0)
		r = read_body(req, &var, e);
	if (r < 0)
		return r;
	if (operation == VARIABLE_SET && var.items.n == 0)
		return err_say(e, -EINVAL, "variable missing required Items object");
	if (operation != VARIABLE_SET)
		*ret_operation =
		    operation == VARIABLE_LOCK_ACQUIRE ? "lock-acquire" : "lock-release";
	return json_object_set_new(args, "Var", encode_variable(&var));
}

int
variable_args(struct api_req *req, json_t *args, struct err *e)
{
	const char *operation = is_delete(req) ? "delete" : "set";
	uint64_t index = 0;
	int cas = api_query_number(req, "cas", &index, e), r = 0;
	json_t *var;

	if (cas < 0)
		return cas;
	if (is_delete(req))
		(void)json_object_set_new(args, "Var", json_object());
	else
		r = put_args(req, args, &operation, e);
	if (r < 0)
		return r;
	var = json_object_get(args, "Var");
	(void)json_object_set_new(var, "Path", json_string(api_param(req, 0)));
	if (cas > 0) {
		(void)json_object_set_new(var, "ModifyIndex", json_integer((json_int_t)index));
		operation = is_delete(req) ? "delete-cas" : "cas";
	}
	return json_object_set_new(args, "Op", json_string(operation));
}

bool
renews_lock(const struct api_req *req)
{
	enum variable_operation operation;
	struct err ignored;

	return variable_operation_read(req, &operation, &ignored) == 0 &&
	       operation == VARIABLE_LOCK_RENEW;
}

int
renew_args(struct api_req *req, json_t *args, struct err *e)
{
	cleanup_done(variable) struct variable var;
	int r;

	variable_init(&var);
	r = read_body(req, &var, e);
	if (r < 0)
		return r;
	return json_object_set_new(
	    args, "LockID", json_string(str(var.lock ? var.lock->id : NULL)));
}

/* --- answers --- */

static void
show_variable(json_t *var)
{
	json_t *lock = json_object_get(var, "Lock");
	static const char *const times[] = { "TTL", "LockDelay" };

	if (json_is_null(lock))
		(void)json_object_del(var, "Lock");
	if (json_object_size(json_object_get(var, "Items")) == 0)
		(void)json_object_del(var, "Items");
	for (size_t i = 0; json_is_object(lock) && i < ELEMENTSOF(times); i++) {
		json_int_t ns = json_integer_value(json_object_get(lock, times[i]));
		char text[DURATION_SIZE] = "";

		if (ns != 0)
			duration_format(ns, text);
		(void)json_object_set_new(lock, times[i], json_string(text));
	}
}

/* Reads a member of the answer: a variable, or a list of them. Returns 1 with *ret, 0 if it is nil,
 * or -EBADMSG with *e. */
static int
read_member(const void *body, size_t len, const char *member, json_t **ret, struct api_meta *meta,
    struct err *e)
{
	struct text text = { 0 };
	int r = nomad_to_json(body, len, member, &text, meta, e);
	json_t *var;
	size_t i;

	*ret = r > 0 ? json_loadb(text.text, text.len, 0, NULL) : NULL;
	if (text.text)
		explicit_bzero(text.text, text.len);
	text_done(&text);
	if (r > 0 && !*ret)
		return err_say(e, -EBADMSG, "the server's answer has a text that is not UTF-8");
	json_array_foreach (*ret, i, var)
		show_variable(var);
	if (json_is_object(*ret))
		show_variable(*ret);
	return r;
}

/* Answers a write: 409 with the existing variable after a conflict, the written one, or nothing
 * after a deletion. */
void
reply_variable(struct api_req *req, const void *body, size_t len)
{
	cleanup_json json_t *conflict = NULL;
	json_t *output = NULL;
	struct api_meta meta = { 0 };
	struct err e = { 0 };
	int r = read_member(body, len, "Conflict", &conflict, &meta, &e);

	if (r == 0 && !is_delete(req))
		r = read_member(body, len, "Output", &output, &meta, &e) < 0 ? -EBADMSG : 0;
	api_set_meta(req, &meta);
	if (r < 0)
		api_reply_error(req, 502, "%s", e.msg);
	else if (r > 0)
		api_reply_json_status(req, 409, json_incref(conflict));
	else if (is_delete(req))
		api_reply_text(req, 204, "application/json", "", 0);
	else
		api_reply_json(req, output ?: json_null());
}

static void
reply_data(struct api_req *req, const char *member, const void *body, size_t len)
{
	struct api_meta meta = { 0 };
	struct err e = { 0 };
	json_t *data;
	int r = read_member(body, len, member, &data, &meta, &e);

	api_set_meta(req, &meta);
	if (r < 0)
		api_reply_error(req, 502, "%s", e.msg);
	else if (r > 0)
		api_reply_json(req, data);
	else if (!api_param(req, 0))
		api_reply_json(req, json_array());
	else
		api_reply_error(req, 404, "variable not found");
}

void
reply_variables(struct api_req *req, const void *body, size_t len)
{
	reply_data(req, "Data", body, len);
}

void
reply_renewal(struct api_req *req, const void *body, size_t len)
{
	reply_data(req, "VarMeta", body, len);
}
