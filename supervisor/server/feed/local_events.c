// SPDX-License-Identifier: Apache-2.0
/* local_events.c: changes as the event stream tells them. Runs in: supervisor. */
#include "supervisor/server/feed/local_events.h"

#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "supervisor/api/api_node.h"
#include "supervisor/node/node_state.h"
#include "supervisor/server/api/local_api.h"
#include "supervisor/server/deploy/local_deployment.h"
#include "supervisor/server/claim/local_service.h"

#define GONE_KEPT  500
#define GONE_BYTES (4u * 1024 * 1024)

#define OF(n, type) ((struct type *)(void *)((char *)(uintptr_t)(n)-offsetof(struct type, news)))

/* --- heads --- */

static struct event_head
head_of_job(const struct local_job *j)
{
	const struct job *job = local_job_wanted(j);

	return (struct event_head){ .topic = "Job",
		.type = job->stop || j->purge ? "JobDeregistered" : "JobRegistered",
		.namespace = job->namespace,
		.keys = { job->id } };
}

static struct event_head
head_of_alloc(const struct local_alloc *la)
{
	const struct alloc *a = &la->sa->a;

	return (struct event_head){ .topic = "Allocation",
		.type =
		    a->alloc_modify_index == a->modify_index ? "PlanResult" : "AllocationUpdated",
		.namespace = a->namespace,
		.keys = { a->id, a->job_id, a->deployment_id } };
}

static struct event_head
head_of_eval(const struct local_eval *ev)
{
	return (struct event_head){ .topic = "Evaluation",
		.type = "EvaluationUpdated",
		.namespace = ev->ev.namespace,
		.keys = { ev->ev.id, ev->ev.job_id, ev->ev.deployment_id } };
}

static struct event_head
head_of_deployment(const struct local_deployment *dep)
{
	return (struct event_head){ .topic = "Deployment",
		.type = "DeploymentStatusUpdate",
		.namespace = dep->d.namespace,
		.keys = { dep->d.id, dep->d.job_id } };
}

static struct event_head
head_of_service(const struct source_service *s)
{
	return (struct event_head){ .topic = "Service",
		.type = "ServiceRegistration",
		.namespace = s->reg.namespace,
		.keys = { s->reg.id, s->reg.job_id, s->reg.service_name } };
}

void
local_event_head(const struct local_news *n, struct event_head *ret)
{
	switch (n->kind) {
	case NEWS_JOB:
		*ret = head_of_job(OF(n, local_job));
		break;
	case NEWS_ALLOC:
		*ret = head_of_alloc(OF(n, local_alloc));
		break;
	case NEWS_EVAL:
		*ret = head_of_eval(OF(n, local_eval));
		break;
	case NEWS_DEPLOYMENT:
		*ret = head_of_deployment(OF(n, local_deployment));
		break;
	case NEWS_SERVICE:
		*ret = head_of_service(&OF(n, local_service)->base);
		break;
	case NEWS_NODE:
		*ret = (struct event_head){ .topic = "Node",
			.type = "NodeEvent",
			.keys = { str(node_get(OF(n, local)->base.sup)->id) } };
		break;
	case NEWS_GONE:
		*ret = OF(n, local_gone)->head;
		break;
	}
}

/* --- lines --- */

static void
print_alloc(struct sup_alloc *sa, struct text *t)
{
	struct alloc view = sa->a;

	/* Its job has events of its own; a task's tokens are its own. */
	view.signed_identities = (struct string_map){ 0 };
	if (model_to_text(&alloc_type, &view, 0, t) < 0)
		t->failed = true;
}

static int
print_deployment(const struct local_deployment *dep, struct text *t)
{
	struct deployment view = { 0 };
	int r = local_deployment_view(dep, &view);

	if (r < 0)
		return r;
	r = model_to_text(&deployment_type, &view, 0, t);
	deployment_done(&view);
	return r;
}

