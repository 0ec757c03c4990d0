/* SPDX-License-Identifier: Apache-2.0 */
/* api_list.h: answers that are lists: one JSON text, written item by item. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_API_LIST_H
#define DROVER_SUPERVISOR_API_LIST_H

#include <string.h>

#include "model/alloc.h"
#include "supervisor/alloc/alloc_table.h"
#include "supervisor/api/api.h"

struct api_list {
	struct text json;
	unsigned flags; /* of model_to_text() */
	bool some;
};

static inline void
api_list_begin(struct api_list *list, const struct api_req *req)
{
	*list = (struct api_list){ .flags = api_model_flags(req) };
	text_append(&list->json, "[", 1);
}

static inline void
api_list_add(struct api_list *list, const struct type *type, const void *obj)
{
	if (list->some)
		text_append(&list->json, ",", 1);
	list->some = true;
	if (model_to_text(type, obj, list->flags, &list->json) < 0)
		list->json.failed = true;
}

static inline void
api_list_add_alloc(struct api_list *list, struct sup_alloc *sa)
{
	alloc_fill_stub(&sa->a, &sa->job->job);
	api_list_add(list, &alloc_stub_type, &sa->a);
}

static inline void
api_list_reply(struct api_list *list, struct api_req *req)
{
	text_append(&list->json, "]", 1);
	api_reply_take(req, &list->json);
}

/* Does the request's ?prefix= (if any) begin this id? */
static inline bool
api_prefix_fits(const struct api_req *req, const char *id)
{
	const char *prefix = api_query(req, "prefix");

	return !prefix || strncmp(id, prefix, strlen(prefix)) == 0;
}

/* ?namespace=, "default" without; "*" means all in lists. */
static inline const char *
api_namespace(const struct api_req *req)
{
	const char *namespace = api_query(req, "namespace");

	return namespace && *namespace ? namespace : "default";
}

static inline bool
api_namespace_fits(const struct api_req *req, const char *namespace)
{
	const char *wanted = api_namespace(req);

	return strcmp(wanted, "*") == 0 || strcmp(wanted, namespace) == 0;
}

#endif
