// SPDX-License-Identifier: Apache-2.0
/* local_values.c: follows variables and services for the templates of tasks. Runs in: supervisor.
 */
#include "supervisor/server/variable/local_values.h"

#include <errno.h>
#include <sha2.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "model/template_value.h"
#include "supervisor/core/changed.h"
#include "supervisor/server/acl/local_identity.h"
#include "supervisor/server/base/local_map.h"
#include "supervisor/server/claim/local_services.h"
#include "supervisor/server/feed/local_changes.h"
#include "supervisor/server/variable/local_variables.h"

/* A value that tasks follow. */
struct followed {
	struct local_key key;
	TAILQ_ENTRY(followed) link;
	char *name_of_key;
	enum source_query_kind kind;
	char *name, *ns, *choose; /* choose: NULL: all services */
	int64_t count;
	json_t *value; /* NULL: error says why it cannot be read */
	struct err error;
	bool elsewhere; /* it is of another region */
	uint64_t index; /* of the variable that value shows */
	uint64_t version;
	TAILQ_HEAD(, source_watch) watches;
};

struct source_watch {
	TAILQ_ENTRY(source_watch) link, due_link;
	struct followed *of;
	struct id alloc;
	char *task;
	source_value_cb *cb;
	void *arg;
	bool due;
	uint64_t told; /* the version that the callback has seen; 0: none */
	int told_r;
};

/* The kinds of changes that matter. */
static const enum local_kind kinds[] = { LOCAL_VARIABLES, LOCAL_SERVICES, LOCAL_ACL_POLICIES };

struct local_values {
	struct local *l;
	struct local_map map;
	TAILQ_HEAD(, followed) all;
	TAILQ_HEAD(, source_watch) due;
	uint64_t seen[ELEMENTSOF(kinds)];
	struct deferred tell;
	struct changed_watch changes;
};

static void tell_due(struct sup *sup, struct deferred *d);
static void on_changed(struct sup *sup, struct changed_watch *w);

void
local_values_init(struct local *l)
{
	struct local_values *v = l->values = mem_new(struct local_values);

	v->l = l;
	TAILQ_INIT(&v->all);
	TAILQ_INIT(&v->due);
	v->tell.run = tell_due;
	v->changes.fn = on_changed;
}

static void
free_followed(struct local_values *v, struct followed *f)
{
	local_map_remove(&v->map, &f->key);
	TAILQ_REMOVE(&v->all, f, link);
	json_decref(f->value);
	free(f->name_of_key);
	free(f->name);
	free(f->ns);
	free(f->choose);
	free(f);
}

void
local_unwatch(struct source *s, struct source_watch *w)
{
	struct local_values *v = local_of(s)->values;
	struct followed *f;

	if (!w)
		return;
	f = w->of;
	TAILQ_REMOVE(&f->watches, w, link);
	if (w->due)
		TAILQ_REMOVE(&v->due, w, due_link);
	if (TAILQ_EMPTY(&f->watches))
		free_followed(v, f);
	free(w->task);
	free(w);
}

void
local_values_free(struct local *l)
{
	struct local_values *v = l->values;
	struct followed *f;

	while ((f = TAILQ_FIRST(&v->all)))
		local_unwatch(&l->base, TAILQ_FIRST(&f->watches)); /* the last one frees f */
	local_map_done(&v->map, l, NULL);
	changed_unwatch(l->base.sup, &v->changes);
	turn_forget_deferred(l->base.sup, &v->tell);
	free(v);
}

/* --- variables --- */

/* Unsealing costs time: a variable that has not changed is not read again. */
static void
read_variable(struct local *l, struct followed *f)
{
	const struct local_variable *v = local_variable_find(l, f->ns, f->name);
	cleanup_done(variable) struct variable var;

	variable_init(&var);
	if (f->version > 0 && f->index == (v ? v->var.modify_index : 0))
		return;
	f->index = v ? v->var.modify_index : 0;
	f->version++;
	json_decref(f->value);
	f->value = NULL;
	f->error = (struct err){ 0 };
	if (!v)
		f->value = json_null();
	else if (local_variable_get(v, &var, &f->error) == 0)
		f->value = template_value_variable(&var, true);
}

static json_t *
list_variables(struct local *l, const struct followed *f)
{
	size_t n;
	cleanup_free struct local_key **all = local_variables_select(l, f->ns, f->name, &n);
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		(void)json_array_append_new(
		    list, template_value_variable(&local_variable_of(all[i])->var, false));
	return list;
}

/* --- services --- */

struct chosen {
	const struct service_registration *reg;
	uint8_t hash[SHA256_DIGEST_LENGTH];
};

