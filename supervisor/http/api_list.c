// SPDX-License-Identifier: Apache-2.0
/* api_list.c: answers lists, filtered and in pages. Runs in: supervisor. */
#include "supervisor/http/api_list.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "supervisor/http/http_req.h"

/* The sort key of an item: "17.ID" with its create index, or "default.ID" with its namespace. It is
 * also the token of the page that begins with the item; the page begins at the same place if the
 * item was removed in the meantime. */
#define KEY_SIZE (sizeof((struct api_meta *)NULL)->next_token)

struct item {
	unsigned long long index;
	char key[KEY_SIZE];
	char *json;
};

struct api_page {
	bool by_name, reverse;
	size_t max;        /* 0: no limit */
	struct item first; /* the page begins with this item; no key: with the first one */
	struct item *v;    /* sorted at the end, and whenever there are twice as many as max */
	size_t n, size;
};

static void
refuse_list(struct api_list *list, int status, const char *fmt, const char *what)
{
	if (list->status == 0) {
		list->status = status;
		(void)err_say(&list->refused, -EINVAL, fmt, what);
	}
}

/* Parameters. */

static int
read_token(struct api_page *page, const char *token)
{
	char *end;

	if (strlen(token) >= KEY_SIZE)
		return -EINVAL;
	(void)strcpy(page->first.key, token);
	if (page->by_name || !*token)
		return 0;
	errno = 0;
	page->first.index = strtoull(token, &end, 10);
	return errno || *end != '.' || !isdigit((unsigned char)*token) ? -EINVAL : 0;
}

static void
read_page(struct api_list *list, const struct api_req *req, bool by_name)
{
	const char *max = api_query(req, "per_page"), *token = api_query(req, "next_token");
	bool reverse = false;
	char *end = NULL;

	if (api_query_bool(req, "reverse", &reverse, &list->refused) < 0)
		list->status = 400;
	if (!str(max)[0] && !str(token)[0] && !reverse)
		return;
	list->page = mem_new(struct api_page);
	list->page->by_name = by_name;
	list->page->reverse = reverse;
	if (str(max)[0]) {
		errno = 0;
		list->page->max = strtoul(max, &end, 10);
		if (!isdigit((unsigned char)*max) || *end || errno || list->page->max > UINT32_MAX)
			refuse_list(list, 400, "per_page must be a number, not \"%.40s\"", max);
	}
	if (read_token(list->page, str(token)) < 0)
		refuse_list(list, 400, "next_token \"%.80s\" is not a token of this list", token);
}

static void
begin_list(struct api_list *list, const struct api_req *req, bool by_name)
{
	const char *filter = api_query(req, "filter");
	bool task_states = true;

	*list = (struct api_list){ .flags = api_model_flags(req) };
	text_append(&list->json, "[", 1);
	read_page(list, req, by_name);
	if (api_query_bool(req, "resources", &list->resources, &list->refused) < 0 ||
	    api_query_bool(req, "task_states", &task_states, &list->refused) < 0)
		list->status = 400;
	list->no_task_states = !task_states;
	if (filter && *filter &&
	    api_filter_parse(filter, &http_req_share(req)->filters, &list->filter, &list->refused) <
		0)
		list->status = 400;
}

void
api_list_begin(struct api_list *list, const struct api_req *req)
{
	begin_list(list, req, false);
}

void
api_list_begin_named(struct api_list *list, const struct api_req *req)
{
	begin_list(list, req, true);
}

/* Items. */

static void
append_item(struct api_list *list, const char *json, size_t len)
{
	if (list->some)
		text_append(&list->json, ",", 1);
	list->some = true;
	text_append(&list->json, json, len);
}

static int
compare_keys(const struct api_page *page, const struct item *a, const struct item *b)
{
	int r = (a->index > b->index) - (a->index < b->index);

	if (r == 0)
		r = strcmp(a->key, b->key);
	return page->reverse ? -r : r;
}

static int
compare_items(const void *a, const void *b, void *page)
{
	return compare_keys(page, a, b);
}

/* Sorts the items and drops those after the first of the next page. */
static void
sort_page(struct api_page *page)
{
	if (page->n > 0)
		qsort_r(page->v, page->n, sizeof *page->v, compare_items, page);
	while (page->max > 0 && page->n > page->max + 1)
		free(page->v[--page->n].json);
}

static void
name_key(char key[KEY_SIZE], const char *namespace, const char *id)
{
	(void)snprintf(
	    key, KEY_SIZE, "%.128s%s%.255s", namespace, *namespace && *id ? "." : "", id);
}

