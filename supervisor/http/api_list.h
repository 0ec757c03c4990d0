/* SPDX-License-Identifier: Apache-2.0 */
/* api_list.h: answers that are lists: one JSON text, written item by item. ?filter= selects items;
 * ?per_page=, ?next_token= and ?reverse= select a page, sorted by create index or by name. Runs in:
 * supervisor. */
#ifndef DROVER_SUPERVISOR_HTTP_API_LIST_H
#define DROVER_SUPERVISOR_HTTP_API_LIST_H

#include <string.h>

#include "model/alloc.h"
#include "supervisor/http/api.h"

struct api_filter;
struct api_page;

struct api_list {
	struct text json;
	unsigned flags; /* flags of model_to_text() */
	bool some, resources, no_task_states;
	struct api_filter *filter; /* NULL: none */
	struct api_page *page;     /* NULL: all items, unsorted */
	int status; /* HTTP status of an error, with its text in `refused`; 0: none so far */
	struct err refused;
};

void api_list_begin(struct api_list *list, const struct api_req *req);
/* The same for objects without a create index: pages are sorted by name. */
void api_list_begin_named(struct api_list *list, const struct api_req *req);
/* For a list sorted by name whose items are added in that order: returns false if this one is not
 * on the page, so that it need not be encoded. */
bool api_list_wants(const struct api_list *list, const char *namespace, const char *id);
void api_list_add(struct api_list *list, const struct type *type, const void *obj);
/* For an object of which the list shows only a part; the filter is evaluated on the whole object.
 */
void api_list_add_stub(struct api_list *list, const struct type *type, const void *stub,
    const struct type *whole_type, const void *whole);
/* Adds an item that is JSON text, which is taken over. */
void api_list_add_text(struct api_list *list, struct text *item);
void api_list_reply(struct api_list *list, struct api_req *req);

/* Returns true if the id starts with the request's ?prefix=, or the request has no prefix. */
static inline bool
api_prefix_fits(const struct api_req *req, const char *id)
{
	const char *prefix = api_query(req, "prefix");

	return !prefix || strncmp(id, prefix, strlen(prefix)) == 0;
}

/* Returns ?namespace=, or "default"; "*" means all namespaces in lists. */
static inline const char *
api_namespace(const struct api_req *req)
{
	const char *namespace = api_query(req, "namespace");

	return namespace && *namespace ? namespace : "default";
}

/* Returns true if the request asks for objects of this namespace, and its token has the path's
 * permission there. */
static inline bool
api_namespace_fits(const struct api_req *req, const char *namespace)
{
	const char *wanted = api_namespace(req);

	return (strcmp(wanted, "*") == 0 || strcmp(wanted, namespace) == 0) &&
	       api_permits(req, API_NEED_OF_PATH, namespace);
}

#endif