static int
compare_ids(const void *a, const void *b)
{
	const struct chosen *x = a, *y = b;
	int r = strcmp(str(x->reg->service_name), str(y->reg->service_name));

	return r ? r : strcmp(str(x->reg->id), str(y->reg->id));
}

static int
compare_hashes(const void *a, const void *b)
{
	const struct chosen *x = a, *y = b;
	int r = memcmp(x->hash, y->hash, sizeof x->hash);

	return r ? r : compare_ids(a, b);
}

static void
add_text(SHA2_CTX *sha, const char *text)
{
	SHA256Update(sha, (const uint8_t *)text, strlen(text));
}

/* As Nomad's servers choose: by the hash of each service with the key. */
static void
hash_service(struct chosen *c, const char *key)
{
	const struct service_registration *reg = c->reg;
	const char *const texts[] = { reg->alloc_id, reg->id, reg->namespace, reg->address,
		reg->service_name };
	uint8_t port[8];
	SHA2_CTX sha;

	for (unsigned i = 0; i < sizeof port; i++)
		port[i] = (uint8_t)((uint64_t)reg->port >> (56 - 8 * i));
	SHA256Init(&sha);
	SHA256Update(&sha, port, sizeof port);
	for (size_t i = 0; i < ELEMENTSOF(texts); i++)
		add_text(&sha, str(texts[i]));
	for (size_t i = 0; i < reg->tags.n; i++)
		add_text(&sha, reg->tags.v[i]);
	add_text(&sha, key);
	SHA256Final(c->hash, &sha);
}

/* Adds the service at v[i] with the tags of all of its name; returns where the next name begins. */
static size_t
describe_name(json_t *list, const struct chosen *v, size_t i, size_t n)
{
	const char *name = str(v[i].reg->service_name);
	struct strings tags = { 0 };

	for (; i < n && str_eq(v[i].reg->service_name, name); i++)
		for (size_t k = 0; k < v[i].reg->tags.n; k++)
			if (!strings_has(&tags, v[i].reg->tags.v[k]))
				strings_add(&tags, v[i].reg->tags.v[k]);
	(void)json_array_append_new(list, template_value_service_name(name, &tags));
	strings_done(&tags);
	return i;
}

static json_t *
list_services(struct local *l, const struct followed *f)
{
	const struct service_table *table = local_services_table(l);
	cleanup_free struct chosen *v = mem_zeroed(table->n + 1, sizeof *v);
	const struct source_service *s;
	json_t *list = json_array();
	size_t n = 0;

	LIST_FOREACH (s, &table->list, link)
		if ((str_eq(f->ns, "*") || str_eq(f->ns, str(s->reg.namespace))) &&
		    (f->kind == SOURCE_SERVICES || str_eq(f->name, s->reg.service_name)))
			v[n++].reg = &s->reg;
	for (size_t i = 0; f->choose && i < n; i++)
		hash_service(&v[i], f->choose);
	qsort(v, n, sizeof *v, f->choose ? compare_hashes : compare_ids);
	if (f->choose && (size_t)f->count < n)
		n = (size_t)f->count;
	for (size_t i = 0; f->kind == SOURCE_SERVICES && i < n;)
		i = describe_name(list, v, i, n);
	for (size_t i = 0; f->kind == SOURCE_SERVICE && i < n; i++)
		(void)json_array_append_new(list, template_value_service(v[i].reg));
	return list;
}

/* --- telling --- */

static void
refresh(struct local *l, struct followed *f)
{
	json_t *now;

	if (f->elsewhere)
		return;
	if (f->kind == SOURCE_VARIABLE) {
		read_variable(l, f);
		return;
	}
	now = f->kind == SOURCE_VARIABLES ? list_variables(l, f) : list_services(l, f);
	if (f->value && json_equal(f->value, now)) {
		json_decref(now);
		return;
	}
	json_decref(f->value);
	f->value = now;
	f->version++;
}

static bool
may(struct local *l, const struct source_watch *w, const char *ns, const char *path,
    enum acl_variable what)
{
	const struct sup_alloc *sa = alloc_find(l->base.sup, &w->alloc);

	return !l->base.sup->config->acl_enabled ||
	       (sa && local_task_permits_variable(l, sa, w->task, ns, path, what));
}

/* Returns what the task may see of the value, for the caller to free; NULL: nothing. */
static json_t *
shown_value(struct local *l, const struct source_watch *w)
{
	const struct followed *f = w->of;
	json_t *list, *one;
	size_t i;

	if (f->kind == SOURCE_VARIABLE)
		return may(l, w, f->ns, f->name, ACL_VARIABLE_READ) ? json_incref(f->value) : NULL;
	if (f->kind != SOURCE_VARIABLES || !l->base.sup->config->acl_enabled)
		return json_incref(f->value);
	list = json_array();
	json_array_foreach (f->value, i, one)
		if (may(l, w, json_string_value(json_object_get(one, "namespace")),
			json_string_value(json_object_get(one, "path")), ACL_VARIABLE_LIST))
			(void)json_array_append(list, one);
	return list;
}

