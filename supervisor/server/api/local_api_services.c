// SPDX-License-Identifier: Apache-2.0
/* local_api_services.c: registered services over the API. Runs in: supervisor. */
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "supervisor/api/alloc_view.h"
#include "supervisor/server/api/local_api.h"
#include "supervisor/server/claim/local_services.h"

/* Orders services by namespace, name and id. */
static int
compare_services(const void *a, const void *b)
{
	const struct service_registration *ra = &(*(struct source_service *const *)a)->reg;
	const struct service_registration *rb = &(*(struct source_service *const *)b)->reg;
	int r = strcmp(str(ra->namespace), str(rb->namespace));

	if (r == 0)
		r = strcmp(str(ra->service_name), str(rb->service_name));
	return r ? r : strcmp(str(ra->id), str(rb->id));
}

/* Collects the services that the request may see, sorted; the caller frees *ret. Returns how many.
 */
static size_t
sort_services(struct sup *sup, const struct api_req *req, struct source_service ***ret)
{
	const struct service_table *table = local_services_table(local_of_sup(sup));
	struct source_service **v = mem_zeroed(table->n, sizeof *v);
	size_t n = 0;

	for (struct source_service *s = table->first; s; s = s->next)
		if (api_namespace_fits(req, str(s->reg.namespace)) &&
		    api_prefix_fits(req, str(s->reg.service_name)))
			v[n++] = s;
	qsort(v, n, sizeof *v, compare_services);
	*ret = v;
	return n;
}

/* Appends one name of one namespace, from v[i] on, with the tags of all its instances. Returns
 * where the next name begins. */
static size_t
append_name(struct text *t, struct source_service **v, size_t i, size_t n)
{
	struct strings tags = { 0 };
	const struct service_registration *reg = &v[i]->reg;
	const char *sep = "";

	for (; i < n && str_eq(v[i]->reg.service_name, reg->service_name) &&
	       str_eq(v[i]->reg.namespace, reg->namespace);
	     i++)
		for (size_t k = 0; k < v[i]->reg.tags.n; k++)
			if (!strings_has(&tags, v[i]->reg.tags.v[k]))
				strings_add(&tags, v[i]->reg.tags.v[k]);
	text_printf(t, "{\"ServiceName\":");
	text_json_string(t, str(reg->service_name));
	text_printf(t, ",\"Tags\":[");
	for (size_t k = 0; k < tags.n; k++, sep = ",") {
		text_append(t, sep, strlen(sep));
		text_json_string(t, tags.v[k]);
	}
	text_printf(t, "]}");
	strings_done(&tags);
	return i;
}

/* Appends the names of one namespace, from v[i] on. Returns where the next namespace begins. */
static size_t
append_namespace(struct text *t, struct source_service **v, size_t i, size_t n)
{
	const char *namespace = v[i]->reg.namespace, *sep = "";

	text_printf(t, "{\"Namespace\":");
	text_json_string(t, str(namespace));
	text_printf(t, ",\"Services\":[");
	for (; i < n && str_eq(v[i]->reg.namespace, namespace); sep = ",") {
		text_append(t, sep, strlen(sep));
		i = append_name(t, v, i, n);
	}
	text_append(t, "]}", 2);
	return i;
}

void
local_api_list_services(struct sup *sup, struct api_req *req)
{
	cleanup_free struct source_service **v = NULL;
	size_t n = sort_services(sup, req, &v), i = 0;
	struct api_list list;

	api_list_begin_named(&list, req);
	while (i < n) {
		struct text item = { 0 };

		i = append_namespace(&item, v, i, n);
		api_list_add_text(&list, &item);
	}
	api_list_reply(&list, req);
}

void
local_api_get_service(struct sup *sup, struct api_req *req)
{
	cleanup_free struct source_service **v = NULL;
	size_t n = sort_services(sup, req, &v);
	struct api_list list;

	api_list_begin_named(&list, req);
	for (size_t i = 0; i < n; i++)
		if (str_eq(v[i]->reg.service_name, api_param(req, 0)))
			api_list_add(&list, &service_registration_type, &v[i]->reg);
	api_list_reply(&list, req);
}

void
local_api_delete_service(struct sup *sup, struct api_req *req)
{
	struct local *l = local_of_sup(sup);
	struct source_service *s = local_services_table(l)->first;

	while (s && !(str_eq(s->reg.service_name, api_param(req, 0)) &&
			str_eq(s->reg.id, api_param(req, 1)) &&
			api_namespace_fits(req, str(s->reg.namespace))))
		s = s->next;
	if (!s) {
		api_reply_error(req, 404, "service registration not found");
		return;
	}
	local_service_remove(l, s);
	api_reply_json(req, json_pack("{s:I}", "Index", (json_int_t)l->index));
}

void
local_api_alloc_services(struct sup *sup, struct api_req *req)
{
	struct sup_alloc *sa = api_alloc(req);
	struct api_list list;

	if (!sa) {
		api_reply_error(req, 404, "alloc not found");
		return;
	}
	api_list_begin_named(&list, req);
	for (struct source_service *s = sa->services; s; s = s->next_of_alloc)
		api_list_add(&list, &service_registration_type, &s->reg);
	api_list_reply(&list, req);
}
