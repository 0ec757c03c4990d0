// SPDX-License-Identifier: Apache-2.0
/* api_node.c: /v1/nodes, /v1/node/:id and its eligibility. Runs in: supervisor. */
#include <string.h>

#include "supervisor/api/api_routes.h"
#include "supervisor/table/alloc_table.h"
#include "supervisor/api/alloc_view.h"
#include "supervisor/http/api.h"
#include "supervisor/http/api_list.h"
#include "supervisor/api/api_node.h"
#include "supervisor/node/node_meta.h"
#include "supervisor/node/node_state.h"
#include "supervisor/source/source_api.h"

static const char *
find_attribute(const struct node *node, const char *name)
{
	return string_map_get(&node->attributes, name);
}

/* A view of the node: shares its memory except for members that the API adds. */
static struct node
view_node(struct sup *sup)
{
	struct node view = *node_get(sup);

	if (!view.version)
		view.version = (char *)(uintptr_t)find_attribute(&view, "nomad.version");
	return view;
}

void
api_list_nodes(struct sup *sup, struct api_req *req)
{
	struct node view = view_node(sup);
	struct api_list list;

	api_list_begin_named(&list, req);
	if (api_prefix_fits(req, str(view.id)))
		api_list_add_stub(&list,
		    list.resources ? &node_stub_resources_type : &node_stub_type, &view,
		    &node_view_type, &view);
	api_list_reply(&list, req);
}

void
api_node_print(struct sup *sup, enum model_flags flags, struct text *t)
{
	struct node view = view_node(sup);

	model_to_text(&node_view_type, &view, flags, t);
}

bool
api_is_this_node(struct sup *sup, struct api_req *req)
{
	if (strcmp(api_param(req, 0), str(node_get(sup)->id)) == 0)
		return true;
	api_reply_error(req, 404, "node not found");
	return false;
}

void
api_get_node(struct sup *sup, struct api_req *req)
{
	struct node view = view_node(sup);

	if (api_is_this_node(sup, req))
		api_reply_model(req, &node_view_type, &view);
}

void
api_get_node_allocs(struct sup *sup, struct api_req *req)
{
	const struct source_api *source = sup->source->api;
	struct api_list list;

	if (!api_is_this_node(sup, req))
		return;
	api_list_begin(&list, req);
	alloc_foreach(sup, sa)
	{
		struct alloc view;

		if (source->shows && !source->shows(sup, req, str(sa->a.namespace)))
			continue;
		alloc_view_init(&view, sa);
		api_list_add(&list, &alloc_type, &view);
		alloc_view_done(&view);
	}
	api_list_reply(&list, req);
}

void
api_reply_node_change(struct sup *sup, struct api_req *req)
{
	json_int_t index = (json_int_t)api_index_now(sup);

	api_reply_json(
	    req, json_pack("{s:[], s:i, s:I, s:I, s:i, s:b}", "EvalIDs", "EvalCreateIndex", 0,
		     "NodeModifyIndex", index, "Index", index, "LastContact", 0, "KnownLeader", 1));
}

void
api_set_eligibility(struct sup *sup, struct api_req *req)
{
	struct err e = { 0 };
	const json_t *body;
	const char *wanted;
	bool takes;

	if (!api_is_this_node(sup, req))
		return;
	body = api_body(req, &e);
	wanted = json_string_value(json_object_get(body, "Eligibility"));
	takes = wanted && strcmp(wanted, "eligible") == 0;
	if (!body)
		api_reply_error(req, 400, "%s", e.msg);
	else if (!takes && (!wanted || strcmp(wanted, "ineligible") != 0))
		api_reply_error(req, 400, "Eligibility must be \"eligible\" or \"ineligible\"");
	else if (takes && node_get(sup)->drain)
		api_reply_error(req, 400,
		    "can not set node's scheduling eligibility to eligible while it is draining");
	else {
		node_set_takes_allocs(sup, takes);
		api_reply_node_change(sup, req);
	}
}

/* Metadata. */

/* Only this agent's node can be named. */
static bool
means_this_node(struct sup *sup, struct api_req *req, const json_t *body)
{
	const char *in_body = json_string_value(json_object_get(body, "NodeID"));
	const char *wanted = *str(in_body) ? in_body : str(api_query(req, "node_id"));

	if (!*wanted || str_eq(wanted, node_get(sup)->id))
		return true;
	api_reply_error(req, 404, "Unknown node \"%.80s\"", wanted);
	return false;
}

void
api_read_meta(struct sup *sup, struct api_req *req)
{
	struct rpc_meta_apply_rep rep;

	if (!means_this_node(sup, req, NULL))
		return;
	node_meta_show(sup, &rep);
	api_reply_model(req, &rpc_meta_apply_rep_type, &rep);
	node_meta_unshow(&rep);
}

void
api_apply_meta(struct sup *sup, struct api_req *req)
{
	struct err e = { 0 };
	const json_t *body = api_body(req, &e), *meta = json_object_get(body, "Meta");
	int r;

	if (!json_is_object(meta)) {
		api_reply_error(req, 400, "%s", body ? "the body has no object Meta" : e.msg);
		return;
	}
	if (!means_this_node(sup, req, body))
		return;
	r = node_meta_apply(sup, meta, &e);
	if (r < 0)
		api_reply_error(req, r == -EINVAL ? 400 : 500, "%s", e.msg);
	else
		api_read_meta(sup, req);
}
