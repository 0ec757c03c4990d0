// SPDX-License-Identifier: Apache-2.0
/* api_orders.c: /v1/client/allocation/:id/restart, signal and gc, /v1/client/gc. Runs in:
 * supervisor. */
#include <errno.h>

#include "supervisor/api/api_routes.h"
#include "supervisor/alloc/alloc_orders.h"
#include "supervisor/source/source.h"
#include "supervisor/api/alloc_view.h"
#include "supervisor/http/api_origin.h"

/* Returns a string member of the body; "" if it is missing, NULL if it is not a string. */
static const char *
text_member(const json_t *body, const char *name)
{
	const json_t *value = json_object_get(body, name);

	return !value || json_is_null(value) ? "" : json_string_value(value);
}

static struct sup_alloc *
find_alloc(struct api_req *req)
{
	struct sup_alloc *sa = api_alloc(req);

	if (!sa)
		api_reply_error(req, 404, "Unknown allocation \"%.64s\"", api_param(req, 0));
	return sa;
}

static void
reply_order(struct sup *sup, struct api_req *req, int r, const struct err *e)
{
	if (r < 0)
		api_reply_error(req, r == -ENOENT ? 404 : 500, "%s", e->msg);
	else
		api_reply_json(req, json_pack("{s:I}", "Index", (json_int_t)api_index_now(sup)));
}

void
api_restart_alloc(struct sup *sup, struct api_req *req)
{
	struct sup_alloc *sa = find_alloc(req);
	struct err e = { 0 };
	json_t *body, *all;
	const char *task;

	if (!sa)
		return;
	body = api_body(req, &e);
	if (!body && e.code != -ENODATA) {
		api_reply_error(req, 400, "%s", e.msg);
		return;
	}
	task = text_member(body, "TaskName");
	all = json_object_get(body, "AllTasks");
	if ((body && !json_is_object(body)) || !task || (all && !json_is_boolean(all))) {
		api_reply_error(req, 400,
		    "the body must be an object with TaskName, a string, and AllTasks, a boolean");
		return;
	}
	reply_order(sup, req, alloc_restart(sa, task, json_is_true(all), &e), &e);
}

void
api_signal_alloc(struct sup *sup, struct api_req *req)
{
	struct sup_alloc *sa = find_alloc(req);
	const char *task, *signal;
	struct err e = { 0 };
	char by[API_ORIGIN_TEXT_SIZE];
	json_t *body;

	if (!sa)
		return;
	body = api_body(req, &e);
	if (!body) {
		api_reply_error(req, 400, "%s", e.msg);
		return;
	}
	task = text_member(body, "Task");
	signal = text_member(body, "Signal");
	if (!json_is_object(body) || !task || !signal)
		api_reply_error(
		    req, 400, "the body must be an object with the strings Task and Signal");
	else {
		api_origin_text(req, by);
		reply_order(sup, req, alloc_signal(sa, task, signal, by, &e), &e);
	}
}

void
api_collect_alloc(struct sup *sup, struct api_req *req)
{
	struct sup_alloc *sa = find_alloc(req);

	if (!sa)
		return;
	if (sup->source->ops->collect(sup->source, sa))
		api_reply_json(req, json_null());
	else
		api_reply_error(
		    req, 409, "No such allocation on client, or allocation not eligible for GC");
}

void
api_collect_all(struct sup *sup, struct api_req *req)
{
	alloc_foreach(sup, sa)
	{
		(void)sup->source->ops->collect(sup->source, sa);
	}
	api_reply_json(req, json_null());
}