static void
tell(struct local *l, struct source_watch *w)
{
	json_t *value = w->of->value ? shown_value(l, w) : NULL;
	struct err e = w->of->error;

	if (!value && e.code == 0)
		(void)err_say(&e, -EACCES, "Permission denied");
	/* A list may show less or more to this task, although it has not changed. */
	if (w->told == w->of->version && w->told_r == e.code &&
	    (w->of->kind != SOURCE_VARIABLES || !l->base.sup->config->acl_enabled)) {
		json_decref(value);
		return;
	}
	w->told = w->of->version;
	w->told_r = e.code;
	w->cb(l->base.sup, w->arg, e.code, value, &e);
	json_decref(value);
}

/* Callbacks may begin and end watches. */
static void
tell_due(struct sup *sup, struct deferred *d)
{
	struct local_values *v = container_of(d, struct local_values, tell);
	struct source_watch *w;

	while ((w = TAILQ_FIRST(&v->due))) {
		TAILQ_REMOVE(&v->due, w, due_link);
		w->due = false;
		tell(v->l, w);
	}
}

static void
tell_soon(struct local_values *v, struct source_watch *w)
{
	if (!w->due)
		TAILQ_INSERT_TAIL(&v->due, w, due_link);
	w->due = true;
	turn_defer(v->l->base.sup, &v->tell);
}

static void
check(struct local_values *v, struct followed *f, bool policies)
{
	uint64_t before = f->version;
	struct source_watch *w;

	refresh(v->l, f);
	if (f->version == before && !policies)
		return;
	TAILQ_FOREACH (w, &f->watches, link)
		tell_soon(v, w);
}

static void
on_changed(struct sup *sup, struct changed_watch *w)
{
	struct local_values *v = container_of(w, struct local_values, changes);
	bool changed[ELEMENTSOF(kinds)];
	struct followed *f;

	for (size_t i = 0; i < ELEMENTSOF(kinds); i++) {
		uint64_t now = local_changes_last(v->l, kinds[i]);

		changed[i] = now != v->seen[i];
		v->seen[i] = now;
	}
	TAILQ_FOREACH (f, &v->all, link)
		if (changed[2] || changed[f->kind >= SOURCE_SERVICE])
			check(v, f, changed[2]);
}

/* --- watches --- */

static struct followed *
find_or_make(struct local_values *v, const struct source_query *q, const char *ns)
{
	bool elsewhere = *str(q->region) && !str_eq(q->region, v->l->base.sup->config->region);
	cleanup_free char *name = mem_printf("%d%d\n%lld\n%s\n%s\n%s", elsewhere, (int)q->kind,
	    (long long)(q->key ? q->count : -1), ns, q->key ? q->key : "", q->name);
	struct local_key *key = local_map_find(&v->map, name);
	struct followed *f;

	if (key)
		return container_of(key, struct followed, key);
	f = mem_new(struct followed);
	*f = (struct followed){ .name_of_key = steal_ptr(&name),
		.kind = q->kind,
		.name = mem_strdup(q->name),
		.ns = mem_strdup(ns),
		.choose = q->key && q->count > 0 ? mem_strdup(q->key) : NULL,
		.count = q->count,
		.elsewhere = elsewhere };
	if (elsewhere)
		(void)err_say(&f->error, -ENOENT, "No path to region");
	TAILQ_INIT(&f->watches);
	TAILQ_INSERT_TAIL(&v->all, f, link);
	local_map_add(&v->map, &f->key, f->name_of_key);
	return f;
}

struct source_watch *
local_watch(struct source *s, struct sup_alloc *sa, const char *task, const struct source_query *q,
    source_value_cb *cb, void *arg)
{
	struct local *l = local_of(s);
	struct local_values *v = l->values;
	const char *ns = *str(q->ns) ? q->ns : *str(sa->a.namespace) ? sa->a.namespace : "default";
	struct source_watch *w = mem_new(struct source_watch);

	*w = (struct source_watch){ .of = find_or_make(v, q, ns),
		.alloc = sa->id,
		.task = mem_strdup(task),
		.cb = cb,
		.arg = arg };
	TAILQ_INSERT_TAIL(&w->of->watches, w, link);
	if (w->of->version == 0)
		refresh(l, w->of);
	changed_watch(s->sup, CHANGED_VALUES, &v->changes);
	tell_soon(v, w);
	return w;
}
