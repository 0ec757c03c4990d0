// SPDX-License-Identifier: Apache-2.0
/* nomad_values.c: follows variables and services at the servers. Runs in: supervisor. */
#include "supervisor/cluster/node/nomad_values.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/duration.h"
#include "common/hash.h"
#include "common/list.h"
#include "common/mem.h"
#include "model/template_value.h"
#include "supervisor/cluster/node/nomad_call.h"
#include "supervisor/cluster/node/value_places.h"
#include "supervisor/cluster/rpc/rpc_value.h"

#define WAIT_MS      300000 /* time of a blocking query */
#define DEADLINE_MS  30000  /* of an answer, in addition */
#define GAP_MS       250    /* between two queries, also if servers answer without blocking */
#define RETRY_MS     250
#define RETRY_MAX_MS 60000
/* The places for blocking queries: few nodes need as many. Values without a place are asked for
 * again and again. */
#define BLOCKING_MAX 4096
#define POLL_MS      10000

struct nomad_values {
	struct nomad *n;
	struct hash_table by_key;
	struct value_places places;
	TAILQ_HEAD(, source_watch) due;
	struct deferred tell;
};

/* A value at the servers. Tasks of the same job, group and name follow it together: the servers
 * give all of them the same rights, by which they answer. */
struct nomad_value {
	struct hash_link by_key;
	TAILQ_HEAD(, source_watch) watches; /* not empty */
	struct nomad_values *of;
	const struct kind *kind;
	char *key, *name, *ns, *region, *choose;
	json_t *value; /* of the last answer with a value; NULL: there was none */
	char *problem; /* of the last answer, if failures > 0; with its code */
	int problem_code;
	uint64_t index; /* of the last answer; 0: there was none */
	uint64_t call;
	struct value_place place; /* taken while the call blocks */
	unsigned failures;        /* since the last answer with a value */
	struct sup_timer timer;
};

struct source_watch {
	TAILQ_ENTRY(source_watch) link, due_link;
	struct nomad_value *of;
	struct id alloc;
	char *task;
	source_value_cb *cb;
	void *arg;
	bool due; /* in nomad_values.due */
};

/* A kind of query: its call, and what the answer says. */
struct kind {
	const char *method;
	uint64_t (*ask)(
	    struct nomad_value *v, const struct rpc_query *q, unsigned deadline_ms, link_cb *cb);
	/* Returns the value; NULL with *e. */
	json_t *(*read)(int r, const void *body, size_t len, const struct err *e,
	    uint64_t *ret_index, struct err *ret_e);
};

/* --- variables --- */

/* The same contents; *ret is not to be freed. */
static void
borrow_variable(const struct rpc_variable *from, struct variable *ret)
{
	*ret = (struct variable){ .namespace = from->namespace,
		.path = from->path,
		.create_index = from->create_index,
		.modify_index = from->modify_index,
		.create_time = from->create_time,
		.modify_time = from->modify_time,
		.items = from->items };
}

static uint64_t
ask_variable(struct nomad_value *v, const struct rpc_query *q, unsigned deadline_ms, link_cb *cb)
{
	const struct rpc_variable_req req = { .path = v->name, .query = *q };

	return nomad_call(v->of->n, v->kind->method, &rpc_variable_req_type, &req, deadline_ms,
	    LINK_REPEAT, cb, v);
}

static json_t *
read_variable(int r, const void *body, size_t len, const struct err *e, uint64_t *ret_index,
    struct err *ret_e)
{
	cleanup_done(rpc_variable_rep) struct rpc_variable_rep rep;
	struct variable var;

	if (nomad_decode(r, body, len, e, &rpc_variable_rep_type, &rep, ret_e) < 0)
		return NULL;
	*ret_index = rep.meta.index;
	if (!rep.data)
		return json_null();
	borrow_variable(rep.data, &var);
	return template_value_variable(&var, true);
}

/* For calls without other arguments; a list of variables has a prefix. */
static uint64_t
ask_list(struct nomad_value *v, const struct rpc_query *q, unsigned deadline_ms, link_cb *cb)
{
	struct rpc_query_req req = { .query = *q };

	req.query.prefix = *v->name ? v->name : NULL;
	return nomad_call(
	    v->of->n, v->kind->method, &rpc_query_req_type, &req, deadline_ms, LINK_REPEAT, cb, v);
}