static void
print_payload(struct local *l, const struct local_news *n, struct text *t)
{
	int r = 0;

	switch (n->kind) {
	case NEWS_JOB:
		text_printf(t, "{\"Job\":");
		r = local_api_job_print(OF(n, local_job), 0, t);
		break;
	case NEWS_ALLOC:
		text_printf(t, "{\"Allocation\":");
		print_alloc(OF(n, local_alloc)->sa, t);
		break;
	case NEWS_EVAL:
		text_printf(t, "{\"Evaluation\":");
		r = model_to_text(&eval_type, &OF(n, local_eval)->ev, 0, t);
		break;
	case NEWS_DEPLOYMENT:
		text_printf(t, "{\"Deployment\":");
		r = print_deployment(OF(n, local_deployment), t);
		break;
	case NEWS_SERVICE:
		text_printf(t, "{\"Service\":");
		r = model_to_text(
		    &service_registration_type, &OF(n, local_service)->base.reg, 0, t);
		break;
	case NEWS_NODE:
		text_printf(t, "{\"Node\":");
		r = api_node_print(l->base.sup, 0, t);
		break;
	case NEWS_GONE:
		return;
	}
	if (r < 0)
		t->failed = true;
	text_append(t, "}", 1);
}

static void
print_line(struct local *l, const struct local_news *n, const struct event_head *h, uint64_t index,
    struct text *t)
{
	text_printf(t, "{\"Index\":%llu,\"Events\":[{\"Topic\":\"%s\",\"Type\":\"%s\",\"Key\":",
	    (unsigned long long)index, h->topic, h->type);
	text_json_string(t, str(h->keys[0]));
	text_printf(t, ",\"Namespace\":");
	text_json_string(t, str(h->namespace));
	text_printf(t, ",\"FilterKeys\":[");
	for (size_t i = 1, some = 0; i < EVENT_KEYS; i++) {
		if (!*str(h->keys[i]))
			continue;
		text_append(t, ",", some++ > 0);
		text_json_string(t, h->keys[i]);
	}
	text_printf(t, "],\"Index\":%llu,\"Payload\":", (unsigned long long)index);
	print_payload(l, n, t);
	text_printf(t, "}]}\n");
}

void
local_event_print(struct local *l, const struct local_news *n, struct text *t)
{
	struct event_head h;

	if (n->kind == NEWS_GONE) {
		text_append(t, OF(n, local_gone)->line, strlen(OF(n, local_gone)->line));
		return;
	}
	local_event_head(n, &h);
	print_line(l, n, &h, n->index, t);
}

/* --- what is no more --- */

static void
free_gone(struct local *l, struct local_gone *g)
{
	local_news_remove(&l->news_list, &g->news);
	for (size_t i = 0; i < EVENT_KEYS; i++)
		free(g->keys[i]);
	free(g->namespace);
	free(g->line);
	free(g);
}

static void
drop_oldest(struct local *l)
{
	struct local_gone *g = l->first_gone;

	l->first_gone = g->later;
	if (!g->later)
		l->last_gone = NULL;
	l->n_gone--;
	l->gone_bytes -= strlen(g->line);
	free_gone(l, g);
}

static int
fill_gone(struct local_gone *g, const struct event_head *h)
{
	g->head = *h;
	if (str_set(&g->namespace, h->namespace) < 0)
		return -1;
	g->head.namespace = g->namespace;
	for (size_t i = 0; i < EVENT_KEYS; i++) {
		if (str_set(&g->keys[i], h->keys[i]) < 0)
			return -1;
		g->head.keys[i] = g->keys[i];
	}
	return 0;
}

void
local_event_keep(
    struct local *l, enum news_kind kind, struct local_news *n, const char *type, uint64_t index)
{
	struct local_gone *g = calloc(1, sizeof *g);
	struct text line = { 0 };
	struct event_head h;

	n->kind = kind;
	local_event_head(n, &h);
	h.type = type;
	print_line(l, n, &h, index, &line);
	local_news_remove(&l->news_list, n);
	if (!g || line.failed || fill_gone(g, &h) < 0) {
		log_error("no memory to tell that %s %s is no more", h.topic, str(h.keys[0]));
		text_done(&line);
		if (g)
			free_gone(l, g);
		return;
	}
	g->line = line.text;
	local_news_put(&l->news_list, &g->news, NEWS_GONE, index);
	*(l->last_gone ? &l->last_gone->later : &l->first_gone) = g;
	l->last_gone = g;
	l->n_gone++;
	l->gone_bytes += line.len;
	while (l->n_gone > GONE_KEPT || l->gone_bytes > GONE_BYTES)
		drop_oldest(l);
}

void
local_events_free(struct local *l)
{
	while (l->first_gone)
		drop_oldest(l);
	while (l->news_list.oldest)
		local_news_remove(&l->news_list, l->news_list.oldest);
}
