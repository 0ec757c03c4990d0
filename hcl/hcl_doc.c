/* SPDX-License-Identifier: Apache-2.0 */
/* hcl_doc.c: the arena of a document, its limits, and the way out of an error. Runs in: cli,
 * job-parser, supervisor (ACL policies), the launcher's configuration child. */
#include "hcl/hcl_doc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

#define BYTES_PER_STEP 16

#define CHUNK_SIZE ((size_t)64 * 1024)
#define ALIGNMENT  16

const struct hcl_limits hcl_job_limits = {
	.source_bytes = (size_t)4 * 1024 * 1024,
	.memory_bytes = (size_t)96 * 1024 * 1024,
	.steps = 10 * 1000 * 1000,
	.depth = 200,
};

struct chunk {
	struct chunk *next;
	size_t size, used;
	_Alignas(ALIGNMENT) char bytes[];
};

struct hcl *
hcl_new(const struct hcl_limits *limits)
{
	struct hcl *h = mem_new(struct hcl);

	h->limits = *limits;
	h->last_problem = &h->problems;
	return h;
}

void
hcl_free(struct hcl *h)
{
	struct chunk *c, *next;

	if (!h)
		return;
	for (c = h->chunks; c; c = next) {
		next = c->next;
		free(c);
	}
	free(h);
}

/* Sets exhausted too, so that no function that handles errors, such as try(), evaluates further. */
static void
exceed_limit(struct hcl *h, const char *what)
{
	if (!h->exhausted) {
		h->exhausted = true;
		hcl_error(h, h->busy_at, "the document needs too %s to evaluate", what);
	}
	hcl_leave(h);
}

static void
add_chunk(struct hcl *h, size_t size)
{
	size_t bytes = size > CHUNK_SIZE / 4 ? size : CHUNK_SIZE;
	/* Problems and their sentences may use a little more, so that the limit itself is reported;
	 * callers outside of hcl_try(), who write them, have no limit. */
	bool free_of_charge = !h->guard || (h->exhausted && size <= CHUNK_SIZE / 4);
	struct chunk *c;

	if (!free_of_charge && bytes > h->limits.memory_bytes - h->memory)
		exceed_limit(h, "much memory");
	c = mem_zeroed(1, sizeof *c + bytes);
	c->size = bytes;
	h->memory += free_of_charge ? 0 : bytes;
	if (bytes > CHUNK_SIZE / 4 && h->chunks && bytes != CHUNK_SIZE) {
		c->next = h->chunks->next; /* the current chunk stays the first */
		c->used = bytes;
		h->chunks->next = c;
		h->large = c->bytes;
		return;
	}
	c->next = h->chunks;
	h->chunks = c;
}

void *
hcl_alloc(struct hcl *h, size_t size)
{
	size_t need;
	void *p;

	if (h->guard && size > h->limits.memory_bytes)
		exceed_limit(h, "much memory");
	need = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	if (need == 0)
		need = ALIGNMENT;
	if (!h->chunks || h->chunks->size - h->chunks->used < need) {
		h->large = NULL;
		add_chunk(h, need);
		if (h->large)
			return h->large;
	}
	p = h->chunks->bytes + h->chunks->used;
	h->chunks->used += need;
	return p;
}

char *
hcl_strndup(struct hcl *h, const char *s, size_t len)
{
	char *copy = hcl_alloc(h, len + 1);

	if (len > 0)
		memcpy(copy, s, len);
	return copy;
}

static char *
vprintf_arena(struct hcl *h, const char *fmt, va_list args)
{
	va_list again;
	char *text;
	int n;

	va_copy(again, args);
	n = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	text = hcl_alloc(h, (size_t)n + 1);
	(void)vsnprintf(text, (size_t)n + 1, fmt, args);
	return text;
}

char *
hcl_printf(struct hcl *h, const char *fmt, ...)
{
	va_list args;
	char *text;

	va_start(args, fmt);
	text = vprintf_arena(h, fmt, args);
	va_end(args);
	return text;
}

void
hcl_step(struct hcl *h, uint64_t n)
{
	if (n > h->limits.steps - h->steps)
		exceed_limit(h, "many steps");
	h->steps += n;
}

void
hcl_count_bytes(struct hcl *h, size_t n)
{
	hcl_step(h, 1 + n / BYTES_PER_STEP);
}

bool
hcl_try(struct hcl *h, hcl_try_fn *fn, void *arg)
{
	jmp_buf *before = h->guard;
	unsigned depth = h->depth;
	jmp_buf here;

	if (h->exhausted)
		return false;
	if (setjmp(here) != 0) {
		h->guard = before;
		h->depth = depth;
		return false;
	}
	h->guard = &here;
	fn(h, arg);
	h->guard = before;
	return true;
}

void
hcl_leave(struct hcl *h)
{
	if (!h->guard)
		abort(); /* a caller forgot hcl_try() */
	longjmp(*h->guard, 1);
}

static void
add_problem(struct hcl *h, bool warning, struct hcl_range at, const char *fmt, va_list args)
{
	struct hcl_problem *p;

	h->n_problems++;
	if (!warning)
		h->n_errors++;
	if (h->n_problems > HCL_PROBLEMS_MAX && !h->exhausted)
		return;
	p = hcl_new_object(h, struct hcl_problem);
	p->at = at;
	p->warning = warning;
	p->text = vprintf_arena(h, fmt, args);
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

	if (h->exhausted) /* the document cannot handle an exceeded limit */
		return;
	for (unsigned i = 0; i < n && *at; i++)
		at = &(*at)->next;
	for (const struct hcl_problem *p = *at; p; p = p->next)
		h->n_errors -= !p->warning;
	*at = NULL;
	h->last_problem = at;
	h->n_problems = n;
}