static json_t *
read_variables(int r, const void *body, size_t len, const struct err *e, uint64_t *ret_index,
    struct err *ret_e)
{
	cleanup_done(rpc_variables_rep) struct rpc_variables_rep rep;
	struct variable var;
	json_t *list;

	if (nomad_decode(r, body, len, e, &rpc_variables_rep_type, &rep, ret_e) < 0)
		return NULL;
	*ret_index = rep.meta.index;
	list = json_array();
	for (size_t i = 0; i < rep.data.n; i++) {
		borrow_variable(&rep.data.v[i], &var);
		(void)json_array_append_new(list, template_value_variable(&var, false));
	}
	return list;
}

/* --- services --- */

static uint64_t
ask_service(struct nomad_value *v, const struct rpc_query *q, unsigned deadline_ms, link_cb *cb)
{
	const struct rpc_service_req req = {
		.service_name = v->name, .choose = v->choose, .query = *q
	};

	return nomad_call(v->of->n, v->kind->method, &rpc_service_req_type, &req, deadline_ms,
	    LINK_REPEAT, cb, v);
}

static json_t *
read_service(int r, const void *body, size_t len, const struct err *e, uint64_t *ret_index,
    struct err *ret_e)
{
	cleanup_done(rpc_service_rep) struct rpc_service_rep rep;
	json_t *list;

	if (nomad_decode(r, body, len, e, &rpc_service_rep_type, &rep, ret_e) < 0)
		return NULL;
	*ret_index = rep.meta.index;
	list = json_array();
	for (size_t i = 0; i < rep.services.n; i++)
		(void)json_array_append_new(list, template_value_service(&rep.services.v[i]));
	return list;
}

static int
compare_names(const void *a, const void *b)
{
	const struct rpc_service_name *const *x = a, *const *y = b;

	return strcmp(str((*x)->service_name), str((*y)->service_name));
}

/* The names, sorted: servers have them in another order each time. */
static json_t *
list_names(const struct rpc_service_list_rep *rep)
{
	cleanup_free const struct rpc_service_name **names = NULL;
	json_t *list = json_array();
	size_t n = 0;

	for (size_t i = 0; i < rep->services.n; i++)
		n += rep->services.v[i].services.n;
	names = mem_zeroed(n + 1, sizeof *names);
	n = 0;
	for (size_t i = 0; i < rep->services.n; i++)
		for (size_t k = 0; k < rep->services.v[i].services.n; k++)
			names[n++] = &rep->services.v[i].services.v[k];
	qsort(names, n, sizeof *names, compare_names);
	for (size_t i = 0; i < n; i++)
		(void)json_array_append_new(list,
		    template_value_service_name(str(names[i]->service_name), &names[i]->tags));
	return list;
}

static json_t *
read_services(int r, const void *body, size_t len, const struct err *e, uint64_t *ret_index,
    struct err *ret_e)
{
	cleanup_done(rpc_service_list_rep) struct rpc_service_list_rep rep;

	if (nomad_decode(r, body, len, e, &rpc_service_list_rep_type, &rep, ret_e) < 0)
		return NULL;
	*ret_index = rep.meta.index;
	return list_names(&rep);
}

static const struct kind kinds[] = {
	[SOURCE_VARIABLE] = { "Variables.Read", ask_variable, read_variable },
	[SOURCE_VARIABLES] = { "Variables.List", ask_list, read_variables },
	[SOURCE_SERVICE] = { "ServiceRegistration.GetService", ask_service, read_service },
	[SOURCE_SERVICES] = { "ServiceRegistration.List", ask_list, read_services },
};

/* --- telling --- */

/* Callbacks may begin and end watches. A value that cannot be read any more is not told: its
 * identity may have lost the right to it. */
static void
tell_due(struct sup *sup, struct deferred *d)
{
	struct nomad_values *all = container_of(d, struct nomad_values, tell);
	struct source_watch *w;
	struct err e = { 0 };

	while ((w = TAILQ_FIRST(&all->due))) {
		TAILQ_REMOVE(&all->due, w, due_link);
		w->due = false;
		if (w->of->failures == 0) {
			w->cb(sup, w->arg, 0, w->of->value, NULL);
			continue;
		}
		(void)err_say(&e, w->of->problem_code, "%s", w->of->problem);
		w->cb(sup, w->arg, w->of->problem_code, NULL, &e);
	}
}