bool
api_list_wants(const struct api_list *list, const char *namespace, const char *id)
{
	const struct api_page *page = list->page;
	struct item item = { 0 };

	if (!page)
		return true;
	name_key(item.key, namespace, id);
	if (*page->first.key && compare_keys(page, &item, &page->first) < 0)
		return false;
	return page->reverse || page->max == 0 || page->n <= page->max ||
	       compare_keys(page, &item, &page->v[page->max]) < 0;
}

static void
name_item(struct api_page *page, struct item *item, const json_t *json)
{
	/* Namespaces have only a Name, variables a Path. */
	const char *id = json_string_value(json_object_get(json, "ID"))
			     ?: json_string_value(json_object_get(json, "Name"))
			     ?: str(json_string_value(json_object_get(json, "Path")));
	const char *namespace = json_string_value(json_object_get(json, "Namespace")) ?: "";

	if (page->by_name) {
		name_key(item->key, namespace, id);
		return;
	}
	item->index = (unsigned long long)json_integer_value(json_object_get(json, "CreateIndex"));
	(void)snprintf(item->key, KEY_SIZE, "%llu.%.255s", item->index, id);
}

static void
put_item(struct api_page *page, const struct item *item)
{
	if (page->n == page->size) {
		page->size = page->size ? 2 * page->size : 64;
		page->v = mem_resize(page->v, page->size, sizeof *page->v);
	}
	page->v[page->n++] = *item;
	if (page->max > 0 && page->n / 2 > page->max)
		sort_page(page);
}

static void
add_to_page(struct api_list *list, const json_t *json, struct text *text)
{
	struct item item = { 0 };

	name_item(list->page, &item, json);
	if (*list->page->first.key && compare_keys(list->page, &item, &list->page->first) < 0)
		return;
	item.json = steal_ptr(&text->text);
	put_item(list->page, &item);
}

/* Returns true if the filter accepts the item. Takes over the reference. */
static bool
passes_filter(struct api_list *list, json_t *json)
{
	int fits = api_filter_match(list->filter, json, &list->refused);

	if (fits < 0)
		list->status = fits == -EBUSY ? 429 : 400;
	json_decref(json);
	return fits > 0;
}

/* Adds an item that passed the filter. Takes over the text. */
static void
add_text(struct api_list *list, struct text *text)
{
	cleanup_json json_t *json = NULL;

	if (!list->page) {
		append_item(list, text->text, text->len);
	} else {
		json = json_loadb(text->text, text->len, 0, NULL);
		add_to_page(list, json, text);
	}
	text_done(text);
}

void
api_list_add_text(struct api_list *list, struct text *text)
{
	if (list->status == 0 &&
	    (!list->filter || passes_filter(list, json_loadb(text->text, text->len, 0, NULL))))
		add_text(list, text);
	else
		text_done(text);
}

void
api_list_add_stub(struct api_list *list, const struct type *type, const void *stub,
    const struct type *whole_type, const void *whole)
{
	struct text text = { 0 };

	if (list->status ||
	    (list->filter && !passes_filter(list, model_to_json(whole_type, whole, 0))))
		return;
	if (list->page) {
		model_to_text(type, stub, list->flags, &text);
		add_text(list, &text);
		return;
	}
	if (list->some)
		text_append(&list->json, ",", 1);
	list->some = true;
	model_to_text(type, stub, list->flags, &list->json);
}

void
api_list_add(struct api_list *list, const struct type *type, const void *obj)
{
	api_list_add_stub(list, type, obj, type, obj);
}

/* The answer. */

static void
append_page(struct api_list *list, struct api_req *req)
{
	struct api_page *page = list->page;
	struct api_meta meta = *api_meta(req);
	size_t n;

	sort_page(page);
	n = page->max > 0 && page->n > page->max ? page->max : page->n;
	for (size_t i = 0; i < n; i++)
		append_item(list, page->v[i].json, strlen(page->v[i].json));
	if (n == page->n)
		return;
	(void)strcpy(meta.next_token, page->v[n].key);
	api_set_meta(req, &meta);
}

static void
free_page(struct api_page *page)
{
	for (size_t i = 0; page && i < page->n; i++)
		free(page->v[i].json);
	if (page)
		free(page->v);
	free(page);
}

void
api_list_reply(struct api_list *list, struct api_req *req)
{
	if (list->page)
		append_page(list, req);
	text_append(&list->json, "]", 1);
	if (list->status)
		api_reply_error(req, list->status, "%s", list->refused.msg);
	else
		api_reply_take(req, &list->json);
	text_done(&list->json);
	api_filter_free(list->filter);
	free_page(list->page);
	list->filter = NULL;
	list->page = NULL;
}
