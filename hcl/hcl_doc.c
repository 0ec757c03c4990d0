/* SPDX-License-Identifier: Apache-2.0 */
/* hcl_doc.c: a document: its limits and its problems. Runs in: cli,
 * job-parser, supervisor (ACL policies), the launcher's configuration child. */
#include "hcl/hcl_doc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

const struct hcl_limits hcl_job_limits = {
	.source_bytes = (size_t)4 * 1024 * 1024,
	.memory_bytes = (size_t)96 * 1024 * 1024,
	.steps = 10 * 1000 * 1000,
	.depth = 200,
};

struct hcl *
hcl_new(const struct hcl_limits *limits)
{
	struct hcl *h = mem_new(struct hcl);

	h->limits = *limits;
	h->arena.memory_max = limits->memory_bytes;
	h->arena.steps_max = limits->steps;
	h->last_problem = &h->problems;
	return h;
}

void
hcl_free(struct hcl *h)
{
	if (!h)
		return;
	arena_done(&h->arena);
	free(h);
}

struct arena *
hcl_arena(struct hcl *h)
{
	return &h->arena;
}

void *
hcl_alloc(struct hcl *h, size_t size)
{
	return arena_alloc(&h->arena, size);
}

char *
hcl_strndup(struct hcl *h, const char *s, size_t len)
{
	return arena_strndup(&h->arena, s, len);
}

char *
hcl_printf(struct hcl *h, const char *fmt, ...)
{
	va_list args;
	char *text;

	va_start(args, fmt);
	text = arena_vprintf(&h->arena, fmt, args);
	va_end(args);
	return text;
}

void
hcl_step(struct hcl *h, uint64_t n)
{
	arena_step(&h->arena, n);
}

void
hcl_count_bytes(struct hcl *h, size_t n)
{
	arena_count_bytes(&h->arena, n);
}

struct trial {
	struct hcl *h;
	hcl_try_fn *fn;
	void *arg;
};

static void
call_trial(void *arg)
{
	struct trial *t = arg;

	t->fn(t->h, t->arg);
}

bool
hcl_try(struct hcl *h, hcl_try_fn *fn, void *arg)
{
	struct trial t = { h, fn, arg };
	unsigned depth = h->depth;
	bool before = h->arena.exhausted != NULL, ok = arena_try(&h->arena, call_trial, &t);

	if (!ok)
		h->depth = depth;
	if (h->arena.exhausted && !before)
		hcl_error(
		    h, h->busy_at, "the document needs too %s to evaluate", h->arena.exhausted);
	return ok;
}

void
hcl_leave(struct hcl *h)
{
	arena_leave(&h->arena);
}

static void
add_problem(struct hcl *h, bool warning, struct hcl_range at, const char *fmt, va_list args)
{
	struct hcl_problem *p;

	h->n_problems++;
	if (!warning)
		h->n_errors++;
	if (h->n_problems > HCL_PROBLEMS_MAX && !h->arena.exhausted)
		return;
	p = hcl_new_object(h, struct hcl_problem);
	p->at = at;
	p->warning = warning;
	p->text = arena_vprintf(&h->arena, fmt, args);
	*h->last_problem = p;
	h->last_problem = &p->next;
}

void
hcl_error(struct hcl *h, struct hcl_range at, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	add_problem(h, false, at, fmt, args);
	va_end(args);
}

void
hcl_warn(struct hcl *h, struct hcl_range at, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	add_problem(h, true, at, fmt, args);
	va_end(args);
}

void
hcl_fail(struct hcl *h, struct hcl_range at, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	add_problem(h, false, at, fmt, args);
	va_end(args);
	hcl_leave(h);
}

void
hcl_enter(struct hcl *h, struct hcl_range at)
{
	h->busy_at = at;
	if (++h->depth > h->limits.depth)
		hcl_fail(h, at, "this is nested more than %u levels deep", h->limits.depth);
}

void
hcl_exit(struct hcl *h)
{
	h->depth--;
}

const struct hcl_problem *
hcl_problems(const struct hcl *h)
{
	return h->problems;
}

unsigned
hcl_error_count(const struct hcl *h)
{
	return h->n_errors;
}

unsigned
hcl_problem_count(const struct hcl *h)
{
	return h->n_problems;
}

void
hcl_forget_problems(struct hcl *h, unsigned n)
{
	struct hcl_problem **at = &h->problems;

	if (h->arena.exhausted) /* the document cannot handle an exceeded limit */
		return;
	for (unsigned i = 0; i < n && *at; i++)
		at = &(*at)->next;
	for (const struct hcl_problem *p = *at; p; p = p->next)
		h->n_errors -= !p->warning;
	*at = NULL;
	h->last_problem = at;
	h->n_problems = n;
}