static void
tell_soon(struct source_watch *w)
{
	struct nomad_values *all = w->of->of;

	if (!w->due)
		TAILQ_INSERT_TAIL(&all->due, w, due_link);
	w->due = true;
	turn_defer(all->n->src.base.sup, &all->tell);
}

static void
tell_all(struct nomad_value *v)
{
	struct source_watch *w;

	TAILQ_FOREACH (w, &v->watches, link)
		tell_soon(w);
}

/* --- queries --- */

static void ask(void *arg);

static void
ask_after(struct nomad_value *v, uint64_t ms)
{
	sup_timer_set(v->of->n->src.base.sup, &v->timer, CLOCK_MONOTONIC, ms * 1000, ask, v);
}

static void
end_call(struct nomad_value *v)
{
	v->call = 0;
	value_place_leave(&v->of->places, &v->place);
}

/* Takes a place for a blocking query, perhaps that of another job's value, which is asked for later
 * then. */
static bool
take_place(struct nomad_value *v)
{
	struct value_place *loser;
	struct nomad_value *other;

	if (!value_place_take(&v->of->places, &v->place, &loser))
		return false;
	if (!loser)
		return true;
	other = container_of(loser, struct nomad_value, place);
	link_cancel(v->of->n->src.base.sup, other->call);
	end_call(other);
	ask_after(other, POLL_MS);
	return true;
}

/* Tasks that have the value keep using it; tasks that begin to watch now get the problem. */
static void
set_problem(struct nomad_value *v, const struct err *e)
{
	ask_after(v, nomad_retry_ms(&v->failures, RETRY_MS, RETRY_MAX_MS));
	str_set(&v->problem, e->msg);
	v->problem_code = e->code < 0 ? e->code : -EPROTO;
	tell_all(v);
}

static void
on_answer(struct sup *sup, void *arg, int r, const void *body, size_t len, const struct err *e)
{
	struct nomad_value *v = arg;
	bool blocked = v->place.taken, failed = v->failures > 0;
	uint64_t index = 0, last = v->index;
	struct err why = { 0 };
	json_t *value;

	end_call(v);
	value = v->kind->read(r, body, len, e, &index, &why);
	if (!value) {
		set_problem(v, &why);
		return;
	}
	v->failures = 0;
	/* A server that was restored from a backup counts from a lower index. */
	v->index = index < last ? 0 : index > 0 ? index : 1;
	ask_after(v, blocked || failed || last == 0 ? GAP_MS : POLL_MS);
	if (index == last && v->value && !failed) {
		json_decref(value);
		return;
	}
	json_decref(v->value);
	v->value = value;
	tell_all(v);
}

/* Returns the token of one of the tasks. */
static const char *
find_token(const struct nomad_value *v)
{
	const struct source_watch *w;

	TAILQ_FOREACH (w, &v->watches, link) {
		const struct sup_alloc *sa = alloc_find(v->of->n->src.base.sup, &w->alloc);
		const char *token = sa ? string_map_get(&sa->a.signed_identities, w->task) : NULL;

		if (token)
			return token;
	}
	return nomad_token(v->of->n);
}

static void
ask(void *arg)
{
	struct nomad_value *v = arg;
	struct nomad *n = v->of->n;
	struct rpc_query q = { .region =
				   *v->region ? v->region : (char *)(uintptr_t)nomad_region(n),
		.namespace = v->ns,
		.auth_token = (char *)(uintptr_t)find_token(v),
		.allow_stale = true };

	/* After a problem, the value that is known may be readable again. */
	bool blocks = v->index > 0 && v->failures == 0 && take_place(v);

	if (blocks) {
		q.min_query_index = v->index;
		q.max_query_time = (int64_t)WAIT_MS * NS_PER_MS;
	}
	v->call =
	    v->kind->ask(v, &q, (blocks ? WAIT_MS + WAIT_MS / 16 : 0) + DEADLINE_MS, on_answer);
}

/* --- watches --- */

