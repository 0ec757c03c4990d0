// SPDX-License-Identifier: Apache-2.0
/* local_claims.c: the claims that a namespace adds to the tokens of its tasks. Runs in:
 * supervisor. */
#include "supervisor/server/sign/local_claims.h"

#include <string.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "model/engine/text.h"
#include "model/namespace.h"
#include "model/node.h"
#include "supervisor/node/node_state.h"

#define META "job.meta."

struct reference {
	const char *name, *value;
};

/* Returns the value of a reference, without its braces; NULL: it is unknown. */
static const char *
find_value(const struct reference *known, const struct job *job, const char *name)
{
	for (; known->name; known++)
		if (strcmp(known->name, name) == 0)
			return str(known->value);
	return strncmp(name, META, strlen(META)) == 0
		   ? string_map_get(&job->meta, name + strlen(META))
		   : NULL;
}

static json_t *
expand(const struct reference *known, const struct job *job, const char *text)
{
	struct text made = { 0 };
	json_t *json;

	while (*text) {
		size_t plain = strcspn(text, "$"), len = 1;
		const char *end =
		    text[plain] && text[plain + 1] == '{' ? strchr(text + plain, '}') : NULL;
		cleanup_free char *name =
		    end ? mem_strndup(text + plain + 2, (size_t)(end - text) - plain - 2) : NULL;
		const char *value = name ? find_value(known, job, name) : NULL;

		text_append(&made, text, plain);
		text += plain;
		if (!*text)
			break;
		if (value)
			len = strlen(name) + strlen("${}");
		text_append(&made, value ? value : "$", value ? strlen(value) : 1);
		text += len;
	}
	json = json_stringn(made.len ? made.text : "", made.len);
	text_done(&made);
	return json;
}

void
local_claims_add_extra(struct local *l, json_t *claims, const struct alloc *a,
    const struct job *job, const char *task, const struct workload_identity *w)
{
	const struct namespace *ns = l->namespace_find(l, str(job->namespace));
	const struct node *node = node_get(l->base.sup);
	const struct reference known[] = { { "job.region", str(job->region) },
		{ "job.namespace", job->namespace },
		{ "job.id", *str(job->parent_id) ? job->parent_id : job->id },
		{ "job.node_pool", job->node_pool }, { "group.name", a->task_group },
		{ "task.name", task }, { "alloc.id", a->id }, { "node.id", node->id },
		{ "node.datacenter", node->datacenter }, { "node.pool", node->node_pool },
		{ "node.class", node->node_class }, { 0 } };
	json_t *extra;

	if (!ns || (ns->required_claims.n == 0 && w->extra_claims.n == 0))
		return;
	extra = json_object();
	for (size_t i = 0; i < ns->required_claims.n; i++)
		(void)json_object_set_new(extra, ns->required_claims.v[i].key,
		    expand(known, job, str(ns->required_claims.v[i].value)));
	for (size_t i = 0; i < w->extra_claims.n; i++) {
		const char *value = string_map_get(&ns->optional_claims, w->extra_claims.v[i]);

		if (value)
			(void)json_object_set_new(
			    extra, w->extra_claims.v[i], expand(known, job, value));
	}
	if (json_object_size(extra) > 0)
		(void)json_object_set(claims, "extra_claims", extra);
	json_decref(extra);
}
