// SPDX-License-Identifier: Apache-2.0
/* nomad_values.c: follows variables and services at the servers. Runs in: supervisor. */
#include "supervisor/cluster/node/nomad_values.h"

#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/duration.h"
#include "common/mem.h"
#include "model/template_value.h"
#include "supervisor/cluster/node/nomad_call.h"
#include "supervisor/cluster/rpc/rpc_value.h"

#define WAIT_MS      300000 /* time of a blocking query */
#define DEADLINE_MS  30000  /* of an answer, in addition */
#define GAP_MS       250    /* between two queries, also if servers answer without blocking */
#define RETRY_MS     250
#define RETRY_MAX_MS 60000
/* A blocking query occupies a stream to the server all the time: further values are asked for again
 * and again. */
#define BLOCKING_MAX 512
#define POLL_MS      10000

struct source_watch {
	LIST_ENTRY(source_watch) link;
	struct nomad *n;
	const struct kind *kind;
	struct id alloc;
	char *task, *name, *ns, *region, *choose;
	source_value_cb *cb;
	void *arg;
	uint64_t index; /* of the last answer; 0: there was none */
	uint64_t call;
	bool blocks; /* the call counts in n_blocking */
	unsigned failures;
	struct sup_timer timer;
};

/* A kind of query: its call, and what the answer says. */
struct kind {
	const char *method;
	uint64_t (*ask)(
	    struct source_watch *w, const struct rpc_query *q, unsigned deadline_ms, link_cb *cb);
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
ask_variable(struct source_watch *w, const struct rpc_query *q, unsigned deadline_ms, link_cb *cb)
{
	const struct rpc_variable_req req = { .path = w->name, .query = *q };

	return nomad_call(
	    w->n, w->kind->method, &rpc_variable_req_type, &req, deadline_ms, LINK_REPEAT, cb, w);
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
ask_list(struct source_watch *w, const struct rpc_query *q, unsigned deadline_ms, link_cb *cb)
{
	struct rpc_query_req req = { .query = *q };

	req.query.prefix = *w->name ? w->name : NULL;
	return nomad_call(
	    w->n, w->kind->method, &rpc_query_req_type, &req, deadline_ms, LINK_REPEAT, cb, w);
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
ask_service(struct source_watch *w, const struct rpc_query *q, unsigned deadline_ms, link_cb *cb)
{
	const struct rpc_service_req req = {
		.service_name = w->name, .choose = w->choose, .query = *q
	};

	return nomad_call(
	    w->n, w->kind->method, &rpc_service_req_type, &req, deadline_ms, LINK_REPEAT, cb, w);
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

/* --- queries --- */

static void ask(void *arg);

static void
ask_after(struct source_watch *w, uint64_t ms)
{
	sup_timer_set(w->n->src.base.sup, &w->timer, CLOCK_MONOTONIC, ms * 1000, ask, w);
}

static void
end_call(struct source_watch *w)
{
	w->call = 0;
	w->n->n_blocking_values -= w->blocks;
	w->blocks = false;
}

/* The callback may end the watch, which it cannot use any more then. */
static void
on_answer(struct sup *sup, void *arg, int r, const void *body, size_t len, const struct err *e)
{
	struct source_watch *w = arg;
	bool blocked = w->blocks;
	uint64_t index = 0, last = w->index;
	struct err why = { 0 };
	json_t *value;

	end_call(w);
	value = w->kind->read(r, body, len, e, &index, &why);
	if (!value) {
		ask_after(w, nomad_retry_ms(&w->failures, RETRY_MS, RETRY_MAX_MS));
		w->cb(sup, w->arg, why.code < 0 ? why.code : -EPROTO, NULL, &why);
		return;
	}
	w->failures = 0;
	/* A server that was restored from a backup counts from a lower index. */
	w->index = index < last ? 0 : index > 0 ? index : 1;
	ask_after(w, blocked || last == 0 ? GAP_MS : POLL_MS);
	if (index != last || last == 0)
		w->cb(sup, w->arg, 0, value, NULL);
	json_decref(value);
}

static void
ask(void *arg)
{
	struct source_watch *w = arg;
	struct nomad *n = w->n;
	const struct sup_alloc *sa = alloc_find(n->src.base.sup, &w->alloc);
	const char *token = sa ? string_map_get(&sa->a.signed_identities, w->task) : NULL;
	struct rpc_query q = { .region =
				   *w->region ? w->region : (char *)(uintptr_t)nomad_region(n),
		.namespace = w->ns,
		.auth_token = (char *)(uintptr_t)(token ? token : nomad_token(n)),
		.allow_stale = true };

	w->blocks = w->index > 0 && n->n_blocking_values < BLOCKING_MAX;
	n->n_blocking_values += w->blocks;
	if (w->blocks) {
		q.min_query_index = w->index;
		q.max_query_time = (int64_t)WAIT_MS * NS_PER_MS;
	}
	w->call =
	    w->kind->ask(w, &q, (w->blocks ? WAIT_MS + WAIT_MS / 16 : 0) + DEADLINE_MS, on_answer);
}

struct source_watch *
nomad_watch_value(struct source *s, struct sup_alloc *sa, const char *task,
    const struct source_query *q, source_value_cb *cb, void *arg)
{
	struct source_watch *w = mem_new(struct source_watch);

	*w = (struct source_watch){ .n = nomad_of(s),
		.kind = &kinds[q->kind],
		.alloc = sa->id,
		.task = mem_strdup(task),
		.name = mem_strdup(q->name),
		.ns = mem_strdup(*str(q->ns)             ? q->ns
				 : *str(sa->a.namespace) ? sa->a.namespace
							 : "default"),
		.region = mem_strdup(str(q->region)),
		.cb = cb,
		.arg = arg };
	if (q->key && q->count > 0)
		w->choose = mem_printf("%lld|%s", (long long)q->count, q->key);
	LIST_INSERT_HEAD(&w->n->values, w, link);
	ask(w);
	return w;
}

void
nomad_unwatch_value(struct source *s, struct source_watch *w)
{
	if (!w)
		return;
	link_cancel(s->sup, w->call);
	end_call(w);
	LIST_REMOVE(w, link);
	sup_timer_cancel(&w->timer);
	free(w->task);
	free(w->name);
	free(w->ns);
	free(w->region);
	free(w->choose);
	free(w);
}

void
nomad_values_free(struct nomad *n)
{
	while (!LIST_EMPTY(&n->values))
		nomad_unwatch_value(&n->src.base, LIST_FIRST(&n->values));
}