/* Each text with its length, so that no two lists of texts have the same key. */
static char *
make_key(const struct sup_alloc *sa, const char *task, const struct source_query *q, const char *ns)
{
	const char *const texts[] = { sa->a.namespace, sa->a.job_id, sa->a.task_group, task, ns,
		q->region, q->name, q->key };
	struct text t = { 0 };

	text_printf(&t, "%d %lld", (int)q->kind, (long long)(q->key ? q->count : 0));
	for (size_t i = 0; i < ELEMENTSOF(texts); i++)
		text_printf(&t, " %zu:%s", strlen(str(texts[i])), str(texts[i]));
	return t.text;
}

static struct nomad_value *
find_value(const struct nomad_values *all, const char *key)
{
	struct hash_link *l = hash_first(&all->by_key, hash_string(key));

	for (; l; l = hash_next(l)) {
		struct nomad_value *v = container_of(l, struct nomad_value, by_key);

		if (strcmp(v->key, key) == 0)
			return v;
	}
	return NULL;
}

/* Takes over the key. */
static struct nomad_value *
add_value(struct nomad_values *all, const struct sup_alloc *sa, char *key,
    const struct source_query *q, const char *ns)
{
	cleanup_free char *job = mem_printf("%s/%s", str(sa->a.namespace), str(sa->a.job_id));
	struct nomad_value *v = mem_new(struct nomad_value);

	*v = (struct nomad_value){ .of = all,
		.kind = &kinds[q->kind],
		.key = key,
		.name = mem_strdup(q->name),
		.ns = mem_strdup(ns),
		.region = mem_strdup(str(q->region)) };
	TAILQ_INIT(&v->watches);
	value_place_init(&all->places, &v->place, job);
	if (q->key && q->count > 0)
		v->choose = mem_printf("%lld|%s", (long long)q->count, q->key);
	hash_add(&all->by_key, &v->by_key, hash_string(key));
	return v;
}

static void
free_value(struct nomad_value *v)
{
	link_cancel(v->of->n->src.base.sup, v->call);
	end_call(v);
	value_place_done(&v->of->places, &v->place);
	hash_remove(&v->of->by_key, &v->by_key);
	sup_timer_cancel(&v->timer);
	json_decref(v->value);
	free(v->problem);
	free(v->key);
	free(v->name);
	free(v->ns);
	free(v->region);
	free(v->choose);
	free(v);
}

struct source_watch *
nomad_watch_value(struct source *s, struct sup_alloc *sa, const char *task,
    const struct source_query *q, source_value_cb *cb, void *arg)
{
	struct nomad_values *all = nomad_of(s)->values;
	const char *ns = *str(q->ns) ? q->ns : *str(sa->a.namespace) ? sa->a.namespace : "default";
	cleanup_free char *key = make_key(sa, task, q, ns);
	struct source_watch *w = mem_new(struct source_watch);
	struct nomad_value *v = find_value(all, key);
	bool added = !v;

	if (added)
		v = add_value(all, sa, steal_ptr(&key), q, ns);
	*w = (struct source_watch){
		.of = v, .alloc = sa->id, .task = mem_strdup(task), .cb = cb, .arg = arg
	};
	TAILQ_INSERT_TAIL(&v->watches, w, link);
	if (added)
		ask(v);
	else if (v->value || v->failures > 0)
		tell_soon(w);
	return w;
}

void
nomad_unwatch_value(struct source *s, struct source_watch *w)
{
	if (!w)
		return;
	TAILQ_REMOVE(&w->of->watches, w, link);
	if (w->due)
		TAILQ_REMOVE(&w->of->of->due, w, due_link);
	if (TAILQ_EMPTY(&w->of->watches))
		free_value(w->of);
	free(w->task);
	free(w);
}

void
nomad_values_init(struct nomad *n)
{
	struct nomad_values *all = n->values = mem_new(struct nomad_values);

	*all = (struct nomad_values){ .n = n, .tell.run = tell_due };
	TAILQ_INIT(&all->due);
	value_places_init(&all->places, BLOCKING_MAX);
}

void
nomad_values_free(struct nomad *n)
{
	struct nomad_values *all = n->values;
	struct hash_link *l;

	while ((l = hash_each(&all->by_key, NULL)))
		nomad_unwatch_value(&n->src.base,
		    TAILQ_FIRST(&container_of(l, struct nomad_value, by_key)->watches));
	hash_done(&all->by_key);
	turn_forget_deferred(n->src.base.sup, &all->tell);
	free(all);
}
